//! The identity of one incarnation of a pod.

/// One incarnation of a pod. A pod that is deleted and comes back under the same name gets a new id, and an id is
/// never reused within a process, so a late record for a dead pod can never reach its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PodId(pub u32);
