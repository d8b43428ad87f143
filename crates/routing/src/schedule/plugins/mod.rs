//! The plugins, one file each, and the table of them.

mod gpu_usage;
mod least_latency;
mod least_request;
mod lora_affinity;
mod prefix_cache;
mod random;

pub use least_latency::LeastLatencyArgs;
pub use least_request::LeastRequestArgs;
pub use prefix_cache::PrefixCacheArgs;

use super::Plugin;

/// All plugins. Start-up, validation and the reference documentation read this table.
pub const PLUGINS: &[Plugin] = &[
    least_request::PLUGIN,
    least_latency::PLUGIN,
    gpu_usage::PLUGIN,
    prefix_cache::PLUGIN,
    random::PLUGIN,
    lora_affinity::PLUGIN,
];

/// The name of the plugin that must be alone.
pub(super) const RANDOM: &str = random::PLUGIN.name;
