//! The scheduler's part of the routerConfiguration: defaults, errors, warnings.

mod schedule_support;

use routing::schedule::{
    PLUGINS, PluginArgs, PrefixCacheArgs, Scheduler, SchedulerConfig, WarningKind,
};
use serde_json::{Value, json};

fn read(value: &Value) -> (SchedulerConfig, Vec<(WarningKind, String)>) {
    let (config, warnings) = SchedulerConfig::from_value(value).expect("valid");
    (
        config,
        warnings.iter().map(|w| (w.kind, w.to_string())).collect(),
    )
}

fn with_args(plugin: &str, args: Value) -> Value {
    json!({"pluginConfig": [{"name": plugin, "args": args}]})
}

/// Arguments of prefix-cache, and the warnings.
fn prefix_args(args: Value) -> (PrefixCacheArgs, Vec<(WarningKind, String)>) {
    let (config, warnings) = read(&with_args("prefix-cache", args));
    (config.args().prefix_cache, warnings)
}

fn scores(list: Value) -> Value {
    json!({"plugins": {"Score": {"enabled": list}}})
}

fn error(value: &Value) -> String {
    SchedulerConfig::from_value(value)
        .expect_err("not valid")
        .to_string()
}

fn enabled(config: &SchedulerConfig) -> Vec<(&'static str, u64)> {
    config
        .scores()
        .iter()
        .map(|w| (w.plugin.name, w.weight.get()))
        .collect()
}

const DEFAULTS: PrefixCacheArgs = PrefixCacheArgs {
    block_bytes: 64,
    max_blocks: 128,
    capacity: 50_000,
    top_k: 5,
    record_sticky: false,
};

#[test]
fn f2_defaults_of_prefix_cache() {
    assert_eq!(PrefixCacheArgs::default(), DEFAULTS);
    assert_eq!(prefix_args(json!({})), (DEFAULTS, vec![]));
}

#[test]
fn f3_omitted_zero_or_negative_is_the_default() {
    let args = json!({"blockSizeToHash": 0, "maxBlocksToMatch": -1, "maxHashCacheSize": i64::MIN});
    assert_eq!(prefix_args(args), (DEFAULTS, vec![]));
    let one = PrefixCacheArgs {
        max_blocks: 256,
        ..DEFAULTS
    };
    assert_eq!(
        prefix_args(json!({"maxBlocksToMatch": 256, "topKMatches": null})),
        (one, vec![])
    );
    assert_eq!(prefix_args(Value::Null), (DEFAULTS, vec![]));
    assert_eq!(
        read(&json!({"pluginConfig": [{"name": "prefix-cache"}]})).1,
        []
    );
}

#[test]
fn f1_argument_names_are_compared_without_case() {
    let args =
        json!({"BLOCKSIZETOHASH": 32, "maxblockstomatch": 7, "topKMatches": 1, "TopKMatches": 2});
    let expected = PrefixCacheArgs {
        block_bytes: 32,
        max_blocks: 7,
        top_k: 2,
        ..DEFAULTS
    };
    assert_eq!(prefix_args(args), (expected, vec![]));
}

#[test]
fn d6_pinned_requests_are_recorded_only_if_told_so() {
    let set = PrefixCacheArgs {
        record_sticky: true,
        ..DEFAULTS
    };
    assert_eq!(prefix_args(json!({"recordSticky": true})), (set, vec![]));
    assert_eq!(
        prefix_args(json!({"recordSticky": null})),
        (DEFAULTS, vec![])
    );
    let (args, warnings) = prefix_args(json!({"recordSticky": "yes", "topKMatches": 2}));
    assert_eq!(args, DEFAULTS);
    let text = "Failed to unmarshal PrefixCacheArgs, using default values: recordSticky must be true or false, got \"yes\"";
    assert_eq!(warnings, [(WarningKind::BadArguments, text.to_owned())]);
}

