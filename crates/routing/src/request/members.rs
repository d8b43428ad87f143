//! The top-level members of a JSON body, and edits that set or remove some of them.

use super::edit::{Edit, Edits};
use super::json::Cursor;
use super::value::{Text, Value};

/// The members of a body that is one JSON object.
#[derive(Debug)]
pub(crate) struct Members<'a> {
    /// Right behind the opening brace.
    inside: usize,
    list: Vec<Member<'a>>,
}

#[derive(Debug)]
struct Member<'a> {
    /// Where the key's opening quote is, in bytes of the body.
    start: usize,
    key: Text<'a>,
    value: Value<'a>,
}

impl<'a> Members<'a> {
    /// Reads a body to its end. `None` when it is anything but a JSON object.
    pub(crate) fn of(body: &'a [u8]) -> Option<Self> {
        let mut cursor = Cursor::document(body).ok()?;
        if cursor.peek() != Some(b'{') {
            return None;
        }
        cursor.enter();
        let inside = cursor.at();
        let mut list: Vec<Member<'a>> = Vec::with_capacity(16);
        loop {
            let before = cursor.at();
            let Some(key) = cursor.next_key(list.is_empty()).ok()? else {
                break;
            };
            // Between two members there are a comma and white space only.
            let gap = body[before..].iter().position(|&b| b == b'"')?;
            let value = cursor.value().ok()?;
            list.push(Member {
                start: before + gap,
                key,
                value,
            });
        }
        cursor.end().ok()?;
        Some(Self { inside, list })
    }

    /// The value of the last member of this name: the one that counts in the engines.
    pub(crate) fn get(&self, name: &str) -> Option<Value<'a>> {
        let mut found = self.list.iter().rev().filter(|m| m.key.is(name));
        found.next().map(|member| member.value)
    }

    /// No change yet.
    pub(crate) fn splice(&self) -> Splice<'_> {
        Splice {
            members: self,
            removed: vec![false; self.list.len()],
            set: Edits::new(),
            added: Vec::new(),
        }
    }
}

/// Changes of some members.
#[derive(Debug)]
pub(crate) struct Splice<'m> {
    members: &'m Members<'m>,
    removed: Vec<bool>,
    set: Edits,
    /// New members as they are spelled, each behind a comma.
    added: Vec<u8>,
}

impl Splice<'_> {
    /// Takes out all members of this name.
    pub(crate) fn remove(&mut self, name: &str) {
        for (member, removed) in self.members.list.iter().zip(&mut self.removed) {
            *removed |= member.key.is(name);
        }
    }

    /// Gives all members of this name, or else a new one, this value. `name` needs no escape; a name is set once.
    pub(crate) fn set(&mut self, name: &str, json: &[u8]) {
        let before = self.set.len();
        let found = self.members.list.iter().filter(|m| m.key.is(name));
        self.set.extend(found.map(|member| Edit {
            range: member.value.range(),
            replacement: json.into(),
        }));
        if self.set.len() == before {
            self.added.extend_from_slice(b",\"");
            self.added.extend_from_slice(name.as_bytes());
            self.added.extend_from_slice(b"\":");
            self.added.extend_from_slice(json);
        }
    }

    /// The edits, in order.
    pub(crate) fn finish(self) -> Edits {
        let Self {
            members,
            removed,
            set: mut edits,
            added,
        } = self;
        let list = &members.list;
        let end = |i: usize| list[i].value.range().end;
        if !added.is_empty() {
            let last = removed.iter().rposition(|removed| !removed);
            let (at, text) = match last {
                Some(last) => (end(last), &added[..]),
                None => (members.inside, &added[1..]),
            };
            edits.push(Edit {
                range: at..at,
                replacement: text.into(),
            });
        }
        // A run goes with the comma before it, or, where nothing is before it, with the comma behind it.
        let mut first = 0;
        for run in removed.chunk_by(|a, b| a == b) {
            let next = first + run.len();
            if run.first() == Some(&true) {
                let start = match first.checked_sub(1) {
                    Some(before) => end(before),
                    None => list[first].start,
                };
                let stop = match list.get(next) {
                    Some(behind) if first == 0 => behind.start,
                    _ => end(next - 1),
                };
                edits.push(Edit {
                    range: start..stop,
                    replacement: Box::default(),
                });
            }
            first = next;
        }
        // Stable: what is added in front of what is removed stays in front.
        edits.sort_by_key(|edit| edit.range.start);
        edits
    }
}
