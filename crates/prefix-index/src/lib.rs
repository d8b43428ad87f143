//! Which pods were recently sent how much of this prompt.

mod pod;

pub use pod::PodId;
