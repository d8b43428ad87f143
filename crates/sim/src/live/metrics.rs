//! The metrics page: names, types and labels as vLLM 0.32 has them, or SGLang's names for what a router reads.

use super::{
    histogram::{Histogram, one_two_five},
    text::Text,
};
use crate::model::{Counters, EngineParams, Event, Load};

/// Whose names the page has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EngineKind {
    /// `vllm:*`, labels `engine` and `model_name`.
    #[default]
    Vllm,
    /// `sglang:*`, label `model_name`.
    Sglang,
}

/// Bounds of the time histograms, seconds; as recorded.
const TTFT: &[f64] = &[
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0,
    20.0, 40.0, 80.0, 160.0, 640.0, 2560.0,
];
const TPOT: &[f64] = &[
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0,
    40.0, 80.0,
];
const REQUEST: &[f64] = &[
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0,
    480.0, 960.0, 1920.0, 7680.0,
];
const STEP_TOKENS: &[f64] = &[
    1.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0, 16384.0,
];
const PREEMPTIONS: &[f64] = &[1.0, 2.0, 3.0, 4.0, 5.0, 10.0, 20.0];

/// The histograms of one engine.
#[derive(Clone, Debug)]
pub(super) struct Metrics {
    ttft: Histogram,
    itl: Histogram,
    tpot: Histogram,
    e2e: Histogram,
    queue: Histogram,
    inference: Histogram,
    prefill: Histogram,
    decode: Histogram,
    prompt_tokens: Histogram,
    generation_tokens: Histogram,
    step_tokens: Histogram,
    preemptions: Histogram,
}

/// What the page shows beside the histograms.
pub(super) struct Page<'a> {
    pub(super) model: &'a str,
    pub(super) load: Load,
    pub(super) counters: Counters,
    pub(super) params: &'a EngineParams,
    /// Start of the engine, seconds since 1970.
    pub(super) created: f64,
}

impl Metrics {
    pub(super) fn new(params: &EngineParams) -> Self {
        let tokens = || Histogram::new(one_two_five(params.max_model_len));
        let request = || Histogram::new(REQUEST);
        Self {
            ttft: Histogram::new(TTFT),
            itl: Histogram::new(TPOT),
            tpot: Histogram::new(TPOT),
            e2e: request(),
            queue: request(),
            inference: request(),
            prefill: request(),
            decode: request(),
            prompt_tokens: tokens(),
            generation_tokens: tokens(),
            step_tokens: Histogram::new(STEP_TOKENS),
            preemptions: Histogram::new(PREEMPTIONS),
        }
    }

    pub(super) fn step(&mut self, tokens: usize) {
        self.step_tokens.observe(tokens as f64);
    }

    pub(super) fn event(&mut self, event: &Event) {
        let latency = if event.index == 0 {
            &mut self.ttft
        } else {
            &mut self.itl
        };
        latency.observe(event.after);
        let Some((_, timing)) = event.finished else {
            return;
        };
        if timing.generated_tokens > 1 {
            self.tpot
                .observe(timing.decode / (timing.generated_tokens - 1) as f64);
        } else {
            self.tpot.observe(0.0);
        }
        self.e2e.observe(timing.total);
        self.queue.observe(timing.queue);
        self.inference.observe(timing.prefill + timing.decode);
        self.prefill.observe(timing.prefill);
        self.decode.observe(timing.decode);
        self.prompt_tokens.observe(timing.prompt_tokens as f64);
        self.generation_tokens
            .observe(timing.generated_tokens as f64);
        self.preemptions.observe(f64::from(timing.preemptions));
    }

    pub(super) fn render(&self, kind: EngineKind, page: &Page<'_>) -> String {
        match kind {
            EngineKind::Vllm => self.vllm(page),
            EngineKind::Sglang => self.sglang(page),
        }
    }

    fn vllm(&self, page: &Page<'_>) -> String {
        let mut out = Text::new(&[("engine", "0"), ("model_name", page.model)], page.created);
        vllm_load(&mut out, page.load);
        vllm_tokens(&mut out, page.counters);
        vllm_requests(&mut out, page);
        for (name, help, histogram) in self.vllm_histograms() {
            out.histogram(name, help, histogram);
        }
        vllm_cache_config(&mut out, page.params);
        out.finish()
    }

    fn vllm_histograms(&self) -> [(&'static str, &'static str, &Histogram); 12] {
        [
            (
                "vllm:request_prompt_tokens",
                "Prompt tokens of a request.",
                &self.prompt_tokens,
            ),
            (
                "vllm:request_generation_tokens",
                "Generated tokens of a request.",
                &self.generation_tokens,
            ),
            (
                "vllm:iteration_tokens_total",
                "Tokens computed in a step.",
                &self.step_tokens,
            ),
            (
                "vllm:time_to_first_token_seconds",
                "Arrival to first token.",
                &self.ttft,
            ),
            (
                "vllm:inter_token_latency_seconds",
                "Token to next token.",
                &self.itl,
            ),
            (
                "vllm:request_time_per_output_token_seconds",
                "Mean time a token of a request.",
                &self.tpot,
            ),
            (
                "vllm:e2e_request_latency_seconds",
                "Arrival to last token.",
                &self.e2e,
            ),
            (
                "vllm:request_queue_time_seconds",
                "Arrival to admission.",
                &self.queue,
            ),
            (
                "vllm:request_inference_time_seconds",
                "Admission to last token.",
                &self.inference,
            ),
            (
                "vllm:request_prefill_time_seconds",
                "Admission to first token.",
                &self.prefill,
            ),
            (
                "vllm:request_decode_time_seconds",
                "First to last token.",
                &self.decode,
            ),
            (
                "vllm:request_num_preemptions",
                "Pre-emptions of a request.",
                &self.preemptions,
            ),
        ]
    }

