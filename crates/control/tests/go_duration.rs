//! Go's durations, against values that Go's own documentation and behaviour fix.

use control::go_duration::parse;
use proptest::prelude::*;
use std::time::Duration;

#[test]
fn durations_are_read_as_go_reads_them() {
    let cases: &[(&str, u64)] = &[
        ("0", 0),
        ("+0", 0),
        ("-0", 0),
        ("0s", 0),
        ("-0s", 0),
        ("1s", 1_000_000_000),
        ("100ms", 100_000_000),
        ("1m30s", 90_000_000_000),
        ("1.5h", 5_400_000_000_000),
        ("+5s", 5_000_000_000),
        (".5s", 500_000_000),
        ("5.s", 5_000_000_000),
        ("1.s2.5ms", 1_002_500_000),
        ("10us", 10_000),
        ("10µs", 10_000),
        ("10μs", 10_000),
        ("3ns", 3),
        ("1.9ns", 1),
        ("39h9m14.425s", 140_954_425_000_000),
        ("30s1h", 3_630_000_000_000),
        ("0.3333333333333333333h", 1_200_000_000_000),
        ("0.100000000000000000000h", 360_000_000_000),
        ("9223372036854775807ns", 9_223_372_036_854_775_807),
    ];
    for &(text, nanoseconds) in cases {
        assert_eq!(parse(text), Ok(Duration::from_nanos(nanoseconds)), "{text}");
    }
}

#[test]
fn errors_are_those_of_go() {
    let cases = [
        ("", r#"time: invalid duration """#),
        ("-", r#"time: invalid duration "-""#),
        ("s", r#"time: invalid duration "s""#),
        (".", r#"time: invalid duration ".""#),
        (".s", r#"time: invalid duration ".s""#),
        ("ten", r#"time: invalid duration "ten""#),
        (" 1s", r#"time: invalid duration " 1s""#),
        ("3000000h", r#"time: invalid duration "3000000h""#),
        (
            "9223372036854775808ns",
            r#"time: invalid duration "9223372036854775808ns""#,
        ),
        (
            "99999999999999999999s",
            r#"time: invalid duration "99999999999999999999s""#,
        ),
        ("5", r#"time: missing unit in duration "5""#),
        ("1s5", r#"time: missing unit in duration "1s5""#),
        ("1d", r#"time: unknown unit "d" in duration "1d""#),
        ("1 s", r#"time: unknown unit " s" in duration "1 s""#),
        ("1S", r#"time: unknown unit "S" in duration "1S""#),
        ("-1s", r#"duration "-1s" must not be negative"#),
    ];
    for (text, message) in cases {
        assert_eq!(parse(text).unwrap_err().to_string(), message, "{text}");
    }
}

proptest! {
    #[test]
    fn whole_numbers_of_every_unit_are_exact(h in 0..1000_u64, m in 0..100_u64, s in 0..100_u64, ms in 0..5000_u64) {
        let text = format!("{h}h{m}m{s}s{ms}ms");
        prop_assert_eq!(parse(&text).unwrap(), Duration::from_millis(((h * 60 + m) * 60 + s) * 1000 + ms));
    }

    #[test]
    fn no_text_panics(text in "[-+.0-9nuµmsh ]{0,40}|.{0,20}") {
        let _ = parse(&text);
    }
}
