//! The engine's HTTP API: requests in, answers and errors out.

mod answer;
mod chat;
mod completions;
mod error;
mod field;
mod info;
mod messages;
mod request;
mod responses;

pub(super) use answer::Answer;
pub(super) use error::{ApiError, Shape};
pub(super) use info::{count_tokens, models, tokenize};
pub(super) use request::{Api, Generate};
