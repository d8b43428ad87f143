use super::*;
use crate::relay::Usage;
use proptest::prelude::*;

/// What [`USAGE`] says.
const USED: Usage = Usage {
    prompt: 9,
    completion: 3,
    total: 12,
    cached: None,
    whole_prompt: 9,
};
const USAGE: &str =
    r#"{"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}}"#;

fn event(end: &str, data: &str) -> String {
    format!("data: {data}{end}{end}")
}

fn run(pieces: &[&[u8]], hide: bool) -> (Vec<u8>, Facts) {
    let mut watch = Watch::new(b"text/event-stream; charset=utf-8", hide);
    let mut out = Vec::new();
    for piece in pieces {
        out.extend_from_slice(&watch.push(Bytes::copy_from_slice(piece)));
    }
    let (rest, facts) = watch.finish();
    out.extend_from_slice(&rest);
    (out, facts)
}

fn cut<'a>(text: &'a [u8], cuts: &[usize]) -> Vec<&'a [u8]> {
    let mut at: Vec<_> = cuts.iter().map(|c| c % (text.len() + 1)).collect();
    at.extend([0, text.len()]);
    at.sort_unstable();
    at.windows(2).map(|w| &text[w[0]..w[1]]).collect()
}

#[test]
fn the_usage_event_is_taken_out_and_nothing_else() {
    let delta = r#"{"choices":[{"delta":{"content":"x"}}],"usage":null}"#;
    let all = format!(
        "{}{}{}",
        event("\n", delta),
        event("\n", USAGE),
        event("\n", "[DONE]")
    );
    let want = format!("{}{}", event("\n", delta), event("\n", "[DONE]"));
    assert_eq!(run(&[all.as_bytes()], true).0, want.as_bytes());
    assert_eq!(run(&[all.as_bytes()], false).0, all.as_bytes());
}

#[test]
fn a_piece_of_whole_events_is_passed_on_without_a_copy() {
    let piece = Bytes::from(event("\n", r#"{"choices":[{}]}"#).repeat(3));
    let mut watch = Watch::new(b"text/event-stream", true);
    assert_eq!(watch.push(piece.clone()).as_ptr(), piece.as_ptr());
}

#[test]
fn an_endless_event_is_not_held_for_ever() {
    let mut watch = Watch::new(b"text/event-stream", true);
    let piece = Bytes::from(vec![b'x'; MAX_EVENT / 2]);
    let mut out = 0;
    for n in 1..=20 {
        out += watch.push(piece.clone()).len();
        assert!(n * piece.len() - out <= MAX_EVENT, "held after {n} pieces");
    }
}

#[test]
fn of_a_long_event_before_the_usage_event_nothing_is_lost() {
    let text = "x".repeat(MAX_EVENT + MAX_EVENT / 2);
    let lines = "data: y\n".repeat(200_000);
    for long in [event("\n", &text), event("\r\n", &text), lines + "\n"] {
        let done = event("\n", "[DONE]");
        let all = format!("{long}{}{done}", event("\n", USAGE));
        for size in [all.len(), 16 << 10, (16 << 10) + 7, 100_003, long.len() - 1] {
            let pieces: Vec<_> = all.as_bytes().chunks(size).collect();
            let (out, facts) = run(&pieces, true);
            assert!(
                out == format!("{long}{done}").as_bytes(),
                "pieces of {size}"
            );
            assert!(facts.usage.is_some() && facts.complete);
        }
    }
}

#[test]
fn an_event_of_which_the_client_has_seen_a_part_is_not_taken_out() {
    // Comments are no data: what is left of the event reads as usage alone.
    let comments = ": x\n".repeat(MAX_EVENT / 3);
    for end in ["\n\ndata: [DONE]\n\n", ""] {
        let all = format!("{comments}data: {USAGE}{end}");
        let pieces: Vec<_> = all.as_bytes().chunks(65_536).collect();
        assert!(run(&pieces, true).0 == all.as_bytes(), "{end:?}");
    }
}

#[test]
fn a_value_without_end_is_not_kept_for_ever() {
    let body = format!("{{\"usage\":{{\"x\":\"{}", "y".repeat(1 << 20));
    for step in [100, 16_384, 100_000] {
        let mut json = JsonWatch::default();
        for piece in body.as_bytes().chunks(step) {
            json.look(piece);
            assert!(json.kept() <= 16 << 10, "pieces of {step}");
        }
    }
}

#[test]
fn usage_and_abort_are_found_anywhere_in_a_long_json_body() {
    let filling = format!("\"{}\"", "x".repeat(1 << 20));
    let facts = r#""finish_reason" : "abort", "usage" : {"prompt_tokens":9,"completion_tokens":3,"total_tokens":12}"#;
    for body in [
        format!("{{{facts},\"a\":{filling}}}"),
        format!("{{\"a\":{filling},{facts},\"b\":{filling}}}"),
        format!("{{\"a\":{filling},{facts}}}"),
    ] {
        for step in [7, 100, 16_384, body.len()] {
            let mut watch = Watch::new(b"application/json", false);
            for piece in body.as_bytes().chunks(step) {
                watch.push(Bytes::copy_from_slice(piece));
                let Watch::Json(json) = &watch else {
                    unreachable!()
                };
                assert!(json.kept() <= 16 << 10);
            }
            let found = watch.finish().1;
            assert_eq!(found.usage.map(|u| u.total), Some(12), "pieces of {step}");
            assert!(found.gave_up, "pieces of {step}");
        }
    }
}

proptest! {
    #[test]
    fn cuts_of_json_change_nothing(
        cuts in prop::collection::vec(0usize..400, 0..30),
        reason in prop::sample::select(vec!["stop", "abort", "abo"]),
    ) {
        let body = format!(
            "{{\"choices\":[{{\"text\":\"\\\"usage\\\":\",\"finish_reason\":\"{reason}\"}}],\"usage\":{{\"d\":{{}},\"total_tokens\":12}},\"z\":1}}"
        );
        let mut watch = Watch::new(b"application/json", false);
        for piece in cut(body.as_bytes(), &cuts) {
            watch.push(Bytes::copy_from_slice(piece));
        }
        let facts = watch.finish().1;
        prop_assert_eq!(facts.usage.map(|u| u.total), Some(12));
        prop_assert_eq!(facts.gave_up, reason == "abort");
    }
}

proptest! {
    #[test]
    fn cuts_change_nothing(
        end in prop::sample::select(vec!["\n", "\r\n", "\r"]),
        cuts in prop::collection::vec(0usize..2000, 0..40),
        last in prop::sample::select(vec!["", "data: [DO", "data: [DONE]", ": comment\n", "\n\n"]),
        hide: bool,
    ) {
        let delta = r#"{"choices":[{"delta":{"content":"smörgås 😀"}}]}"#;
        let seen = format!(": hi{end}{end}{}event: x{end}id: 7{end}{}", event(end, delta), event(end, delta));
        let done = event(end, "[DONE]");
        let all = format!("{seen}{}{done}{last}", event(end, USAGE));
        let (out, facts) = run(&cut(all.as_bytes(), &cuts), hide);
        let want = if hide { format!("{seen}{done}{last}") } else { all.clone() };
        prop_assert_eq!(String::from_utf8(out).unwrap(), want);
        prop_assert_eq!(facts.usage, Some(USED));
        prop_assert!(!facts.gave_up);
    }
}
