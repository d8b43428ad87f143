//! The `args` of one plugin.

use super::{ConfigError, PluginArgs, Warning, WarningKind};
use crate::schedule::Plugin;
use serde_json::Value;

/// Arguments as written. Keys are compared without case; of keys that are equal then, the last counts.
#[derive(Debug)]
pub(in crate::schedule) struct Args<'a>(&'a Value);

impl<'a> Args<'a> {
    /// Adds a warning for every key that the plugin does not have.
    pub(in crate::schedule) fn new(
        plugin: &Plugin,
        value: &'a Value,
        warnings: &mut Vec<Warning>,
    ) -> Self {
        for key in value
            .as_object()
            .into_iter()
            .flat_map(|object| object.keys())
        {
            if !plugin
                .args
                .iter()
                .any(|arg| arg.name.eq_ignore_ascii_case(key))
            {
                let known: Vec<_> = plugin.args.iter().map(|arg| arg.name).collect();
                let meant = match nearest(key, &known) {
                    Some(name) => format!(", did you mean {name}?"),
                    None => ".".to_owned(),
                };
                let known = if known.is_empty() {
                    "no arguments".into()
                } else {
                    known.join(", ")
                };
                let text = format!(
                    "Plugin {} has no argument {key:?}, it is ignored{meant} It has {known}.",
                    plugin.name
                );
                warnings.push(WarningKind::UnknownArgument.with(text).at(key));
            }
        }
        Self(value)
    }

    /// The value of an argument; may be null.
    pub(in crate::schedule) fn get(&self, name: &str) -> Option<&'a Value> {
        let mut members = self.0.as_object()?.iter().rev();
        members
            .find(|(key, _)| key.eq_ignore_ascii_case(name))
            .map(|(_, value)| value)
    }

    /// The truth value of an argument, `None` when it is absent or null.
    ///
    /// # Errors
    ///
    /// If the value is of another kind, or if the arguments are no mapping at all.
    pub(in crate::schedule) fn boolean(&self, name: &str) -> Result<Option<bool>, String> {
        match self.member(name)? {
            None => Ok(None),
            Some(value) => match value.as_bool() {
                Some(truth) => Ok(Some(truth)),
                None => Err(format!("{name} must be true or false, got {value}")),
            },
        }
    }

    /// The integer value of an argument, `None` when it is absent or null. 64.0 is no integer, and neither is "64".
    ///
    /// # Errors
    ///
    /// If the value is of another kind or does not fit, or if the arguments are no mapping at all.
    pub(in crate::schedule) fn integer(&self, name: &str) -> Result<Option<i64>, String> {
        match self.member(name)? {
            None => Ok(None),
            Some(value) => match value.as_i64() {
                Some(integer) => Ok(Some(integer)),
                None => Err(format!("{name} must be an integer, got {value}")),
            },
        }
    }

    fn member(&self, name: &str) -> Result<Option<&'a Value>, String> {
        if !self.0.is_object() {
            return Err(format!("args must be a mapping, got {}", self.0));
        }
        Ok(self.get(name).filter(|value| !value.is_null()))
    }
}

/// Reads the arguments of a plugin that has none: names the ones that were written.
pub(in crate::schedule) fn no_args(
    plugin: &Plugin,
    value: &Value,
    _: &mut PluginArgs,
    warnings: &mut Vec<Warning>,
) -> Result<(), ConfigError> {
    Args::new(plugin, value, warnings);
    Ok(())
}

/// The name that a misspelled key most likely stands for: two letters away at most.
fn nearest<'a>(key: &str, names: &[&'a str]) -> Option<&'a str> {
    let far = names.iter().map(|name| (distance(key, name), *name));
    far.min().filter(|(d, _)| *d <= 2).map(|(_, name)| name)
}

/// Letters to insert, delete or replace to make one text the other, without case (Levenshtein).
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (n, x) in a.chars().enumerate() {
        let mut next = vec![n + 1];
        for ((y, above), aside) in b.iter().zip(row.iter().skip(1)).zip(&row) {
            let left = next.last().copied().unwrap_or_default();
            let changed = usize::from(!x.eq_ignore_ascii_case(y));
            next.push((left + 1).min(above + 1).min(aside + changed));
        }
        row = next;
    }
    row.last().copied().unwrap_or_default()
}
