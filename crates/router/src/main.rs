//! The `kthena-router` binary.
fn main() {}
