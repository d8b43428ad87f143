//! Waiting for a condition, bounded.

use std::time::Duration;

/// Longest wait for anything. Ample, since a test machine may be busy; a test that passes never waits so long.
pub const PATIENCE: Duration = Duration::from_secs(20);
/// Pause between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Asks again and again until there is an answer, and returns it.
///
/// # Panics
/// When there is none in [`PATIENCE`]; `what` says what was missing.
pub async fn until<T>(what: &str, mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    within(what, async {
        loop {
            if let Some(answer) = ask().await {
                return answer;
            }
            tokio::time::sleep(PAUSE).await;
        }
    })
    .await
}

/// Waits for a future.
///
/// # Panics
/// When it takes longer than [`PATIENCE`]; `what` says what did not come.
pub async fn within<T>(what: &str, future: impl Future<Output = T>) -> T {
    match tokio::time::timeout(PATIENCE, future).await {
        Ok(value) => value,
        Err(_) => panic!("waited {} s in vain: {what}", PATIENCE.as_secs()),
    }
}
