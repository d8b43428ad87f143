//! Prompts that are token ids.

use crate::request::value::Value;
use std::ops::ControlFlow;

/// Gives each id as four bytes, little-endian.
pub(super) fn pieces(
    list: Value<'_>,
    sink: &mut impl FnMut(&[u8]) -> ControlFlow<()>,
) -> ControlFlow<()> {
    each(list).try_for_each(|id| sink(&id.to_le_bytes()))
}

/// The ids; elements that are no integers are passed over.
fn each(list: Value<'_>) -> impl Iterator<Item = u32> {
    list.elements().filter_map(id)
}

/// The low 32 bits of an integer of any size, in two's complement; `None` for other values.
pub(super) fn id(value: Value<'_>) -> Option<u32> {
    let spelling = value.number()?;
    let digits = spelling.strip_prefix(b"-").unwrap_or(spelling);
    let mut low = 0u32;
    for digit in digits {
        if !digit.is_ascii_digit() {
            return None;
        }
        low = low.wrapping_mul(10).wrapping_add(u32::from(digit - b'0'));
    }
    Some(if digits.len() < spelling.len() {
        low.wrapping_neg()
    } else {
        low
    })
}
