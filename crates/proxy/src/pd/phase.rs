//! How long prefill and decode take.

use crate::app::App;
use crate::metrics::{PhaseLabels, Status, Text};
use crate::record::Record;
use routing::fleet::PdRole;
use std::sync::Arc;
use std::time::Instant;

/// Starts the phases of one request.
#[derive(Debug)]
pub(super) struct Phases {
    app: Arc<App>,
    model: Text,
    path: &'static str,
}

impl Phases {
    pub(super) fn new(app: &Arc<App>, record: &Record) -> Self {
        Self {
            app: Arc::clone(app),
            model: record.model_label().clone(),
            path: record.api.label(),
        }
    }

    pub(super) fn prefill(&self) -> Phase {
        self.start(PdRole::Prefill)
    }

    pub(super) fn decode(&self) -> Phase {
        self.start(PdRole::Decode)
    }

    fn start(&self, role: PdRole) -> Phase {
        Phase {
            app: Arc::clone(&self.app),
            model: self.model.clone(),
            path: self.path,
            role,
            started: Instant::now(),
            status: 500,
        }
    }
}

/// One leg's time, observed when this is dropped: under status 200 if it has succeeded, else under 500.
#[derive(Debug)]
pub(super) struct Phase {
    app: Arc<App>,
    model: Text,
    path: &'static str,
    role: PdRole,
    started: Instant,
    status: u16,
}

impl Phase {
    pub(super) fn succeeded(mut self) {
        self.status = 200;
    }
}

impl Drop for Phase {
    fn drop(&mut self) {
        let labels = PhaseLabels {
            model: self.model.clone(),
            path: self.path,
            status_code: Status(self.status),
        };
        let metrics = &self.app.metrics;
        let family = match self.role {
            PdRole::Prefill => &metrics.prefill_duration,
            PdRole::Decode => &metrics.decode_duration,
        };
        let took = self.started.elapsed().as_secs_f64();
        family.get_or_create(&labels).observe(took);
    }
}
