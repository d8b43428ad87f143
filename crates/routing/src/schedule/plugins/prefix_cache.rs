//! prefix-cache: prefers pods that were recently sent the start of the prompt.

use crate::schedule::config::Args;
use crate::schedule::{
    Arg, Ask, Matches, Memo, Plugin, Row, Score, ScorePlugin, Verdict, WarningKind,
};
use prefix_index::{Chain, Hashes, PodId, PrefixIndex, Recorded};
use smallvec::{SmallVec, smallvec};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "prefix-cache",
    about: "Scores by how much of the prompt's start the pod was recently sent",
    args: &[
        Arg {
            name: BLOCK_SIZE,
            default: "64",
            about: "Size of a block in bytes",
        },
        Arg {
            name: MAX_BLOCKS,
            default: "128",
            about: "Blocks that are hashed of a prompt at most",
        },
        Arg {
            name: CACHE_SIZE,
            default: "50000",
            about: "Block entries that are kept for a pod at most",
        },
        Arg {
            name: TOP_K,
            default: "5",
            about: "Pods that get a score other than 0 at most",
        },
        Arg {
            name: RECORD_STICKY,
            default: "false",
            about: "Whether requests that a session binds to a pod are hashed and recorded, too",
        },
    ],
    read: |plugin, value, settings, warnings| {
        let args = Args::new(plugin, value, warnings);
        settings.prefix_cache = PrefixCacheArgs::read(&args).unwrap_or_else(|why| {
            let text = format!("Failed to unmarshal PrefixCacheArgs, using default values: {why}");
            warnings.push(WarningKind::BadArguments.with(text));
            PrefixCacheArgs::default()
        });
        Ok(())
    },
    filter: None,
    score: Some(|settings| Box::new(PrefixCache::new(settings.prefix_cache))),
};

const BLOCK_SIZE: &str = "blockSizeToHash";
const MAX_BLOCKS: &str = "maxBlocksToMatch";
const CACHE_SIZE: &str = "maxHashCacheSize";
const TOP_K: &str = "topKMatches";
const RECORD_STICKY: &str = "recordSticky";

/// Arguments of prefix-cache.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixCacheArgs {
    /// Size of a block, in bytes.
    pub block_bytes: usize,
    /// Blocks that are hashed of a prompt at most.
    pub max_blocks: usize,
    /// Block entries that are kept for a pod at most.
    pub capacity: usize,
    /// Pods that get a score other than 0 at most.
    pub top_k: usize,
    /// Whether requests that a session binds to a pod are recorded, too.
    pub record_sticky: bool,
}

impl Default for PrefixCacheArgs {
    fn default() -> Self {
        Self {
            block_bytes: 64,
            max_blocks: 128,
            capacity: 50_000,
            top_k: 5,
            record_sticky: false,
        }
    }
}

impl PrefixCacheArgs {
    fn read(args: &Args<'_>) -> Result<Self, String> {
        let read = |name, default| args.integer(name).map(|written| positive(written, default));
        let default = Self::default();
        Ok(Self {
            block_bytes: read(BLOCK_SIZE, default.block_bytes)?,
            max_blocks: read(MAX_BLOCKS, default.max_blocks)?,
            capacity: read(CACHE_SIZE, default.capacity)?,
            top_k: read(TOP_K, default.top_k)?,
            record_sticky: args.boolean(RECORD_STICKY)?.unwrap_or_default(),
        })
    }
}

/// The written value, or the default when it is absent, zero or negative.
fn positive(written: Option<i64>, default: usize) -> usize {
    match written {
        Some(value) if value > 0 => usize::try_from(value).unwrap_or(usize::MAX),
        _ => default,
    }
}

#[derive(Debug)]
struct PrefixCache {
    args: PrefixCacheArgs,
    index: PrefixIndex,
}

impl PrefixCache {
    fn new(args: PrefixCacheArgs) -> Self {
        Self {
            args,
            index: PrefixIndex::new(args.capacity),
        }
    }

    fn hashes(&self, ask: &Ask<'_>) -> Hashes {
        let mut chain = Chain::new(ask.model, self.args.block_bytes, self.args.max_blocks);
        ask.prompt.walk(|bytes| chain.push(bytes));
        chain.finish()
    }
}

impl ScorePlugin for PrefixCache {
    fn name(&self) -> &'static str {
        PLUGIN.name
    }

    /// Matched blocks / hashed blocks × 100, rounded down.
    fn score(&self, ask: &Ask<'_>, rows: &[Row<'_>], out: &mut [Score]) -> Verdict {
        let hashes = self.hashes(ask);
        if hashes.is_empty() {
            return Verdict::Abstained;
        }
        let pods: SmallVec<[PodId; 64]> = rows.iter().map(|row| row.pod.id).collect();
        let mut blocks: SmallVec<[u32; 32]> = smallvec![0; rows.len()];
        let best =
            self.index
                .longest_matches(&hashes, &pods, self.args.top_k, ask.draw, &mut blocks);
        for (matched, out) in blocks.iter().zip(out) {
            *out = Score::ratio(u64::from(*matched), hashes.len() as u64);
        }
        Verdict::Matched(Matches {
            hashes,
            blocks,
            best,
        })
    }

    fn pinned(&self, ask: &Ask<'_>) -> Option<Memo> {
        if !self.args.record_sticky {
            return None;
        }
        Some(self.hashes(ask))
            .filter(|hashes| !hashes.is_empty())
            .map(Memo::Prefix)
    }

    fn admit(&self, pod: PodId) {
        self.index.admit(pod);
    }

    fn forget(&self, pod: PodId) -> usize {
        self.index.forget(pod)
    }

    fn served(&self, memo: &Memo, pod: PodId) -> Recorded {
        let Memo::Prefix(hashes) = memo;
        self.index.record(pod, hashes)
    }

    fn entries(&self) -> usize {
        self.index.len()
    }

    fn prefix_cache(&self) -> Option<(&PrefixCacheArgs, &PrefixIndex)> {
        Some((&self.args, &self.index))
    }
}
