//! One step of a decision, a number of times, for `cargo run -p xtask -- icount` to count its instructions.
//!
//! `icount_routing OPERATION TIMES`: `extract` reads a chat of 8 KiB; `extract+hash` also renders its prompt and hashes 128
//! blocks of it; `plan-4` and `plan-100` schedule it with the default plugins among that many pods, one of which was
//! sent it before. An escape stands in every line of the chat, as in code and prose.

use prefix_index::Chain;
use routing::fleet::{
    Endpoint, Engine, Gauges, ModelServer, ObjectName, Pod, PodId, TrafficPolicy,
};
use routing::request::extract;
use routing::schedule::{Ask, Scheduler, SchedulerConfig, Unobserved};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::Arc;

fn chat() -> String {
    let line = r#"let greeting = \"hello, world\"; // a line of code that ends\n"#;
    let turns: Vec<_> = ["system", "user", "assistant", "user"]
        .iter()
        .map(|role| format!(r#"{{"role":"{role}","content":"{}"}}"#, line.repeat(32)))
        .collect();
    format!(
        r#"{{"model":"model","messages":[{}],"max_tokens":128,"stream":true}}"#,
        turns.join(",")
    )
}

fn server(pods: u32) -> ModelServer {
    let pod = |id| {
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
        pod.load.publish(
            &Gauges {
                running: id % 7,
                ..Gauges::default()
            },
            1,
        );
        Arc::new(pod)
    };
    let name = ObjectName::new("default", "server");
    ModelServer::new(
        name,
        None,
        Engine::Vllm,
        TrafficPolicy::default(),
        serde_json::Value::Null,
        (0..pods).map(pod).collect(),
    )
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<_> = std::env::args().skip(1).collect();
    let [operation, times] = &args[..] else {
        return Err("usage: icount_routing OPERATION TIMES".into());
    };
    let times: u64 = times.parse()?;
    let body = chat();
    let read = || extract("/v1/chat/completions", None, black_box(body.as_bytes()));
    match operation.as_str() {
        "extract" => {
            for _ in 0..times {
                black_box(read()?);
            }
        }
        "extract+hash" => {
            for _ in 0..times {
                let request = read()?;
                let mut chain = Chain::new(&request.model, 64, 128);
                request.prompt.walk(|piece| chain.push(piece));
                black_box(chain.finish());
            }
        }
        "plan-4" | "plan-100" => {
            let server = server(if operation == "plan-4" { 4 } else { 100 });
            let scheduler = Scheduler::new(&SchedulerConfig::default());
            server
                .pod_ids()
                .iter()
                .for_each(|pod| scheduler.admit(*pod));
            let request = read()?;
            let ask = |draw| Ask {
                model: &request.model,
                prompt: &request.prompt,
                draw,
            };
            let plan = scheduler.plan(&ask(0), &server, &mut Unobserved)?;
            if let Some(memo) = &plan.memo {
                scheduler.served(memo, server.pod_ids()[0]);
            }
            for draw in 0..times {
                black_box(scheduler.plan(&ask(draw), &server, &mut Unobserved)?);
            }
        }
        _ => return Err("no such operation".into()),
    }
    Ok(())
}
