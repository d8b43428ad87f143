//! What the house rules (`tests/house`) are written with: the files of the tree, and Rust source read as code.

pub mod code;
pub mod tree;