#[test]
fn f4_a_misspelled_argument_is_ignored_and_named_in_one_warning() {
    let (args, warnings) = prefix_args(json!({"blockSize": 32, "topKMatches": 2}));
    assert_eq!(
        args,
        PrefixCacheArgs {
            top_k: 2,
            ..DEFAULTS
        }
    );
    assert!(
        matches!(&warnings[..], [(WarningKind::UnknownArgument, text)] if text.contains("\"blockSize\"")),
        "{warnings:?}"
    );
    let (_, warnings) = prefix_args(json!({"blocksizetoHsh": 32}));
    assert!(
        warnings[0].1.contains("did you mean blockSizeToHash?"),
        "{warnings:?}"
    );
    let (_, warnings) = read(&with_args("gpu-usage", json!({"limit": 1})));
    assert!(
        matches!(&warnings[..], [(WarningKind::UnknownArgument, text)] if !text.contains("did you mean")),
        "{warnings:?}"
    );
}

#[test]
fn f5_arguments_that_cannot_be_read_give_all_four_defaults() {
    for bad in [
        json!("32"),
        json!(1.5),
        json!(64.0),
        json!(true),
        json!([64]),
        json!({}),
        json!(u64::MAX),
    ] {
        let (args, warnings) = prefix_args(json!({"blockSizeToHash": 32, "topKMatches": bad}));
        assert_eq!(args, DEFAULTS, "{bad}");
        let [(WarningKind::BadArguments, text)] = &warnings[..] else {
            panic!("{bad}: {warnings:?}")
        };
        assert!(
            text.starts_with(
                "Failed to unmarshal PrefixCacheArgs, using default values: topKMatches "
            ),
            "{text}"
        );
    }
    for bad in [json!("text"), json!([]), json!(3)] {
        let (args, warnings) = prefix_args(bad);
        assert_eq!(args, DEFAULTS);
        assert!(
            warnings[0]
                .1
                .starts_with("Failed to unmarshal PrefixCacheArgs, using default values: ")
        );
    }
}

