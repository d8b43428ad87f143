//! ModelRoute: which requests go to which servers.

use super::Objects;
use super::meta::{self, Meta, Place};
use crate::fields::{Fields, Reader};
use crate::names;
use crate::problem::{Problem, Severity};
use http::HeaderName;
use routing::fleet::{self, ObjectName, Rule, RuleMatch, StringMatch, Target, TargetRef};
use std::sync::Arc;

/// A checked ModelRoute.
#[derive(Debug)]
pub struct ModelRoute {
    /// Who it is.
    pub meta: Meta,
    /// The route as requests see it.
    pub route: Arc<fleet::ModelRoute>,
    /// `spec.rateLimit`. Checked, but without an effect in this version.
    pub rate_limit: Option<RateLimit>,
    /// Each target once more, with its place.
    targets: Vec<Written>,
}

/// Tokens that a route may use in a unit of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Most tokens of prompts, at least 1.
    pub input_tokens_per_unit: Option<u32>,
    /// Most generated tokens, at least 1.
    pub output_tokens_per_unit: Option<u32>,
    /// The unit, a second unless set.
    pub unit: RateUnit,
    /// `host:port` of the Redis server that shares the limit between routers.
    pub redis_address: Option<String>,
}

/// Units of time of a rate limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateUnit {
    /// `second`, the default.
    Second,
    /// `minute`.
    Minute,
    /// `hour`.
    Hour,
    /// `day`.
    Day,
    /// `month`.
    Month,
}

/// A target as it stands in the manifest.
#[derive(Debug)]
struct Written {
    to: TargetRef,
    place: Place,
    field: String,
}

const RATE_UNITS: &[(&str, RateUnit)] = &[
    ("second", RateUnit::Second),
    ("minute", RateUnit::Minute),
    ("hour", RateUnit::Hour),
    ("day", RateUnit::Day),
    ("month", RateUnit::Month),
];

/// Fields of a parent reference whose syntax the Gateway API bounds.
const PARENT_FIELDS: [(&str, names::Check); 4] = [
    ("group", names::check_group),
    ("kind", names::check_kind),
    ("namespace", names::check_namespace),
    ("sectionName", names::check_object_name),
];

/// `targetModels[].weight` unless set, as in the CRD.
const WEIGHT: u32 = 100;

impl ModelRoute {
    /// Warns about targets that do not exist: requests that they are chosen for get a 404.
    pub(super) fn check_targets(&self, objects: &Objects, found: &mut Vec<Problem>) {
        for Written { to, place, field } in &self.targets {
            let (kind, name, known) = match to {
                TargetRef::Server(name) => (
                    "ModelServer",
                    name,
                    objects
                        .servers
                        .iter()
                        .any(|server| server.meta.name == *name),
                ),
                TargetRef::External(name) => (
                    "ExternalModelProvider",
                    name,
                    objects.providers.iter().any(|p| p.meta.name == *name),
                ),
            };
            if !known {
                let message = format!("{kind} {name} does not exist; requests for it get a 404");
                found.push(place.problem(Severity::Warning, field, message));
            }
        }
    }
}

pub(super) fn read(mut fields: Fields<'_>) -> Option<ModelRoute> {
    let meta = meta::read(&mut fields);
    let at = fields.required("spec");
    fields.skip(&["status"]);
    fields.finish();

    let at = at?;
    let mut spec = at.object()?;
    let model_name = spec
        .optional("modelName")
        .and_then(|m| m.string())
        .filter(|m| !m.is_empty());
    let lora_adapters = spec
        .optional("loraAdapters")
        .map(|l| read_adapters(&l))
        .unwrap_or_default();
    if model_name.is_none() && lora_adapters.is_empty() {
        at.missing("either modelName or loraAdapters must be specified");
    }
    let has_parent_refs = spec
        .optional("parentRefs")
        .is_some_and(|refs| read_parent_refs(&refs));
    let namespace = meta
        .as_ref()
        .map_or(super::DEFAULT_NAMESPACE, |m| m.name.namespace());
    let rules = spec.required("rules").and_then(|rules| rules.list(16));
    let mut targets = Vec::new();
    let mut reader = RuleReader {
        namespace,
        lora: !lora_adapters.is_empty(),
        written: &mut targets,
    };
    let rules = rules.map(|rules| rules.iter().filter_map(|rule| reader.rule(rule)).collect());
    let rate_limit = spec
        .optional("rateLimit")
        .and_then(|limit| read_rate_limit(&limit));
    spec.finish();

    let meta = meta?;
    let route = Arc::new(fleet::ModelRoute {
        name: meta.name.clone(),
        model_name: model_name.map(Into::into),
        lora_adapters,
        has_parent_refs,
        rules: rules?,
        spec: at.to_json(),
    });
    Some(ModelRoute {
        meta,
        route,
        rate_limit,
        targets,
    })
}

