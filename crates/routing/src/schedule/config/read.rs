//! From the value of `scheduler` to a validated configuration.

use super::{ConfigError, PluginArgs, SchedulerConfig, Warning, WarningKind, Weighted};
use crate::schedule::plugins::RANDOM;
use crate::schedule::{PLUGINS, Plugin};
use serde_json::Value;
use std::num::NonZeroU64;

static NULL: Value = Value::Null;

pub(super) fn scheduler(value: &Value) -> Result<(SchedulerConfig, Vec<Warning>), ConfigError> {
    let mut warnings = Vec::new();
    let scheduler = At {
        path: "scheduler".into(),
        value,
    };
    let args = plugin_config(&scheduler.member("pluginConfig")?, &mut warnings)?;
    let plugins = scheduler.member("plugins")?;
    let filters = filters(&plugins.member("Filter")?.member("enabled")?, &mut warnings)?;
    let scores = scores(&plugins.member("Score")?.member("enabled")?, &mut warnings)?;
    Ok((
        SchedulerConfig {
            filters,
            scores,
            args,
        },
        warnings,
    ))
}

fn plugin_config(list: &At<'_>, warnings: &mut Vec<Warning>) -> Result<PluginArgs, ConfigError> {
    let mut written: Vec<(&Plugin, At<'_>)> = Vec::new();
    for entry in list.elements()? {
        let named = entry.member("name")?;
        let name = named.text()?;
        let args = entry.member("args")?;
        match PLUGINS.iter().find(|plugin| plugin.name == name) {
            Some(plugin) => {
                written.retain(|(other, _)| other.name != name);
                written.push((plugin, args));
            }
            None => {
                let text = format!(
                    "pluginConfig has arguments for {name}, which is no plugin; they are ignored."
                );
                warnings.push(WarningKind::UnknownPlugin.with(text).at(named.path));
            }
        }
    }
    let mut settings = PluginArgs::default();
    for (plugin, args) in written {
        if args.value.is_null() {
            continue;
        }
        let before = warnings.len();
        let read = (plugin.read)(plugin, args.value, &mut settings, warnings);
        for warning in warnings.iter_mut().skip(before) {
            let name = std::mem::take(&mut warning.path);
            warning.path = match name.as_str() {
                "" => args.path.clone(),
                name => format!("{}.{name}", args.path),
            };
        }
        read.map_err(|error| error.within(&args.path))?;
    }
    Ok(settings)
}

fn filters(
    list: &At<'_>,
    warnings: &mut Vec<Warning>,
) -> Result<Vec<&'static Plugin>, ConfigError> {
    let mut enabled: Vec<&Plugin> = Vec::new();
    for entry in list.elements()? {
        let name = entry.text()?;
        if let Some(plugin) = known(&entry, name, Plugin::is_filter, warnings)
            && enabled.iter().all(|other| other.name != name)
        {
            enabled.push(plugin);
        }
    }
    Ok(enabled)
}

fn scores(list: &At<'_>, warnings: &mut Vec<Warning>) -> Result<Vec<Weighted>, ConfigError> {
    let mut enabled: Vec<Weighted> = Vec::new();
    for entry in list.elements()? {
        let named = entry.member("name")?;
        let name = named.text()?;
        let weight = weight(name, &entry.member("weight")?)?;
        let Some(plugin) = known(&named, name, Plugin::is_score, warnings) else {
            continue;
        };
        match enabled.iter_mut().find(|other| other.plugin.name == name) {
            Some(earlier) => earlier.weight = weight,
            None => enabled.push(Weighted { plugin, weight }),
        }
    }
    if enabled.len() > 1 && enabled.iter().any(|w| w.plugin.name == RANDOM) {
        enabled.retain(|w| w.plugin.name != RANDOM);
        let text = "Random plugin is configured along with other score plugins. It is removed, the others decide.";
        warnings.push(
            WarningKind::RandomAmongOthers
                .with(text.into())
                .at(&list.path),
        );
    }
    Ok(enabled)
}

fn weight(plugin: &str, at: &At<'_>) -> Result<NonZeroU64, ConfigError> {
    let written = match at.value {
        Value::Null => Some(0),
        other => other.as_i64(),
    };
    let Some(written) = written else {
        return Err(ConfigError::WeightKind {
            path: at.path.clone(),
            plugin: plugin.into(),
            got: at.value.to_string(),
        });
    };
    let positive = u64::try_from(written).ok().and_then(NonZeroU64::new);
    positive.ok_or_else(|| ConfigError::Weight {
        path: at.path.clone(),
        plugin: plugin.into(),
        got: written,
    })
}

fn known(
    at: &At<'_>,
    name: &str,
    has_role: fn(&Plugin) -> bool,
    warnings: &mut Vec<Warning>,
) -> Option<&'static Plugin> {
    let plugin = PLUGINS
        .iter()
        .find(|plugin| plugin.name == name && has_role(plugin));
    if plugin.is_none() {
        let text = format!("Failed to get plugin {name}.");
        warnings.push(WarningKind::UnknownPlugin.with(text).at(&at.path));
    }
    plugin
}

/// A value and where it is. Null and absent are the same, and stand for an empty mapping, list or text.
struct At<'a> {
    path: String,
    value: &'a Value,
}

impl<'a> At<'a> {
    fn member(&self, name: &str) -> Result<Self, ConfigError> {
        let value = match self.value {
            Value::Null => &NULL,
            Value::Object(members) => members.get(name).unwrap_or(&NULL),
            _ => return Err(self.wrong("a mapping")),
        };
        Ok(Self {
            path: format!("{}.{name}", self.path),
            value,
        })
    }

    fn elements(&self) -> Result<Vec<Self>, ConfigError> {
        match self.value {
            Value::Null => Ok(Vec::new()),
            Value::Array(list) => {
                let at = |(i, value)| Self {
                    path: format!("{}[{i}]", self.path),
                    value,
                };
                Ok(list.iter().enumerate().map(at).collect())
            }
            _ => Err(self.wrong("a list")),
        }
    }

    fn text(&self) -> Result<&'a str, ConfigError> {
        match self.value {
            Value::Null => Ok(""),
            Value::String(text) => Ok(text),
            _ => Err(self.wrong("a string")),
        }
    }

    fn wrong(&self, expected: &'static str) -> ConfigError {
        ConfigError::Shape {
            path: self.path.clone(),
            expected,
            got: self.value.to_string(),
        }
    }
}
