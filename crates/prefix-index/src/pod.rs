//! The identity of one incarnation of a pod.

/// One incarnation of a pod. A pod that is deleted and comes back under the same name gets a new id, and an id is
/// never reused within a process, so a late record for a dead pod can never reach its successor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PodId(pub u32);

impl PodId {
    /// The pod's place among equals for these random bits: the lowest rank goes first.
    ///
    /// Over many draws every pod of a group comes first equally often. It is the id-th output of SplitMix64 (Steele,
    /// Lea and Flood, OOPSLA 2014) seeded with `draw`, so pods that have neighbouring ids are ordered independently.
    #[must_use]
    pub fn rank(self, draw: u64) -> u64 {
        let mut z = draw.wrapping_add(
            u64::from(self.0)
                .wrapping_add(1)
                .wrapping_mul(0x9E37_79B9_7F4A_7C15),
        );
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }
}
