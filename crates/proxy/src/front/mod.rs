//! The side of the clients: listeners, and the straight line of one request.

mod ahead;
mod arriving;
mod body;
mod client_stream;
mod decode;
mod headers;
mod infer;
mod infer_one;
mod infer_pair;
mod keep;
mod listen;
mod models;
mod observe;
mod read;
mod serve;
mod zstd;

pub use body::ClientBody;
pub(crate) use infer::{authorized, decoded, parse};
pub use listen::{listen, serve_clients, serve_operators, serve_tls};
pub(crate) use read::read_body;
pub use serve::serve;
pub(crate) use serve::{json, not_found};
