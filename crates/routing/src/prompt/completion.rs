//! The prompt of a completion: a string, token ids, or a list of either, of which the first is taken.

use super::ids;
use crate::request::json::{Cursor, Malformed, Nesting};
use crate::request::value::{Counted, Value};

/// What was found.
#[derive(Clone, Copy, Debug, Default)]
pub(super) enum Completion<'a> {
    /// None of them.
    #[default]
    Nothing,
    Text(Counted<'a>),
    /// A list of token ids, and how many there are.
    Ids(Value<'a>, u64),
}

impl<'a> Completion<'a> {
    /// Reads the value at the cursor, however deep its lists are.
    pub(super) fn read(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let mut open = Nesting::default();
        let mut list = cursor.at();
        let mut found = Self::Nothing;
        let mut empty = false;
        while !empty && cursor.peek() == Some(b'[') {
            list = cursor.at();
            cursor.enter();
            open.push(false);
            empty = !cursor.next_element(true)?;
        }
        let in_list = open.innermost_is_object().is_some();
        match cursor.peek() {
            _ if empty => open.pop(),
            Some(b'-' | b'0'..=b'9') if in_list => {
                let count = read_ids(cursor)?;
                open.pop();
                found = Self::Ids(cursor.since(list), count);
            }
            _ => {
                if let Some(string) = cursor.counted()? {
                    found = Self::Text(string);
                }
            }
        }
        cursor.close(open, false)?;
        Ok(found)
    }
}

/// Reads the list whose first element is at the cursor to its end and counts its token ids.
fn read_ids(cursor: &mut Cursor<'_>) -> Result<u64, Malformed> {
    let mut count = 0;
    loop {
        count += u64::from(ids::id(cursor.value()?).is_some());
        if !cursor.next_element(false)? {
            return Ok(count);
        }
    }
}
