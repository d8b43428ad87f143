//! Faults, and the scenarios that they are part of.

use crate::Gate;

/// What happens to a request instead of the usual answer.
#[derive(Clone, Debug)]
pub enum Fault {
    /// An answer with this status code, reason and message.
    Refuse(u16, &'static str, &'static str),
    /// The versions that the request goes on from are no longer known: 410, for a watch as an event after its head.
    Gone,
    /// The connection is cut: a list in the middle of its body, a watch after so many events.
    CutAfter(usize),
    /// The first event of a watch is none that there is.
    Unreadable,
    /// The answer waits until the test lets it go on.
    Slow(Gate),
    /// There is no answer at all.
    Hang,
    /// The usual answer; the scenario only wants to see the request.
    Usual,
}

/// What is asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    List,
    Watch,
    Write,
}

/// One step of a scenario: the next such request meets this fault.
#[derive(Clone, Debug)]
pub struct Step {
    pub(super) verb: Verb,
    pub(super) resource: &'static str,
    pub(super) fault: Fault,
}

/// The next list of a resource (its plural), or the next page of one.
#[must_use]
pub fn on_list(resource: &'static str, fault: Fault) -> Step {
    Step {
        verb: Verb::List,
        resource,
        fault,
    }
}

/// The next watch of a resource.
#[must_use]
pub fn on_watch(resource: &'static str, fault: Fault) -> Step {
    Step {
        verb: Verb::Watch,
        resource,
        fault,
    }
}

/// The next written status of a resource.
#[must_use]
pub fn on_write(resource: &'static str, fault: Fault) -> Step {
    Step {
        verb: Verb::Write,
        resource,
        fault,
    }
}