#[test]
fn f6_a_weight_that_is_not_greater_than_0_is_an_error() {
    let text = |got: &str| {
        format!(
            r#"failed to Unmarshal Plugins: score plugin "prefix-cache" must set a weight greater than 0, got {got}"#
        )
    };
    let of = |entry: Value| error(&scores(json!([{"name": "gpu-usage", "weight": 1}, entry])));
    assert_eq!(of(json!({"name": "prefix-cache", "weight": 0})), text("0"));
    assert_eq!(of(json!({"name": "prefix-cache"})), text("0"));
    assert_eq!(
        of(json!({"name": "prefix-cache", "weight": null})),
        text("0")
    );
    assert_eq!(
        of(json!({"name": "prefix-cache", "weight": -3})),
        text("-3")
    );
    let other = error(&scores(json!([{"name": "no-such-plugin", "weight": 0}])));
    assert!(
        other.contains(r#"score plugin "no-such-plugin" must set a weight greater than 0, got 0"#)
    );
    for bad in [
        json!(1.5),
        json!("1"),
        json!(1.0),
        json!(true),
        json!(u64::MAX),
        json!([1]),
    ] {
        let text = of(json!({"name": "prefix-cache", "weight": bad}));
        assert!(
            text.starts_with("failed to Unmarshal Plugins: ") && text.contains("prefix-cache"),
            "{text}"
        );
    }
}

#[test]
fn f7_disabled_lists_have_no_effect() {
    let (config, warnings) = read(&json!({"plugins": {
        "Filter": {"enabled": ["least-request"], "disabled": ["least-request"]},
        "Score": {"enabled": [{"name": "prefix-cache", "weight": 1}], "disabled": [{"name": "prefix-cache"}, 7]},
    }}));
    assert_eq!(
        config.filters().map(|p| p.name).collect::<Vec<_>>(),
        ["least-request"]
    );
    assert_eq!(enabled(&config), [("prefix-cache", 1)]);
    assert_eq!(warnings, []);
}

#[test]
fn f8_the_default_is_what_the_chart_ships() {
    let chart = json!({
        "pluginConfig": [
            {"name": "least-request", "args": {"maxWaitingRequests": 10}},
            {"name": "least-latency", "args": {"TTFTTPOTWeightFactor": 0.5}},
            {"name": "prefix-cache", "args":
                {"blockSizeToHash": 64, "maxBlocksToMatch": 128, "maxHashCacheSize": 50000, "topKMatches": 5}},
        ],
        "plugins": {
            "Filter": {"enabled": ["least-request"], "disabled": ["lora-affinity"]},
            "Score": {"enabled": [
                {"name": "least-request", "weight": 1}, {"name": "gpu-usage", "weight": 1},
                {"name": "least-latency", "weight": 1}, {"name": "prefix-cache", "weight": 1},
            ]},
        },
    });
    let (config, warnings) = read(&chart);
    let default = SchedulerConfig::default();
    assert_eq!(warnings, []);
    assert_eq!(config.args(), default.args());
    let sorted = |config| {
        let mut enabled = enabled(config);
        enabled.sort_unstable();
        enabled
    };
    assert_eq!(sorted(&config), sorted(&default));
    assert_eq!(sorted(&default).len(), 4);
    assert_eq!(
        default.filters().map(|p| p.name).collect::<Vec<_>>(),
        ["least-request"]
    );
}

#[test]
fn f2_the_plugin_table_names_the_defaults_that_the_code_uses() {
    for plugin in PLUGINS.iter().filter(|p| !p.args.is_empty()) {
        let literal = |text: &str| serde_json::from_str::<Value>(text).expect("a literal");
        let args: serde_json::Map<_, _> = plugin
            .args
            .iter()
            .map(|a| (a.name.into(), literal(a.default)))
            .collect();
        let (config, warnings) = read(&with_args(plugin.name, args.into()));
        assert_eq!(
            (*config.args(), warnings),
            (PluginArgs::default(), vec![]),
            "{}",
            plugin.name
        );
    }
    assert!(PLUGINS.iter().all(|p| p.is_filter() || p.is_score()));
}

#[test]
fn f1_missing_and_empty_parts_are_allowed() {
    let empty = [
        Value::Null,
        json!({}),
        json!({"plugins": null, "pluginConfig": null, "unknown": 1}),
        json!({"plugins": {"Filter": {}, "Score": {"enabled": null}}}),
        json!({"plugins": {"Filter": {"enabled": []}, "Score": {"enabled": []}}}),
    ];
    for value in empty {
        let (config, warnings) = read(&value);
        assert_eq!(
            (enabled(&config), config.filters().count(), warnings.len()),
            (vec![], 0, 0),
            "{value}"
        );
    }
}

#[test]
fn f1_a_part_of_the_wrong_kind_is_an_error_that_says_where() {
    let at = |value| {
        error(&value)
            .split(' ')
            .nth(4)
            .map(str::to_owned)
            .expect("a path")
    };
    assert_eq!(at(json!([])), "scheduler");
    assert_eq!(
        at(json!({"plugins": {"Score": {"enabled": "prefix-cache"}}})),
        "scheduler.plugins.Score.enabled"
    );
    assert_eq!(
        at(scores(json!(["prefix-cache"]))),
        "scheduler.plugins.Score.enabled[0]"
    );
    assert_eq!(
        at(json!({"plugins": {"Filter": {"enabled": [1]}}})),
        "scheduler.plugins.Filter.enabled[0]"
    );
    assert_eq!(
        at(json!({"pluginConfig": [{"name": 5}]})),
        "scheduler.pluginConfig[0].name"
    );
}

#[test]
fn f1_unknown_plugins_are_skipped_with_a_warning() {
    let (config, warnings) = read(&json!({"plugins": {
        "Filter": {"enabled": ["gpu-usage", "least-request"]},
        "Score": {"enabled": [{"name": "prefix-cash", "weight": 1}, {"name": "gpu-usage", "weight": 2}]},
    }}));
    let unknown = |name| {
        (
            WarningKind::UnknownPlugin,
            format!("Failed to get plugin {name}."),
        )
    };
    assert_eq!(warnings, [unknown("gpu-usage"), unknown("prefix-cash")]);
    assert_eq!(enabled(&config), [("gpu-usage", 2)]);
    let (_, warnings) = read(&with_args("prefixcache", json!({})));
    assert!(
        matches!(warnings[..], [(WarningKind::UnknownPlugin, _)]),
        "{warnings:?}"
    );
}

#[test]
fn f1_the_last_weight_and_the_last_arguments_count() {
    let (config, warnings) = read(&json!({
        "pluginConfig": [
            {"name": "prefix-cache", "args": "unreadable"},
            {"name": "prefix-cache", "args": {"topKMatches": 3}},
        ],
        "plugins": {
            "Filter": {"enabled": ["least-request", "least-request"]},
            "Score": {"enabled": [
                {"name": "prefix-cache", "weight": 5}, {"name": "gpu-usage", "weight": 1},
                {"name": "prefix-cache", "weight": i64::MAX},
            ]},
        },
    }));
    assert_eq!(
        enabled(&config),
        [("prefix-cache", i64::MAX as u64), ("gpu-usage", 1)]
    );
    assert_eq!(config.filters().count(), 1);
    assert_eq!((config.args().prefix_cache.top_k, warnings.len()), (3, 0));
}

#[test]
fn f1_random_is_removed_beside_others() {
    let both = scores(json!([{"name": "random", "weight": 1}, {"name": "gpu-usage", "weight": 1}]));
    let (config, warnings) = read(&both);
    assert_eq!(enabled(&config), [("gpu-usage", 1)]);
    assert_eq!(warnings[0].0, WarningKind::RandomAmongOthers);
    assert!(
        warnings[0]
            .1
            .starts_with("Random plugin is configured along with other score plugins.")
    );
    let (config, warnings) = read(&scores(json!([{"name": "random", "weight": 1}])));
    assert_eq!((enabled(&config), warnings), (vec![("random", 1)], vec![]));
}

#[test]
fn f1_the_factor_of_least_latency_is_validated_even_when_the_plugin_is_not_enabled() {
    let rejected = |factor: Value| {
        error(&with_args(
            "least-latency",
            json!({"ttfttpotweightfactor": factor}),
        ))
    };
    let text = "invalid least-latency plugin configuration: \
                TTFTTPOTWeightFactor must be a finite value between 0 and 1, got ";
    for (factor, got) in [
        (json!(1.5), "1.5"),
        (json!(-0.1), "-0.1"),
        (json!(2), "2"),
        (json!(".nan"), "NaN"),
        (json!("NaN"), "NaN"),
        (json!(".inf"), "+Inf"),
        (json!("-.Inf"), "-Inf"),
        (json!("half"), "\"half\""),
        (Value::Null, "null"),
    ] {
        assert_eq!(rejected(factor), format!("{text}{got}"));
    }
    assert!(error(&with_args("least-latency", json!("0.5"))).starts_with(text));
    for (factor, expected) in [(json!(0), 0.0), (json!(1), 1.0), (json!(0.25), 0.25)] {
        let (config, _) = read(&with_args(
            "least-latency",
            json!({"TTFTTPOTWeightFactor": factor}),
        ));
        assert_eq!(config.args().least_latency.ttft_weight, expected);
    }
}

#[test]
fn f1_unreadable_arguments_of_least_request_give_the_default() {
    for bad in [
        json!({"maxWaitingRequests": "10"}),
        json!({"maxWaitingRequests": 2.5}),
        json!("text"),
    ] {
        let (config, warnings) = read(&with_args("least-request", bad));
        assert_eq!(config.args().least_request.max_waiting, 10);
        assert!(
            warnings[0]
                .1
                .starts_with("Unmarshal LeastRequestArgs error, setting default value"),
            "{warnings:?}"
        );
    }
    let (config, warnings) = read(&with_args(
        "least-request",
        json!({"maxWaitingRequests": i64::MAX}),
    ));
    assert_eq!(
        (config.args().least_request.max_waiting, warnings.len()),
        (u32::MAX, 0)
    );
}

#[test]
fn f3_the_greatest_values_are_not_allocated_in_advance() {
    let max = json!({"blockSizeToHash": i64::MAX, "maxBlocksToMatch": i64::MAX,
        "maxHashCacheSize": i64::MAX, "topKMatches": i64::MAX});
    let mut value = with_args("prefix-cache", max);
    value["plugins"] = json!({"Score": {"enabled": [{"name": "prefix-cache", "weight": 1}]}});
    let scheduler = Scheduler::new(&read(&value).0);
    let server = schedule_support::server(vec![schedule_support::pod(0)]);
    scheduler.admit(server.pods()[0].id);
    for expected in [0, 100] {
        let (plan, seen) = schedule_support::plan(&scheduler, &server, "hello", 0);
        assert_eq!(seen.by("prefix-cache"), [expected]);
        scheduler.served(
            &plan.expect("a plan").memo.expect("a memo"),
            server.pods()[0].id,
        );
    }
}
