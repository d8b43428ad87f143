//! Whether anything came from the other side of a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use tokio::net::TcpStream;
use tokio_util::io::InspectReader;

/// A stream that notes what is read.
pub(super) type Noting = InspectReader<TcpStream, Box<dyn FnMut(&[u8]) + Send>>;

/// Whether a byte was read since this was last cleared.
#[derive(Clone, Debug, Default)]
pub(super) struct Heard(Arc<AtomicBool>);

impl Heard {
    /// Listens to a stream.
    pub(super) fn on(stream: TcpStream) -> (Noting, Self) {
        let heard = Self::default();
        let theirs = heard.clone();
        let note = move |bytes: &[u8]| {
            if !bytes.is_empty() {
                theirs.0.store(true, Relaxed);
            }
        };
        (InspectReader::new(stream, Box::new(note)), heard)
    }

    pub(super) fn clear(&self) {
        self.0.store(false, Relaxed);
    }

    pub(super) fn anything(&self) -> bool {
        self.0.load(Relaxed)
    }
}
