//! lora-affinity: only pods whose engine has the model loaded. A pod whose list was never read is unknown, and passes.

use crate::schedule::config::no_args;
use crate::schedule::{Ask, FilterPlugin, Plugin, Row};

pub(super) const PLUGIN: Plugin = Plugin {
    name: "lora-affinity",
    about: "Keeps pods whose engine lists the request's model under /v1/models",
    args: &[],
    read: no_args,
    filter: Some(|_| Box::new(LoraAffinity)),
    score: None,
};

#[derive(Debug)]
struct LoraAffinity;

impl FilterPlugin for LoraAffinity {
    fn name(&self) -> &'static str {
        PLUGIN.name
    }

    fn keep(&self, ask: &Ask<'_>, row: &Row<'_>) -> bool {
        row.pod.load.has_model(ask.model).unwrap_or(true)
    }
}
