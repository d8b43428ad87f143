//! Server-sent events out of chunks of bytes, as far as the OpenAI streams use them.

/// Collects bytes until an event's end.
#[derive(Debug, Default)]
pub(super) struct Events {
    buffer: Vec<u8>,
    /// Bytes of `buffer` known to hold no line end.
    searched: usize,
}

impl Events {
    /// Takes a chunk and gives the data of each `data:` line that it completes.
    pub(super) fn feed(&mut self, chunk: &[u8], mut data: impl FnMut(&[u8])) {
        self.buffer.extend_from_slice(chunk);
        let mut start = 0;
        while let Some(length) = self.buffer[self.searched..]
            .iter()
            .position(|&byte| byte == b'\n')
        {
            let end = self.searched + length;
            let line = self.buffer[start..end]
                .strip_suffix(b"\r")
                .unwrap_or(&self.buffer[start..end]);
            if let Some(value) = line.strip_prefix(b"data:") {
                data(value.strip_prefix(b" ").unwrap_or(value));
            }
            start = end + 1;
            self.searched = start;
        }
        self.buffer.drain(..start);
        self.searched = self.buffer.len();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Events;

    const STREAM: &str =
        ": keep-alive\n\ndata: {\"a\":1}\n\nevent: x\r\ndata:{\"b\":2}\r\n\r\ndata: [DONE]\n\n";

    proptest! {
        #[test]
        fn events_do_not_depend_on_the_chunks(cuts in proptest::collection::vec(0..STREAM.len(), 0..8)) {
            let mut cuts = cuts;
            cuts.extend([0, STREAM.len()]);
            cuts.sort_unstable();
            let (mut events, mut got) = (Events::default(), Vec::new());
            for pair in cuts.windows(2) {
                events.feed(&STREAM.as_bytes()[pair[0]..pair[1]], |data| {
                    got.push(String::from_utf8(data.to_vec()).unwrap());
                });
            }
            prop_assert_eq!(got, ["{\"a\":1}", "{\"b\":2}", "[DONE]"]);
        }
    }
}
