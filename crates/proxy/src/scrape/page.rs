//! An engine's metrics page in Prometheus' text format, read as it arrives. Only a handful of its several hundred
//! lines matter, so the rest is skipped line by line.

use memchr::{memchr, memchr2};
use routing::fleet::Engine;

/// Longest line that is kept between two pieces, in bytes.
const MAX_LINE: usize = 64 << 10;

/// What is read from a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Field {
    Usage,
    Waiting,
    Running,
    TtftSum,
    TtftCount,
    TpotSum,
    TpotCount,
    CacheQueried,
    CacheHit,
}

type Names = (&'static [u8], [(&'static [u8], Field); 9]);

/// Prefix of all metrics of the engine, and the names after it.
const VLLM: Names = (
    b"vllm:",
    [
        (b"kv_cache_usage_perc", Field::Usage),
        (b"num_requests_waiting", Field::Waiting),
        (b"num_requests_running", Field::Running),
        (b"time_to_first_token_seconds_sum", Field::TtftSum),
        (b"time_to_first_token_seconds_count", Field::TtftCount),
        (b"inter_token_latency_seconds_sum", Field::TpotSum),
        (b"inter_token_latency_seconds_count", Field::TpotCount),
        (b"prefix_cache_queries_total", Field::CacheQueried),
        (b"prefix_cache_hits_total", Field::CacheHit),
    ],
);
const SGLANG: Names = (
    b"sglang:",
    [
        (b"token_usage", Field::Usage),
        (b"num_queue_reqs", Field::Waiting),
        (b"num_running_reqs", Field::Running),
        (b"time_to_first_token_seconds_sum", Field::TtftSum),
        (b"time_to_first_token_seconds_count", Field::TtftCount),
        (b"inter_token_latency_seconds_sum", Field::TpotSum),
        (b"inter_token_latency_seconds_count", Field::TpotCount),
        (b"prompt_tokens_total", Field::CacheQueried),
        (b"cached_tokens_total", Field::CacheHit),
    ],
);

/// The figures of one page. Of several series of one name the last wins, but counters of the prefix cache are summed; a
/// missing gauge is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sample {
    /// Share of the KV cache in use, 0..=1.
    pub usage: f64,
    /// Requests waiting.
    pub waiting: f64,
    /// Requests running.
    pub running: f64,
    /// Sum (seconds) and number of the observations of time to first token, since the engine started.
    pub ttft: (f64, f64),
    /// The same of the time between two tokens.
    pub tpot: (f64, f64),
    /// Prompt tokens that were looked up in the prefix cache since the engine started.
    pub cache_queried: f64,
    /// Those that were found; `None` for an engine that does not count them.
    pub cache_hit: Option<f64>,
}

/// A page that is being read.
#[derive(Debug)]
pub struct Page {
    names: &'static Names,
    sample: Sample,
    seen: bool,
    partial: Vec<u8>,
}

impl Page {
    /// An empty page of this engine.
    #[must_use]
    pub fn new(engine: Engine) -> Self {
        let names = match engine {
            Engine::Vllm => &VLLM,
            Engine::Sglang => &SGLANG,
        };
        Self {
            names,
            sample: Sample::default(),
            seen: false,
            partial: Vec::new(),
        }
    }

    /// Takes the next bytes of the page.
    pub fn push(&mut self, mut bytes: &[u8]) {
        while let Some(end) = memchr(b'\n', bytes) {
            if self.partial.is_empty() {
                self.line(&bytes[..end]);
            } else {
                let mut line = std::mem::take(&mut self.partial);
                line.extend_from_slice(&bytes[..end]);
                self.line(&line);
                line.clear();
                self.partial = line;
            }
            bytes = &bytes[end + 1..];
        }
        if self.partial.len() + bytes.len() <= MAX_LINE {
            self.partial.extend_from_slice(bytes);
        }
    }

    /// The figures, or `None` when the page has none of this engine's: it is some other page.
    #[must_use]
    pub fn finish(mut self) -> Option<Sample> {
        let line = std::mem::take(&mut self.partial);
        self.line(&line);
        self.seen.then_some(self.sample)
    }

