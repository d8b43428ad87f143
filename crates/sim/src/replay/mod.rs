//! A trace, played in virtual time.
//!
//! Requests come as the trace says. A router of this project decides: [`routing`]'s own functions read the request, find its
//! server, filter, score, pick and record. Only what lies between is replaced: in place of a network and GPUs there is
//! [`crate::model`], and time is a number. The same workload, setup and seed give the same outcome to the last digit.
//!
//! # What is not modelled
//! Everything that [`crate`] does not model of an engine; time on the network and in the router itself; clients that
//! leave; prefill and decode on different pods; sessions; pods that serve some of the models only (each serves all, with cache
//! entries of their own); a router's view of another one's requests except through the
//! engines' metrics.

mod collect;
mod fleet;
mod oracle;
mod outcome;
mod page;
mod router;
mod tune;
mod workload;
mod world;

pub use fleet::{Happening, Setup, What};
pub use outcome::{Outcome, Point, Series};
pub use page::page;
pub use tune::{Change, Difference, Objective, Run, Settings, Trial, Tuned, Tuning, tune};
pub use workload::{Content, Generator, Request, Segment, Shaping, TraceError, Workload, generate};
pub use world::{Choice, SetupError, replay};
