//! Chat turns in ChatML: `<|im_start|>ROLE\nCONTENT<|im_end|>\n`.

use super::Piece;
use crate::request::json::{Cursor, Malformed};
use crate::request::value::{Text, Value};
use std::ops::ControlFlow;

/// Visits a system text, then messages. A message without text is a turn with empty text; one without a role is none.
pub(super) fn messages(
    system: Option<Value<'_>>,
    messages: Option<Value<'_>>,
    visit: &mut impl FnMut(Piece<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if let Some(system) = system.filter(|s| s.text().is_some() || s.is_array()) {
        turn(Text::plain("system"), Some(system), visit)?;
    }
    for message in messages
        .into_iter()
        .flat_map(|list| list.read_elements(Members::read))
    {
        let Members { role, content, .. } = message;
        if let Some(role) = role.and_then(Value::text) {
            turn(role, content, visit)?;
        }
    }
    ControlFlow::Continue(())
}

/// Visits instructions, then an input: a string of the user, or a list of items of which only messages are rendered.
pub(super) fn items(
    instructions: Option<Value<'_>>,
    input: Option<Value<'_>>,
    visit: &mut impl FnMut(Piece<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    if let Some(text) = instructions.filter(|i| i.text().is_some_and(|text| !text.is_empty())) {
        turn(Text::plain("developer"), Some(text), visit)?;
    }
    let Some(input) = input else {
        return ControlFlow::Continue(());
    };
    if input.text().is_some() {
        return turn(Text::plain("user"), Some(input), visit);
    }
    for item in input.read_elements(Members::read) {
        let Members {
            kind,
            role,
            content,
            ..
        } = item;
        let is_message = kind.is_none_or(|kind| {
            kind.is_null()
                || kind
                    .text()
                    .is_some_and(|kind| kind.is_empty() || kind.is("message"))
        });
        if let Some(role) = role
            .and_then(Value::text)
            .filter(|role| is_message && !role.is_empty())
        {
            turn(role, content, visit)?;
        }
    }
    ControlFlow::Continue(())
}

fn turn(
    role: Text<'_>,
    content: Option<Value<'_>>,
    visit: &mut impl FnMut(Piece<'_>) -> ControlFlow<()>,
) -> ControlFlow<()> {
    visit(Piece::Mark("<|im_start|>"))?;
    visit(Piece::Text(role))?;
    visit(Piece::Mark("\n"))?;
    if let Some(content) = content {
        match content.text() {
            Some(text) => visit(Piece::Text(text))?,
            None => parts(content, visit)?,
        }
    }
    visit(Piece::Mark("<|im_end|>\n"))
}

/// The texts of a list of content parts, joined by line breaks; nothing for other values.
fn parts(list: Value<'_>, visit: &mut impl FnMut(Piece<'_>) -> ControlFlow<()>) -> ControlFlow<()> {
    let mut texts = list.read_elements(Members::read).filter_map(part_text);
    if let Some(first) = texts.next() {
        visit(Piece::Text(first))?;
    }
    for text in texts {
        visit(Piece::Mark("\n"))?;
        visit(Piece::Text(text))?;
    }
    ControlFlow::Continue(())
}

/// The text of a part that holds text.
fn part_text(part: Members<'_>) -> Option<Text<'_>> {
    let Members { kind, text, .. } = part;
    let holds_text = kind.is_none_or(|kind| {
        kind.is_null()
            || kind.text().is_some_and(|kind| {
                kind.is("text") || kind.is("input_text") || kind.is("output_text")
            })
    });
    text.and_then(Value::text).filter(|_| holds_text)
}

/// The members that matter of a message, an item or a part; of several of one name the last counts.
#[derive(Default)]
struct Members<'a> {
    kind: Option<Value<'a>>,
    role: Option<Value<'a>>,
    content: Option<Value<'a>>,
    text: Option<Value<'a>>,
}

impl<'a> Members<'a> {
    /// Reads the value at the cursor; one that is no object has none of them.
    fn read(cursor: &mut Cursor<'a>) -> Result<Self, Malformed> {
        let mut members = Self::default();
        if cursor.peek() != Some(b'{') {
            cursor.value()?;
            return Ok(members);
        }
        cursor.enter();
        let mut first = true;
        while let Some(key) = cursor.next_key(std::mem::take(&mut first))? {
            let value = cursor.value()?;
            match &*key.decoded() {
                b"type" => members.kind = Some(value),
                b"role" => members.role = Some(value),
                b"content" => members.content = Some(value),
                b"text" => members.text = Some(value),
                _ => {}
            }
        }
        Ok(members)
    }
}