    fn line(&mut self, line: &[u8]) {
        let (prefix, fields) = self.names;
        let Some(rest) = line.strip_prefix(*prefix) else {
            return;
        };
        let Some(name_end) = memchr2(b'{', b' ', rest) else {
            return;
        };
        let name = &rest[..name_end];
        let Some(&(_, field)) = fields.iter().find(|(known, _)| *known == name) else {
            return;
        };
        let Some(value) = value_after(&rest[name_end..]) else {
            return;
        };
        self.seen = true;
        let s = &mut self.sample;
        *match field {
            Field::Usage => &mut s.usage,
            Field::Waiting => &mut s.waiting,
            Field::Running => &mut s.running,
            Field::TtftSum => &mut s.ttft.0,
            Field::TtftCount => &mut s.ttft.1,
            Field::TpotSum => &mut s.tpot.0,
            Field::TpotCount => &mut s.tpot.1,
            Field::CacheQueried => {
                s.cache_queried += value;
                return;
            }
            Field::CacheHit => {
                *s.cache_hit.get_or_insert_default() += value;
                return;
            }
        } = value;
    }
}

/// The value behind the labels, if it is a finite number that is not negative. A label's value may hold braces and
/// escaped quotes.
fn value_after(rest: &[u8]) -> Option<f64> {
    let mut at = 0;
    if rest.first() == Some(&b'{') {
        let mut quoted = false;
        loop {
            match rest.get(at)? {
                b'\\' if quoted => at += 1,
                b'"' => quoted = !quoted,
                b'}' if !quoted => break,
                _ => {}
            }
            at += 1;
        }
        at += 1;
    }
    let text = std::str::from_utf8(&rest[at..]).ok()?;
    let value: f64 = text.split_ascii_whitespace().next()?.parse().ok()?;
    (value.is_finite() && value >= 0.0).then_some(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(engine: Engine, text: &str, step: usize) -> Option<Sample> {
        let mut page = Page::new(engine);
        text.as_bytes()
            .chunks(step)
            .for_each(|piece| page.push(piece));
        page.finish()
    }

    const VLLM_PAGE: &str = "# HELP vllm:num_requests_waiting x\n\
        # TYPE vllm:num_requests_waiting gauge\n\
        vllm:num_requests_waiting{engine=\"0\",model_name=\"a}\\\"b\"} 6.0\n\
        vllm:num_requests_waiting_by_reason{engine=\"0\",reason=\"capacity\"} 9.0\n\
        vllm:num_requests_running 2\n\
        vllm:kv_cache_usage_perc{engine=\"0\"} 0.1\r\n\
        vllm:kv_cache_usage_perc{engine=\"1\"} 0.5 1700000000\n\
        vllm:time_to_first_token_seconds_bucket{le=\"0.1\"} 3\n\
        vllm:time_to_first_token_seconds_sum{engine=\"0\"} 1.5\n\
        vllm:time_to_first_token_seconds_count{engine=\"0\"} 3\n\
        vllm:time_to_first_token_seconds_created{engine=\"0\"} 1.7e9\n\
        vllm:prefix_cache_queries_total{engine=\"0\"} 640\n\
        vllm:prefix_cache_queries_total{engine=\"1\"} 64\n\
        vllm:prefix_cache_hits_total{engine=\"0\"} 128\n\
        vllm:prefix_cache_hits_created{engine=\"0\"} 1.7e9\n\
        vllm:external_prefix_cache_hits_total{engine=\"0\"} 9\n\
        vllm:inter_token_latency_seconds_sum 0.25\n\
        vllm:inter_token_latency_seconds_count 10";

    #[test]
    fn j1_a_page_reads_the_same_however_it_is_cut() {
        let want = Sample {
            usage: 0.5,
            waiting: 6.0,
            running: 2.0,
            ttft: (1.5, 3.0),
            tpot: (0.25, 10.0),
            cache_queried: 704.0,
            cache_hit: Some(128.0),
        };
        for step in 1..80 {
            assert_eq!(
                read(Engine::Vllm, VLLM_PAGE, step),
                Some(want),
                "pieces of {step}"
            );
        }
    }

    #[test]
    fn nonsense_is_no_reading() {
        assert_eq!(read(Engine::Vllm, "<html>not metrics</html>\n", 7), None);
        assert_eq!(read(Engine::Sglang, VLLM_PAGE, 1000), None);
        for value in ["NaN", "+Inf", "-1", "x", ""] {
            let text = format!("vllm:num_requests_running 4\nvllm:num_requests_waiting {value}\n");
            assert_eq!(
                read(Engine::Vllm, &text, 1000).map(|s| (s.waiting, s.running)),
                Some((0.0, 4.0)),
                "{value}"
            );
        }
    }
}