fn read_adapters(at: &Reader<'_>) -> Vec<Arc<str>> {
    let name = |item: &Reader<'_>| {
        let name = item.string()?;
        if name.is_empty() {
            item.invalid("\"\"", "lora adapter name cannot be an empty string");
        }
        Some(name.into())
    };
    at.list(10)
        .unwrap_or_default()
        .iter()
        .filter_map(name)
        .collect()
}

/// Whether there are any.
fn read_parent_refs(at: &Reader<'_>) -> bool {
    let items = at.list(usize::MAX).unwrap_or_default();
    for item in &items {
        let Some(mut fields) = item.object() else {
            continue;
        };
        let name = fields.required("name");
        if let Some(name) = name
            && name.string_up_to(253) == Some("")
        {
            name.invalid("\"\"", "should be at least 1 chars long");
        }
        for (field, check) in PARENT_FIELDS {
            let _ = fields
                .optional(field)
                .and_then(|f| meta::checked(&f, check));
        }
        let _ = fields
            .optional("port")
            .and_then(|port| port.integer::<u16>(1..=65535));
        fields.finish();
    }
    if !items.is_empty() {
        at.note("the route is tied to gateways and is skipped while the Gateway API is off");
    }
    !items.is_empty()
}

fn read_rate_limit(at: &Reader<'_>) -> Option<RateLimit> {
    at.without_effect();
    let mut fields = at.object()?;
    let mut tokens = |name| {
        fields
            .optional(name)
            .map(|n| n.integer::<u32>(1..=i64::from(u32::MAX)))
    };
    let input = tokens("inputTokensPerUnit");
    let output = tokens("outputTokensPerUnit");
    let unit = fields
        .optional("unit")
        .map_or(Some(RateUnit::Second), |unit| unit.one_of(RATE_UNITS));
    let redis_address = fields
        .optional("global")
        .and_then(|global| read_redis(&global));
    fields.finish();
    Some(RateLimit {
        input_tokens_per_unit: input.flatten(),
        output_tokens_per_unit: output.flatten(),
        unit: unit?,
        redis_address,
    })
}

fn read_redis(at: &Reader<'_>) -> Option<String> {
    let mut global = at.object()?;
    let redis = global.optional("redis");
    global.finish();
    let mut redis = redis?.object()?;
    let address = redis
        .required("address")
        .and_then(|address| address.string());
    redis.finish();
    address.map(str::to_owned)
}

/// What the rules of one route have in common.
struct RuleReader<'r> {
    namespace: &'r str,
    lora: bool,
    written: &'r mut Vec<Written>,
}

