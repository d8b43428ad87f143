//! Settings that were found, in the configuration that the search started from: what was not searched stays.

use serde_json::{Map, Value, json};

/// The member `scheduler` of a configuration, with the arguments and weights of `found`, which is one, too.
pub(super) fn merged(scheduler: &Value, found: &Value) -> Value {
    let mut merged = members(scheduler);
    let mut configs = items(&scheduler["pluginConfig"]);
    for plugin in items(&found["pluginConfig"]) {
        let name = &plugin["name"];
        if !configs.iter().any(|config| config["name"] == *name) {
            configs.push(json!({ "name": name }));
        }
        for config in configs.iter_mut().filter(|c| c["name"] == *name) {
            let mut args = members(&config["args"]);
            args.extend(members(&plugin["args"]));
            config["args"] = args.into();
        }
    }
    merged.insert("pluginConfig".into(), configs.into());
    let mut plugins = members(&scheduler["plugins"]);
    let mut score = members(&scheduler["plugins"]["Score"]);
    let enabled = &found["plugins"]["Score"]["enabled"];
    score.insert("enabled".into(), enabled.clone());
    plugins.insert("Score".into(), score.into());
    merged.insert("plugins".into(), plugins.into());
    merged.into()
}

fn members(value: &Value) -> Map<String, Value> {
    value.as_object().cloned().unwrap_or_default()
}

fn items(value: &Value) -> Vec<Value> {
    value.as_array().cloned().unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_searched_stays() {
        let scheduler = json!({
            "pluginConfig": [
                {"name": "prefix-cache", "args": {"recordSticky": true, "maxBlocksToMatch": 16}},
                {"name": "other", "args": {"a": 1}},
            ],
            "plugins": {
                "Filter": {"enabled": ["least-request", "lora-affinity"]},
                "Score": {"enabled": [{"name": "gpu-usage", "weight": 1}], "disabled": ["x"]},
            },
        });
        let found = json!({
            "pluginConfig": [
                {"name": "least-request", "args": {"maxWaitingRequests": 20}},
                {"name": "prefix-cache", "args": {"maxBlocksToMatch": 512}},
            ],
            "plugins": {
                "Filter": {"enabled": ["least-request"]},
                "Score": {"enabled": [{"name": "prefix-cache", "weight": 3}]},
            },
        });
        assert_eq!(
            merged(&scheduler, &found),
            json!({
                "pluginConfig": [
                    {"name": "prefix-cache", "args": {"recordSticky": true, "maxBlocksToMatch": 512}},
                    {"name": "other", "args": {"a": 1}},
                    {"name": "least-request", "args": {"maxWaitingRequests": 20}},
                ],
                "plugins": {
                    "Filter": {"enabled": ["least-request", "lora-affinity"]},
                    "Score": {"enabled": [{"name": "prefix-cache", "weight": 3}], "disabled": ["x"]},
                },
            })
        );
        assert_eq!(
            merged(&Value::Null, &found)["pluginConfig"],
            found["pluginConfig"]
        );
    }
}
