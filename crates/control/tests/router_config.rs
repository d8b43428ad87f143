//! The routerConfiguration.

use control::RouterConfig;
use control::router_config::SessionStore;
use std::path::Path;

fn parse(text: &str) -> Result<RouterConfig, String> {
    RouterConfig::parse(text.as_bytes(), "c.yaml").map_err(|e| e.to_string())
}

#[test]
fn f1_scheduler_and_auth_are_read_and_other_keys_named() {
    let text = "scheduler:\n  plugins:\n    Score:\n      enabled: [{name: prefix-cache, weight: 1}]\nauth:\n  issuer: i\n  audiences: [a, b]\n  jwksUri: https://x/keys\nother: 1\n";
    let config = parse(text).unwrap();
    assert_eq!(
        config.scheduler["plugins"]["Score"]["enabled"][0]["weight"],
        1
    );
    let auth = config.auth.unwrap();
    assert_eq!(
        (auth.issuer.as_str(), auth.jwks_uri.as_str()),
        ("i", "https://x/keys")
    );
    assert_eq!(auth.audiences, ["a", "b"]);
    let warnings: Vec<_> = config.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(warnings, ["c.yaml:9: other: unknown field"]);
}

#[test]
fn f1_the_text_of_the_config_map_key_is_the_file() {
    let example = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../examples/standalone/config/routerConfiguration.yaml");
    let config = RouterConfig::load(&example).unwrap();
    assert_eq!(config.warnings, []);
    assert_eq!(
        config.scheduler["pluginConfig"][2]["args"]["maxHashCacheSize"],
        50000
    );
    assert_eq!(
        config.scheduler["plugins"]["Score"]["enabled"]
            .as_array()
            .unwrap()
            .len(),
        4
    );
}

#[test]
fn f1_numbers_that_json_has_not_become_their_names() {
    let config = parse("scheduler: {a: .nan, b: .inf, c: -.inf, d: 0.5}").unwrap();
    let found: Vec<_> = ["a", "b", "c", "d"]
        .map(|k| config.scheduler[k].to_string())
        .into();
    assert_eq!(found, ["\"NaN\"", "\"+Inf\"", "\"-Inf\"", "0.5"]);
}

#[test]
fn f1_an_unreadable_file_says_so() {
    let error = RouterConfig::load(Path::new("no/such.yaml"))
        .unwrap_err()
        .to_string();
    assert!(
        error.starts_with("failed to read config file no/such.yaml: "),
        "{error}"
    );
}

#[test]
fn f1_an_unparsable_file_says_where() {
    let prefix = "failed to Unmarshal routerConfiguration: ";
    assert_eq!(
        parse("scheduler:\n  a: [1\n").unwrap_err(),
        format!("{prefix}c.yaml:2: unclosed bracket '['")
    );
    let error = parse("scheduler: 1\nauth: {audiences: a}\n").unwrap_err();
    let wanted = "c.yaml:1: scheduler: must be an object, not a number; c.yaml:2: auth.audiences: must be a list, not a string";
    assert_eq!(error, format!("{prefix}{wanted}"));
}

#[test]
fn f1_an_empty_file_is_an_empty_configuration() {
    assert_eq!(parse("# nothing\n").unwrap(), RouterConfig::default());
}

#[test]
fn tokens_are_checked_only_with_a_key_set_and_then_the_issuer_is_known() {
    assert_eq!(
        parse("auth: {issuer: i, audiences: [a]}").unwrap().auth,
        None
    );
    let prefix = "failed to Unmarshal routerConfiguration: c.yaml:1: auth: ";
    let error = parse("auth: {jwksUri: 'https://x/keys'}").unwrap_err();
    assert!(
        error.starts_with(&format!("{prefix}issuer is required when jwksUri is set")),
        "{error}"
    );
    assert_eq!(
        parse("auth: {issuer: i, jwksUri: 'file:///keys'}").unwrap_err(),
        format!("{prefix}jwksUri \"file:///keys\" must be an https:// or http:// URL")
    );
}

#[test]
fn j2_bindings_are_kept_in_memory_unless_told_otherwise() {
    let store = |text: &str| parse(text).map(|config| config.session_store);
    for text in [
        "scheduler: {}",
        "sessionSticky: {}",
        "sessionSticky: {backend: memory}",
        "sessionSticky: {backend: memory, redis: {address: 'unused:1'}}",
    ] {
        assert_eq!(store(text), Ok(SessionStore::Memory), "{text}");
    }
    let redis = |address: &str| {
        store(&format!(
            "sessionSticky: {{backend: redis, redis: {{address: '{address}'}}}}"
        ))
    };
    for address in ["redis:6379", "10.0.0.1:1", "[::1]:6379"] {
        let wanted = SessionStore::Redis {
            address: address.into(),
        };
        assert_eq!(redis(address), Ok(wanted));
    }
    let prefix = "failed to Unmarshal routerConfiguration: c.yaml:1: ";
    for address in [
        "redis",
        "redis:",
        "redis:0",
        "redis:x",
        "redis://h:1",
        "u:p@h:1",
    ] {
        let wanted =
            format!("{prefix}sessionSticky.redis.address {address:?} is invalid (write host:port)");
        assert_eq!(redis(address), Err(wanted));
    }
    for text in [
        "sessionSticky: {backend: redis}",
        "sessionSticky: {backend: redis, redis: {}}",
    ] {
        let wanted =
            format!("{prefix}sessionSticky.redis.address is required when backend is redis");
        assert_eq!(store(text), Err(wanted), "{text}");
    }
    assert_eq!(
        store("sessionSticky: {backend: etcd}"),
        Err(format!(
            "{prefix}sessionSticky.backend \"etcd\" is invalid (use memory or redis)"
        ))
    );
}
