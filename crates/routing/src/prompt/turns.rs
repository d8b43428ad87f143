//! Chat turns in ChatML: `<|im_start|>ROLE\nCONTENT<|im_end|>\n`.

use super::Piece;
use crate::request::json::{Cursor, Malformed};
use crate::request::value::{Counted, Text, Value};
use std::ops::ControlFlow;

const START: &str = "<|im_start|>";
const AFTER_ROLE: &str = "\n";
const BETWEEN_PARTS: &str = "\n";
const END: &str = "<|im_end|>\n";
/// Characters of a turn without its role and its texts.
const MARKS: u64 = (START.len() + AFTER_ROLE.len() + END.len()) as u64;

/// Turns where the body spells them, kept while it is read.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns<'a> {
    // A plain vector: covariant, so that a prompt can be lent for a shorter time than the body lives.
    texts: Vec<TurnText<'a>>,
    /// Of the rendered turns.
    characters: u64,
}

/// One text of a turn. A turn has at least one, which may be empty.
#[derive(Clone, Copy, Debug)]
struct TurnText<'a> {
    /// Whose turn begins with this text; `None` when it belongs to the turn of the text before it.
    role: Option<Text<'a>>,
    text: Text<'a>,
}

impl<'a> Turns<'a> {
    /// One turn of `role`, whose content is at the cursor: a string or a list of parts; `None` for other values.
    pub(super) fn one(
        role: &'static str,
        cursor: &mut Cursor<'a>,
    ) -> Result<Option<Self>, Malformed> {
        let mut turns = Self::default();
        let content = turns.read_content(cursor)?;
        Ok(content.map(|characters| {
            turns.begin(0, Text::plain(role));
            turns.characters = MARKS + role.len() as u64 + characters;
            turns
        }))
    }

    /// The list of messages at the cursor; `None` for other values. A message without text is a turn with empty text;
    /// one without a role is none.
    pub(super) fn messages(cursor: &mut Cursor<'a>) -> Result<Option<Self>, Malformed> {
        Self::list(cursor, |_| true, |_| true)
    }

    /// The list of items at the cursor, of which only messages are turns; `None` for other values.
    pub(super) fn items(cursor: &mut Cursor<'a>) -> Result<Option<Self>, Malformed> {
        let message = |kind| has_kind(kind, &["", "message"]);
        Self::list(cursor, message, |role| !role.is_empty())
    }

