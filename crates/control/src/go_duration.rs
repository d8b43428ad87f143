//! Durations as Go writes them: `300ms`, `1.5h`, `2h45m`.
//!
//! The grammar, the units and the error texts are those of Go's `time.ParseDuration`, as manifests and environment
//! variables of the original router are read by it. A negative duration is an error here: nothing takes one.

use std::time::Duration;

/// Why a text is no duration.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Not a sequence of numbers with units, or beyond about 292 years.
    #[error("time: invalid duration {0:?}")]
    Invalid(String),
    /// A number without a unit. Only `0` needs none.
    #[error("time: missing unit in duration {0:?}")]
    MissingUnit(String),
    /// A unit that is none of `ns`, `us`, `µs`, `ms`, `s`, `m` and `h`.
    #[error("time: unknown unit {unit:?} in duration {text:?}")]
    UnknownUnit {
        /// The unit.
        unit: String,
        /// The whole text.
        text: String,
    },
    /// Below zero.
    #[error("duration {0:?} must not be negative")]
    Negative(String),
}

/// Reads a duration.
///
/// # Errors
/// See [`DurationError`].
pub fn parse(text: &str) -> Result<Duration, DurationError> {
    let invalid = || DurationError::Invalid(text.to_owned());
    let (negative, mut rest) = match text.as_bytes().first() {
        Some(b'-') => (true, &text[1..]),
        Some(b'+') => (false, &text[1..]),
        _ => (false, text),
    };
    if rest == "0" {
        return Ok(Duration::ZERO);
    }
    if rest.is_empty() {
        return Err(invalid());
    }
    let mut total: u64 = 0;
    while !rest.is_empty() {
        let (whole, after) = digits(rest);
        let (fraction, after) = after.strip_prefix('.').map_or(("", after), digits);
        if whole.is_empty() && fraction.is_empty() {
            return Err(invalid());
        }
        let end = after
            .find(|c: char| c == '.' || c.is_ascii_digit())
            .unwrap_or(after.len());
        let (unit, next) = after.split_at(end);
        if unit.is_empty() {
            return Err(DurationError::MissingUnit(text.to_owned()));
        }
        let scale = nanoseconds(unit).ok_or_else(|| DurationError::UnknownUnit {
            unit: unit.to_owned(),
            text: text.to_owned(),
        })?;
        let value = scaled(whole, fraction, scale).ok_or_else(invalid)?;
        // Go counts in i64.
        total = total
            .checked_add(value)
            .filter(|&t| i64::try_from(t).is_ok())
            .ok_or_else(invalid)?;
        rest = next;
    }
    if negative && total > 0 {
        return Err(DurationError::Negative(text.to_owned()));
    }
    Ok(Duration::from_nanos(total))
}

fn digits(text: &str) -> (&str, &str) {
    text.split_at(
        text.find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len()),
    )
}

fn nanoseconds(unit: &str) -> Option<u64> {
    Some(match unit {
        "ns" => 1,
        // Both spellings of micro: U+00B5 and U+03BC.
        "us" | "\u{b5}s" | "\u{3bc}s" => 1_000,
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    })
}

/// `whole.fraction * scale`, rounded down; `None` beyond u64.
fn scaled(whole: &str, fraction: &str, scale: u64) -> Option<u64> {
    let whole: u64 = if whole.is_empty() {
        0
    } else {
        whole.parse().ok()?
    };
    whole.checked_mul(scale)?.checked_add(part(fraction, scale))
}

/// `0.fraction * scale`. In floating point as in Go, so that `0.3333333333333333333h` is 20 minutes here as well.
fn part(fraction: &str, scale: u64) -> u64 {
    let (mut value, mut divisor) = (0_u64, 1.0);
    for digit in fraction.bytes() {
        let next = value
            .checked_mul(10)
            .and_then(|v| v.checked_add(u64::from(digit - b'0')));
        // Go counts in i64, and leaves out the digits that no longer fit.
        let Some(next) = next.filter(|&v| i64::try_from(v).is_ok()) else {
            break;
        };
        value = next;
        divisor *= 10.0;
    }
    (value as f64 * (scale as f64 / divisor)) as u64
}
