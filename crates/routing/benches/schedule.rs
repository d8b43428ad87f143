//! Cost of a whole plan with the chart's plugins: filter, four scores, pick.
//!
//! The prompt has 8 KiB, every pod has its own reading, and a tenth of the pods hold the first half of the prompt.
#![allow(missing_docs, reason = "criterion's macros")]

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use routing::fleet::{
    Endpoint, Engine, Gauges, ModelServer, ObjectName, Pod, PodId, TrafficPolicy,
};
use routing::prompt::Prompt;
use routing::schedule::{Ask, Scheduler, SchedulerConfig, Unobserved};
use std::collections::BTreeMap;
use std::sync::Arc;

fn pod(id: u32) -> Arc<Pod> {
    let pod = Pod {
        id: PodId(id),
        name: ObjectName::new("default", &format!("pod-{id}")),
        uid: None,
        endpoint: Endpoint {
            host: "127.0.0.1".into(),
            port: 8000,
        },
        engine: Engine::Vllm,
        labels: BTreeMap::new(),
        load: Arc::default(),
    };
    let share = (id % 97) as f32 / 97.0;
    pod.load.publish(
        &Gauges {
            waiting: id % 9,
            running: id % 7,
            kv_usage: share,
            ttft: share,
            tpot: share / 9.0,
        },
        1,
    );
    Arc::new(pod)
}

fn plan(c: &mut Criterion) {
    let mut group = c.benchmark_group("plan, 8 KiB prompt");
    for pods in [4, 100, 1000] {
        let scheduler = Scheduler::new(&SchedulerConfig::default());
        let pods: Vec<_> = (0..pods).map(pod).collect();
        let size = pods.len();
        let server = ModelServer::new(
            ObjectName::new("default", "server"),
            None,
            Engine::Vllm,
            TrafficPolicy::default(),
            serde_json::Value::Null,
            pods,
        );
        let text = "x".repeat(4096) + &"y".repeat(4096);
        let (whole, half) = (Prompt::from_text(&text), Prompt::from_text(&text[..4096]));
        for pod in server.pods() {
            scheduler.admit(pod.id);
            if pod.id.0 % 10 == 0 {
                let ask = Ask {
                    model: "model",
                    prompt: &half,
                    draw: 0,
                };
                let memo = scheduler
                    .plan(&ask, &server, &mut Unobserved)
                    .ok()
                    .and_then(|plan| plan.memo);
                if let Some(memo) = memo {
                    scheduler.served(&memo, pod.id);
                }
            }
        }
        let mut draw = 0;
        group.bench_function(BenchmarkId::from_parameter(format!("{size} pods")), |b| {
            b.iter(|| {
                draw += 1;
                scheduler.plan(
                    &Ask {
                        model: "model",
                        prompt: &whole,
                        draw,
                    },
                    &server,
                    &mut Unobserved,
                )
            });
        });
    }
    group.finish();
}

criterion_group!(group, plan);
criterion_main!(group);