    fn list(
        cursor: &mut Cursor<'a>,
        right_kind: impl Fn(Value<'a>) -> bool,
        right_role: impl Fn(Text<'a>) -> bool,
    ) -> Result<Option<Self>, Malformed> {
        if cursor.peek() != Some(b'[') {
            return cursor.value().map(|_| None);
        }
        cursor.enter();
        let mut turns = Self::default();
        let mut first = true;
        while cursor.next_element(std::mem::take(&mut first))? {
            turns.read_message(cursor, &right_kind, &right_role)?;
        }
        Ok(Some(turns))
    }

    /// Reads the element at the cursor. Of several members of one name the last counts.
    fn read_message(
        &mut self,
        cursor: &mut Cursor<'a>,
        right_kind: &impl Fn(Value<'a>) -> bool,
        right_role: &impl Fn(Text<'a>) -> bool,
    ) -> Result<(), Malformed> {
        if cursor.peek() != Some(b'{') {
            return cursor.value().map(drop);
        }
        cursor.enter();
        let turn = self.texts.len();
        let (mut role, mut kept, mut characters) = (None::<Counted<'_>>, true, 0);
        let mut first = true;
        while let Some(key) = cursor.next_key(std::mem::take(&mut first))? {
            match &*key.decoded() {
                b"role" => role = cursor.counted()?,
                b"content" => {
                    self.texts.truncate(turn);
                    characters = self.read_content(cursor)?.unwrap_or_default();
                }
                b"type" => kept = right_kind(cursor.value()?),
                _ => drop(cursor.value()?),
            }
        }
        match role.filter(|role| kept && right_role(role.text)) {
            Some(role) => {
                self.begin(turn, role.text);
                self.characters += MARKS + role.characters + characters;
            }
            None => self.texts.truncate(turn),
        }
        Ok(())
    }

    /// Makes the texts from number `turn` on a turn.
    fn begin(&mut self, turn: usize, role: Text<'a>) {
        match self.texts.get_mut(turn) {
            Some(text) => text.role = Some(role),
            None => self.texts.push(TurnText {
                role: Some(role),
                text: Text::default(),
            }),
        }
    }

    /// Reads the content at the cursor, keeps its texts and gives their characters with the line breaks that join them;
    /// `None` when it is neither a string nor a list.
    fn read_content(&mut self, cursor: &mut Cursor<'a>) -> Result<Option<u64>, Malformed> {
        if cursor.peek() != Some(b'[') {
            let string = cursor.counted()?;
            return Ok(string.map(|string| self.keep(string)));
        }
        cursor.enter();
        let mut characters = None;
        let mut first = true;
        while cursor.next_element(std::mem::take(&mut first))? {
            if let Some(text) = read_part(cursor)? {
                let before = characters.map_or(0, |before| before + BETWEEN_PARTS.len() as u64);
                characters = Some(before + self.keep(text));
            }
        }
        Ok(Some(characters.unwrap_or_default()))
    }

    fn keep(&mut self, Counted { text, characters }: Counted<'a>) -> u64 {
        self.texts.push(TurnText { role: None, text });
        characters
    }

    /// These turns, then the others.
    pub(super) fn then(mut self, mut others: Self) -> Self {
        if self.texts.is_empty() {
            return others;
        }
        self.texts.append(&mut others.texts);
        self.characters += others.characters;
        self
    }

    /// Characters of the rendered turns.
    pub(super) fn characters(&self) -> u64 {
        self.characters
    }

    /// Bytes of the rendered turns, and what escapes take more.
    pub(super) fn spelled_bytes(&self) -> usize {
        let mut bytes = 0;
        let _ = self.visit(&mut |piece| {
            bytes += match piece {
                Piece::Mark(mark) => mark.len(),
                Piece::Text(text) => text.spelled_bytes(),
            };
            ControlFlow::Continue(())
        });
        bytes
    }

    /// Visits all pieces of the rendered turns in order.
    pub(super) fn visit(
        &self,
        visit: &mut impl FnMut(Piece<'_>) -> ControlFlow<()>,
    ) -> ControlFlow<()> {
        let mut end = "";
        for &TurnText { role, text } in &self.texts {
            match role {
                Some(role) => {
                    visit(Piece::Mark(end))?;
                    visit(Piece::Mark(START))?;
                    visit(Piece::Text(role))?;
                    visit(Piece::Mark(AFTER_ROLE))?;
                }
                None => visit(Piece::Mark(BETWEEN_PARTS))?,
            }
            visit(Piece::Text(text))?;
            end = END;
        }
        visit(Piece::Mark(end))
    }
}

/// Reads the part at the cursor; its text, if it is one that holds text.
fn read_part<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Counted<'a>>, Malformed> {
    if cursor.peek() != Some(b'{') {
        return cursor.value().map(|_| None);
    }
    cursor.enter();
    let (mut text, mut kept) = (None, true);
    let mut first = true;
    while let Some(key) = cursor.next_key(std::mem::take(&mut first))? {
        match &*key.decoded() {
            b"text" => text = cursor.counted()?,
            b"type" => kept = has_kind(cursor.value()?, &["text", "input_text", "output_text"]),
            _ => drop(cursor.value()?),
        }
    }
    Ok(text.filter(|_| kept))
}

/// Whether a `type` is `null`, which is like none, or one of these.
fn has_kind(kind: Value<'_>, right: &[&str]) -> bool {
    kind.is_null()
        || kind
            .text()
            .is_some_and(|kind| right.iter().any(|right| kind.is(right)))
}
