//! The run itself.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bytes::Bytes;
use serde_json::{Value, json};
use tokio::{
    sync::mpsc,
    task::JoinSet,
    time::{Instant, sleep, sleep_until, timeout},
};

use super::{
    client::{Client, Failure, Reply},
    report::{PodShare, Report},
    scenario::{Scenario, User},
    scrape::{EngineSums, scrape},
};

/// How far a run is, told after each answer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Progress {
    /// Requests that the scenario has in all.
    pub planned: u64,
    /// Requests that ended, with or without success.
    pub ended: u64,
    /// Of these, failed.
    pub errors: u64,
    /// Prompt tokens so far.
    pub prompt_tokens: u64,
    /// Of these, cached.
    pub cached_tokens: u64,
}

/// Plays `scenario` against `base_url` (`http://host:port` or `host:port`) and reports what the clients saw.
///
/// A user whose request fails ends the conversation: the next question would have no answer to follow. The requests that
/// are then never sent are not counted as errors.
pub async fn play(
    base_url: &str,
    scenario: &Scenario,
    seed: u64,
    mut progress: impl FnMut(Progress),
) -> Report {
    let authority: Arc<str> = base_url
        .trim_start_matches("http://")
        .trim_end_matches('/')
        .into();
    let prompts = scenario.system_prompts(seed);
    let before = sums(&scenario.engines).await;
    let (sender, mut results) = mpsc::unbounded_channel();
    let shared = Arc::new(scenario.clone());
    let start = Instant::now();
    let mut users = JoinSet::new();
    for (number, user) in scenario.users(seed).into_iter().enumerate() {
        let system = prompts[user.group].clone();
        users.spawn(converse(
            user,
            number,
            system,
            Arc::clone(&authority),
            Arc::clone(&shared),
            start,
            sender.clone(),
        ));
    }
    drop(sender);
    let (mut replies, mut errors) = (Vec::new(), Vec::new());
    let mut so_far = Progress {
        planned: (scenario.users * scenario.turns) as u64,
        ..Progress::default()
    };
    let mut pods = HashMap::<usize, BTreeSet<String>>::new();
    while let Some((chat, result)) = results.recv().await {
        so_far.ended += 1;
        match result {
            Ok(reply) => {
                so_far.prompt_tokens += reply.prompt_tokens;
                so_far.cached_tokens += reply.cached_tokens;
                pods.entry(chat).or_default().extend(reply.pod.clone());
                replies.push(reply);
            }
            Err(error) => {
                so_far.errors += 1;
                errors.push(error.to_string());
            }
        }
        progress(so_far);
    }
    let mut report = Report::new(&replies, &errors, start.elapsed());
    let after = sums(&scenario.engines).await;
    let added: Vec<EngineSums> = after
        .iter()
        .zip(before)
        .map(|(after, before)| after.since(before))
        .collect();
    let visits: usize = pods.values().map(BTreeSet::len).sum();
    report.pods_per_chat = visits as f64 / pods.len().max(1) as f64;
    report.pods = PodShare::all(&scenario.engines, &added);
    report
}

/// Counters of all engines; zeros for one that does not answer.
async fn sums(engines: &[String]) -> Vec<EngineSums> {
    let mut sums = Vec::with_capacity(engines.len());
    for engine in engines {
        sums.push(scrape(engine).await.unwrap_or_default());
    }
    sums
}

async fn converse(
    mut user: User,
    number: usize,
    system: String,
    authority: Arc<str>,
    scenario: Arc<Scenario>,
    start: Instant,
    results: mpsc::UnboundedSender<(usize, Result<Reply, Failure>)>,
) {
    sleep_until(start + user.arrives).await;
    let mut client = Client::new(&authority, format!("chat-{number}"));
    let mut messages = vec![json!({"role": "system", "content": system})];
    for turn in 0..scenario.turns {
        if turn > 0 {
            sleep(user.think(&scenario)).await;
        }
        let (question, max_tokens) = user.question(&scenario);
        messages.push(json!({"role": "user", "content": question}));
        let body = body(&scenario.model, &messages, max_tokens);
        let result = timeout(scenario.timeout, client.chat(body))
            .await
            .unwrap_or(Err(Failure::Timeout));
        let answer = result.as_ref().ok().map(|reply| reply.text.clone());
        let _ = results.send((number, result));
        let Some(answer) = answer else { return };
        messages.push(json!({"role": "assistant", "content": answer}));
    }
}

fn body(model: &str, messages: &[Value], max_tokens: usize) -> Bytes {
    let body = json!({
        "model": model, "messages": messages, "max_tokens": max_tokens, "stream": true,
        "stream_options": {"include_usage": true},
    });
    Bytes::from(body.to_string())
}
