//! The models that one pod lists.

use super::get::Get;
use crate::app::App;
use routing::fleet::Pod;
use std::sync::Arc;

/// Longest model list, in bytes.
const MAX_LIST: usize = 1 << 20;

/// Reads `/v1/models` of one pod.
pub(super) struct ModelList {
    pod: Arc<Pod>,
    page: Get,
}

impl ModelList {
    pub(super) fn new(app: &Arc<App>, pod: &Arc<Pod>) -> Self {
        Self {
            pod: Arc::clone(pod),
            page: Get::new(app, pod, "/v1/models"),
        }
    }

    /// One reading. After one that failed the names of the last one stay.
    pub(super) async fn read(&self) {
        let mut text = Vec::new();
        let read = self
            .page
            .read(MAX_LIST, |piece| text.extend_from_slice(piece));
        if read.await.is_ok()
            && let Ok(list) = serde_json::from_slice::<List>(&text)
        {
            let names = list.data.into_iter().map(|m| m.id).collect();
            self.pod.load.set_models(names);
        }
    }
}

#[derive(serde::Deserialize)]
struct List {
    data: Vec<Model>,
}

#[derive(serde::Deserialize)]
struct Model {
    id: Box<str>,
}
