//! Which members of a body the prompt is in, kept while the body is read.

use super::completion::Completion;
use super::turns::Turns;
use super::{Prompt, Shape};
use crate::request::Api;
use crate::request::json::{Cursor, Malformed};

/// The top-level members of a body that a prompt may be in. Of several of one name the last counts.
#[derive(Debug, Default)]
pub(crate) struct Fields<'a> {
    prompt: Completion<'a>,
    /// A list of messages.
    messages: Option<Turns<'a>>,
    system: Option<Turns<'a>>,
    input: Option<Turns<'a>>,
    instructions: Option<Turns<'a>>,
}

impl<'a> Fields<'a> {
    /// Reads the member at the cursor if a prompt of this API may be in it; otherwise leaves the cursor where it is and
    /// returns false.
    pub(crate) fn read(
        &mut self,
        api: Api,
        key: &[u8],
        cursor: &mut Cursor<'a>,
    ) -> Result<bool, Malformed> {
        let other = matches!(api, Api::Other(_));
        let completion = other || api == Api::Completions;
        let chat = other || matches!(api, Api::Chat | Api::Messages);
        let responses = other || api == Api::Responses;
        match key {
            b"prompt" if completion => self.prompt = Completion::read(cursor)?,
            b"messages" if chat => self.messages = Turns::messages(cursor)?,
            b"system" if chat => self.system = Turns::one("system", cursor)?,
            b"instructions" if responses => self.instructions = instructions(cursor)?,
            b"input" if responses => self.input = input(cursor)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// The prompt of a request to this API.
    pub(crate) fn prompt(self, api: Api) -> Prompt<'a> {
        match (api, self.prompt) {
            (Api::Completions | Api::Other(_), Completion::Text(string)) => Prompt {
                shape: Shape::Text(string.text),
                characters: string.characters,
            },
            (Api::Completions | Api::Other(_), Completion::Ids(list, count)) => Prompt {
                shape: Shape::Ids(list),
                characters: 4 * count,
            },
            (Api::Completions, Completion::Nothing) => Prompt::default(),
            (Api::Chat | Api::Messages, _) => turns(self.system, self.messages),
            (Api::Other(_), _) if self.messages.is_some() => turns(self.system, self.messages),
            (Api::Responses | Api::Other(_), _) => turns(self.instructions, self.input),
        }
    }
}

fn turns<'a>(before: Option<Turns<'a>>, turns: Option<Turns<'a>>) -> Prompt<'a> {
    let turns = before.unwrap_or_default().then(turns.unwrap_or_default());
    Prompt {
        characters: turns.characters(),
        shape: Shape::Turns(turns),
    }
}

/// Instructions are a string; an empty one is none.
fn instructions<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Turns<'a>>, Malformed> {
    if cursor.peek() != Some(b'"') {
        return cursor.value().map(|_| None);
    }
    let start = cursor.at();
    let turn = Turns::one("developer", cursor)?;
    let empty = cursor
        .since(start)
        .text()
        .is_some_and(|text| text.is_empty());
    Ok(turn.filter(|_| !empty))
}

/// An input is a string of the user or a list of items.
fn input<'a>(cursor: &mut Cursor<'a>) -> Result<Option<Turns<'a>>, Malformed> {
    match cursor.peek() {
        Some(b'"') => Turns::one("user", cursor),
        _ => Turns::items(cursor),
    }
}
