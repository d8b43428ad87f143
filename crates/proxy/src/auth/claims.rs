//! What a token whose signature holds must say.

use routing::session::Claims;
use serde_json::Value;

/// How far an issuer's clock may be ahead of ours, in seconds: for `iat` as in the original, and for `nbf`, which
/// issuers set to the same moment. A token that has expired has expired: there is no leeway for `exp`.
const LEEWAY: f64 = 60.0;
/// Longest part of a claim that an answer repeats, in characters.
const SHOWN: usize = 200;

/// Whose tokens are accepted.
#[derive(Clone, Debug)]
pub(super) struct Rules {
    /// What `iss` must be.
    pub(super) issuer: String,
    /// One of these must be in `aud`; with none `aud` is not looked at.
    pub(super) audiences: Vec<String>,
}

impl Rules {
    /// Checks the claims at `now`, in seconds since 1970.
    ///
    /// # Errors
    /// What is wrong, in the words of the original router.
    pub(super) fn check(&self, claims: &Claims, now: f64) -> Result<(), String> {
        let invalid = |what: &str, why: String| {
            Err(format!(
                "failed to validate claims: {what} validation failed: {why}"
            ))
        };
        if claims.get("iss").and_then(Value::as_str) != Some(&self.issuer) {
            let got = claims.get("iss").map_or_else(String::new, shown);
            let why = format!("invalid issuer: expected {}, got {got}", self.issuer);
            return invalid("issuer", why);
        }
        if let Some(why) = self.wrong_audience(claims.get("aud")) {
            return invalid("audience", why);
        }
        if let Some(why) = wrong_time(claims, now) {
            return invalid("time claims", why);
        }
        match claims.get("sub").and_then(Value::as_str) {
            None | Some("") => Err("token has no subject claim".into()),
            Some(_) => Ok(()),
        }
    }

    fn wrong_audience(&self, found: Option<&Value>) -> Option<String> {
        if self.audiences.is_empty() {
            return None;
        }
        let Some(found) = found.filter(|aud| !aud.is_null()) else {
            return Some("audience claim missing".into());
        };
        let known = |aud: &Value| {
            aud.as_str()
                .is_some_and(|a| self.audiences.iter().any(|k| k == a))
        };
        let matches = match found {
            Value::Array(list) => list.iter().any(known),
            one => known(one),
        };
        (!matches).then(|| {
            let wanted = self.audiences.join(" ");
            let got = shown(found);
            format!("audience mismatch: expected one of [{wanted}], got {got}")
        })
    }
}

/// RFC 7519, sections 4.1.4 to 4.1.6. Times are numbers of seconds, with fractions or without.
fn wrong_time(claims: &Claims, now: f64) -> Option<String> {
    let time = |name: &str| match claims.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_f64() {
            Some(seconds) => Ok(Some(seconds)),
            None => Err(format!("claim {name} is not a number")),
        },
    };
    let times = (|| Ok((time("exp")?, time("nbf")?, time("iat")?)))();
    match times {
        Err(why) => Some(why),
        Ok((None, ..)) => Some("expiration claim (exp) missing".into()),
        Ok((Some(exp), ..)) if exp <= now => Some("token has expired".into()),
        Ok((_, Some(nbf), _)) if nbf > now + LEEWAY => Some("token not yet valid".into()),
        Ok((_, _, Some(iat))) if iat > now + LEEWAY => Some("token issued in the future".into()),
        Ok(_) => None,
    }
}

fn shown(value: &Value) -> String {
    let text = match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    text.chars()
        .filter(|c| !c.is_control())
        .take(SHOWN)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    const NOW: f64 = 1_800_000_000.0;

    fn check(audiences: &[&str], changes: Value) -> Result<(), String> {
        let mut claims =
            json!({"iss": "https://issuer", "sub": "u", "exp": NOW + 60.0, "aud": "team"});
        for (name, value) in changes.as_object().unwrap() {
            claims[name] = value.clone();
        }
        let claims: Claims = claims.as_object().unwrap().clone();
        let claims = claims
            .into_iter()
            .filter(|(_, v)| *v != json!("<none>"))
            .collect();
        let rules = Rules {
            issuer: "https://issuer".into(),
            audiences: audiences.iter().map(|&a| a.to_owned()).collect(),
        };
        rules.check(&claims, NOW)
    }

    fn reason(audiences: &[&str], changes: Value) -> String {
        check(audiences, changes).expect_err("refused")
    }

    #[test]
    fn what_is_right_passes() {
        for changes in [
            json!({}),
            json!({"exp": NOW + 0.5, "nbf": NOW, "iat": NOW}),
            json!({"nbf": NOW + 60.0, "iat": NOW + 60.0}),
            json!({"aud": "<none>"}),
            json!({"aud": 7, "nbf": null}),
        ] {
            assert_eq!(check(&[], changes.clone()), Ok(()), "{changes}");
        }
        for aud in [json!("team"), json!(["x", "team"]), json!(["spare"])] {
            assert_eq!(
                check(&["team", "spare"], json!({"aud": aud})),
                Ok(()),
                "{aud}"
            );
        }
    }

    #[test]
    fn the_issuer_must_be_the_one() {
        let text = "failed to validate claims: issuer validation failed: invalid issuer: expected https://issuer, got ";
        for (iss, got) in [
            (json!("https://evil"), "https://evil"),
            (json!("<none>"), ""),
            (json!(null), "null"),
            (json!(["https://issuer"]), "[\"https://issuer\"]"),
            (json!("https://issuer/"), "https://issuer/"),
        ] {
            assert_eq!(reason(&[], json!({"iss": iss})), format!("{text}{got}"));
        }
        let long = reason(&[], json!({"iss": "x\r\n".repeat(1000)}));
        assert_eq!(long, format!("{text}{}", "x".repeat(200)));
    }

    #[test]
    fn a_configured_audience_must_be_there() {
        let text = "failed to validate claims: audience validation failed: ";
        for aud in [json!("<none>"), json!(null)] {
            assert_eq!(
                reason(&["a"], json!({"aud": aud})),
                format!("{text}audience claim missing")
            );
        }
        for (aud, got) in [
            (json!("team2"), "team2"),
            (json!(["x", "y"]), "[\"x\",\"y\"]"),
            (json!([]), "[]"),
            (json!({"team": 1}), "{\"team\":1}"),
        ] {
            assert_eq!(
                reason(&["team", "spare"], json!({"aud": aud})),
                format!("{text}audience mismatch: expected one of [team spare], got {got}")
            );
        }
    }

    #[test]
    fn times_must_hold() {
        let text = "failed to validate claims: time claims validation failed: ";
        for (changes, why) in [
            (json!({"exp": NOW}), "token has expired"),
            (json!({"exp": NOW - 1.0}), "token has expired"),
            (json!({"exp": "<none>"}), "expiration claim (exp) missing"),
            (json!({"exp": null}), "expiration claim (exp) missing"),
            (json!({"exp": "never"}), "claim exp is not a number"),
            (json!({"nbf": NOW + 61.0}), "token not yet valid"),
            (json!({"nbf": "now"}), "claim nbf is not a number"),
            (json!({"iat": NOW + 61.0}), "token issued in the future"),
            (json!({"iat": [1]}), "claim iat is not a number"),
        ] {
            assert_eq!(reason(&[], changes), format!("{text}{why}"));
        }
    }

    #[test]
    fn there_must_be_a_subject() {
        for sub in [json!("<none>"), json!(""), json!(7)] {
            let why = reason(&[], json!({"sub": sub}));
            assert_eq!(why, "token has no subject claim");
        }
    }
}