impl RuleReader<'_> {
    fn rule(&mut self, at: &Reader<'_>) -> Option<Rule> {
        const NO_TARGET: &str = "each rule must have at least one target model";
        if at.is_null() {
            at.invalid("null", "rule must not be nil");
            return None;
        }
        let mut fields = at.object()?;
        let name = fields
            .optional("name")
            .and_then(|name| name.string())
            .map(str::to_owned);
        let matches = fields.optional("modelMatch").and_then(|m| read_match(&m));
        let list = fields.required_or("targetModels", NO_TARGET);
        fields.finish();
        let list = list?;
        let items = list.list(16)?;
        if items.is_empty() {
            list.missing(NO_TARGET);
        }
        let targets: Vec<_> = items.iter().filter_map(|item| self.target(item)).collect();
        let total: u64 = targets.iter().filter_map(|t| t.weight).map(u64::from).sum();
        // Only where every target could be read, so that one mistake is not reported twice.
        if !targets.is_empty() && targets.len() == items.len() && total == 0 {
            list.invalid(0, "total weight must be greater than zero");
        }
        Some(Rule {
            name,
            matches,
            targets,
        })
    }

    fn target<'a>(&mut self, at: &Reader<'a>) -> Option<Target> {
        if at.is_null() {
            at.invalid("null", "target model must not be nil");
            return None;
        }
        let mut fields = at.object()?;
        let mut named = |field| {
            fields
                .optional(field)
                .filter(|name| name.string() != Some(""))
        };
        let server = named("modelServerName");
        let external = named("externalModelProviderName");
        let weight = fields
            .optional("weight")
            .map_or(Some(WEIGHT), |weight| weight.integer(0..=100));
        fields.finish();
        let (name, external) = match (server, external) {
            (Some(server), None) => (server, false),
            (None, Some(external)) => (external, true),
            (server, external) => {
                let text =
                    |name: Option<Reader<'a>>| name.and_then(|n| n.string()).unwrap_or_default();
                let both = format!("{}/{}", text(server), text(external));
                at.invalid(
                    format_args!("{both:?}"),
                    "exactly one of modelServerName or externalModelProviderName must be set",
                );
                return None;
            }
        };
        if external && self.lora {
            let text = name.string().unwrap_or_default();
            name.invalid(
                format_args!("{text:?}"),
                "lora routes must target modelServerName",
            );
        }
        let full = ObjectName::new(
            self.namespace,
            meta::checked(&name, names::check_object_name)?,
        );
        let to = if external {
            TargetRef::External(full)
        } else {
            TargetRef::Server(full)
        };
        let place = Place {
            file: Arc::clone(name.sink().file()),
            line: name.line(),
        };
        self.written.push(Written {
            to: to.clone(),
            place,
            field: name.path().to_owned(),
        });
        Some(Target {
            to,
            weight: Some(weight?),
        })
    }
}

fn read_match(at: &Reader<'_>) -> Option<RuleMatch> {
    let mut fields = at.object()?;
    let headers = fields
        .optional("headers")
        .and_then(|headers| headers.entries())
        .unwrap_or_default();
    let uri = fields
        .optional("uri")
        .and_then(|uri| read_string_match(&uri));
    let body = fields.optional("body").and_then(|body| body.object());
    let body_model = body.and_then(|mut body| {
        let model = body
            .optional("model")
            .and_then(|model| model.string())
            .map(str::to_owned);
        body.finish();
        model
    });
    fields.finish();
    let header = |(name, at): (&str, Reader<'_>)| {
        let parsed = HeaderName::from_bytes(name.as_bytes());
        if parsed.is_err() {
            at.error(format!(
                "Invalid value: {name:?}: must be the name of an HTTP header"
            ));
        }
        Some((parsed.ok()?, read_string_match(&at)?))
    };
    Some(RuleMatch {
        headers: headers.into_iter().filter_map(header).collect(),
        uri,
        body_model,
    })
}

fn read_string_match(at: &Reader<'_>) -> Option<StringMatch> {
    let mut fields = at.object()?;
    let exact = fields.optional("exact").and_then(|text| text.string());
    let prefix = fields.optional("prefix").and_then(|text| text.string());
    let pattern = fields.optional("regex");
    fields.finish();
    let regex = pattern.and_then(|pattern| {
        let text = pattern.string()?;
        if let Err(reason) = fleet::re2::compile(text) {
            pattern.invalid(
                format_args!("{text:?}"),
                &format!("invalid regex: {reason}"),
            );
        }
        Some(text)
    });
    Some(StringMatch::from_parts(exact, prefix, regex))
}