    fn sglang(&self, page: &Page<'_>) -> String {
        let mut out = Text::new(&[("model_name", page.model)], page.created);
        let (load, c) = (page.load, page.counters);
        let size = (page.params.num_blocks - 1) * page.params.block_size;
        let hit_rate = if c.prefix_queries == 0 {
            0.0
        } else {
            c.prefix_hits as f64 / c.prefix_queries as f64
        };
        out.gauge(
            "sglang:num_running_reqs",
            "Sequences in the batch.",
            load.running as f64,
        );
        out.gauge(
            "sglang:num_queue_reqs",
            "Requests waiting for a place in the batch.",
            load.waiting as f64,
        );
        out.gauge(
            "sglang:num_used_tokens",
            "Tokens of the KV cache in use.",
            (load.kv_usage * size as f64).round(),
        );
        out.gauge(
            "sglang:token_usage",
            "Share of the KV cache in use, 0 to 1.",
            load.kv_usage,
        );
        out.gauge(
            "sglang:cache_hit_rate",
            "Share of prompt tokens found in the cache.",
            hit_rate,
        );
        out.counter(
            "sglang:prompt_tokens",
            "Prompt tokens processed.",
            c.prompt_tokens,
        );
        out.counter(
            "sglang:generation_tokens",
            "Tokens generated.",
            c.generation_tokens,
        );
        out.counter(
            "sglang:num_requests",
            "Requests finished.",
            c.stopped + c.limited,
        );
        out.histogram(
            "sglang:time_to_first_token_seconds",
            "Arrival to first token.",
            &self.ttft,
        );
        out.histogram(
            "sglang:inter_token_latency_seconds",
            "Token to next token.",
            &self.itl,
        );
        out.histogram(
            "sglang:e2e_request_latency_seconds",
            "Arrival to last token.",
            &self.e2e,
        );
        out.finish()
    }
}

fn vllm_load(out: &mut Text, load: Load) {
    let waiting = load.waiting as f64;
    out.gauge(
        "vllm:num_requests_running",
        "Sequences in the batch.",
        load.running as f64,
    );
    out.gauge(
        "vllm:num_requests_waiting",
        "Requests waiting for a place in the batch.",
        waiting,
    );
    out.head(
        "vllm:num_requests_waiting_by_reason",
        "gauge",
        "Waiting requests by reason.",
    );
    out.value(
        "vllm:num_requests_waiting_by_reason",
        &[("reason", "capacity")],
        waiting,
    );
    out.value(
        "vllm:num_requests_waiting_by_reason",
        &[("reason", "deferred")],
        0.0,
    );
    out.gauge(
        "vllm:kv_cache_usage_perc",
        "Share of KV blocks in use, 0 to 1.",
        load.kv_usage,
    );
}

fn vllm_tokens(out: &mut Text, c: Counters) {
    out.counter(
        "vllm:prefix_cache_queries",
        "Prompt tokens looked up.",
        c.prefix_queries,
    );
    out.counter(
        "vllm:prefix_cache_hits",
        "Prompt tokens found in the cache.",
        c.prefix_hits,
    );
    out.counter(
        "vllm:num_preemptions",
        "Sequences that lost their blocks.",
        c.preemptions,
    );
    out.counter(
        "vllm:prompt_tokens",
        "Prompt tokens processed.",
        c.prompt_tokens,
    );
    let sources = [
        ("local_compute", c.prompt_tokens - c.prompt_tokens_cached),
        ("local_cache_hit", c.prompt_tokens_cached),
        ("external_kv_transfer", 0),
    ];
    out.counters(
        "vllm:prompt_tokens_by_source",
        "Prompt tokens by source.",
        "source",
        &sources,
    );
    out.counter(
        "vllm:prompt_tokens_cached",
        "Prompt tokens taken from the cache.",
        c.prompt_tokens_cached,
    );
    out.counter(
        "vllm:generation_tokens",
        "Tokens generated.",
        c.generation_tokens,
    );
}

fn vllm_requests(out: &mut Text, page: &Page<'_>) {
    let c = page.counters;
    // As recorded, neither a disconnect nor a shutdown counts as "abort".
    let finished = [
        ("stop", c.stopped),
        ("length", c.limited),
        ("abort", 0),
        ("error", 0),
        ("repetition", 0),
    ];
    out.counters(
        "vllm:request_success",
        "Requests finished.",
        "finished_reason",
        &finished,
    );
    let rejected = [
        ("max_num_queued_reqs", c.rejected),
        ("max_num_queued_tokens", 0),
    ];
    // This family alone has no engine label.
    out.with_labels(&[("model_name", page.model)], |out| {
        out.counters(
            "vllm:admission_rejections",
            "Requests refused at admission.",
            "reason",
            &rejected,
        );
    });
}

fn vllm_cache_config(out: &mut Text, params: &EngineParams) {
    let tokens = ((params.num_blocks - 1) * params.block_size).to_string();
    let (block_size, blocks) = (params.block_size.to_string(), params.num_blocks.to_string());
    let labels = [
        ("block_size", block_size.as_str()),
        ("enable_prefix_caching", "True"),
        ("kv_cache_size_tokens", &tokens),
        ("num_gpu_blocks", &blocks),
    ];
    out.head(
        "vllm:cache_config_info",
        "gauge",
        "The KV cache as configured.",
    );
    out.value("vllm:cache_config_info", &labels, 1.0);
}
