#!/usr/bin/env python3
"""The dashboard and the alert rules against a real Prometheus that scrapes the router under traffic.

    run.py --router PATH

Needs prometheus and promtool (Debian's package prometheus) and PyYAML. Starts two simulated engines and the router in
file mode, plays traffic with hits, misses, evictions and scheduling failures, and lets Prometheus scrape it. Then every
query of the dashboard must give finite values, every rule must evaluate, and promtool's unit tests must pass. One line
per check; the last line is `N passed, N failed`. Exit code 0, or 1 if a check failed.
"""
import argparse
import json
import math
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

import yaml

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[2] / "examples" / "observability"
DASHBOARD = EXAMPLES / "kthena-router-score-plugins-dashboard.json"
ALERTS = EXAMPLES / "kthena-router-alerts.yaml"
API = "networking.serving.volcano.sh/v1alpha1"
PATIENCE = 60.0  # seconds, for anything that must come
# The name that a ServiceMonitor of the chart's Service gives its job; the alerts rely on it.
JOB = "kthena-router-metrics"
MODEL, NO_PODS, FILTERED = "demo", "scaled-to-zero", "no-such-adapter"

MANIFESTS = """
apiVersion: {api}
kind: ModelServer
metadata: {{name: demo}}
spec:
  inferenceEngine: vLLM
  workloadSelector: {{matchLabels: {{app: engine}}}}
  workloadPort: {{port: 8000}}
  endpoints: [{endpoints}]
---
apiVersion: {api}
kind: ModelServer
metadata: {{name: empty}}
spec:
  inferenceEngine: vLLM
  workloadSelector: {{matchLabels: {{app: none}}}}
  workloadPort: {{port: 8000}}
  endpoints: []
---
apiVersion: {api}
kind: ModelRoute
metadata: {{name: demo}}
spec:
  modelName: {model}
  loraAdapters: [{filtered}]
  rules: [{{targetModels: [{{modelServerName: demo}}]}}]
---
apiVersion: {api}
kind: ModelRoute
metadata: {{name: empty}}
spec:
  modelName: {no_pods}
  rules: [{{targetModels: [{{modelServerName: empty}}]}}]
"""
# Lists are short, so that prompts evict each other; and the filter leaves no pod to an adapter that no engine has.
CONFIG = """
scheduler:
  pluginConfig:
  - {name: prefix-cache, args: {maxHashCacheSize: 40}}
  plugins:
    Filter: {enabled: [least-request, lora-affinity]}
    Score:
      enabled:
      - {name: least-request, weight: 1}
      - {name: gpu-usage, weight: 1}
      - {name: least-latency, weight: 1}
      - {name: prefix-cache, weight: 1}
"""
PROMETHEUS = """
global: {{scrape_interval: 250ms, evaluation_interval: 250ms}}
rule_files: [alerts.yaml]
scrape_configs:
- job_name: {job}
  static_configs: [{{targets: ['127.0.0.1:{port}']}}]
"""


def until(what, ask):
    deadline = time.monotonic() + PATIENCE
    while True:
        answer = ask()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {PATIENCE:.0f} s in vain: {what}")
        time.sleep(0.05)


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def get(url):
    """The body, or nothing while nobody answers."""
    try:
        with urllib.request.urlopen(url, timeout=PATIENCE) as answer:
            return answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.read().decode() if error.code != 503 else None
    except OSError:
        return None


class Process:
    """A process whose output is collected."""

    def __init__(self, *command):
        self.lines = []
        self.process = subprocess.Popen([str(c) for c in command], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def alive(self):
        if self.process.poll() is not None:
            raise RuntimeError("ended early:\n" + "\n".join(self.lines[-20:]))
        return True

    def said(self, pattern):
        return until(f"output with {pattern!r}", lambda: next(
            (m for line in list(self.lines) if (m := re.search(pattern, line))), None) or (self.alive() and None))

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Stack:
    def __init__(self, router, folder):
        self.parts = []
        self.prompts = 0
        try:
            engines = [self._start(router, "sim-engine", "--port", 0, "--served-model-name", MODEL, "--time-scale", 4)
                       for _ in range(2)]
            ports = [e.said(r"http://127\.0\.0\.1:(\d+)")[1] for e in engines]
            manifests = folder / "manifests"
            manifests.mkdir()
            endpoints = ", ".join(f"{{name: e{n}, address: 127.0.0.1, port: {p}}}" for n, p in enumerate(ports))
            (manifests / "all.yaml").write_text(MANIFESTS.format(api=API, endpoints=endpoints, model=MODEL, no_pods=NO_PODS,
                                                                 filtered=FILTERED))
            (folder / "router.yaml").write_text(CONFIG)
            port, metrics, debug, prometheus = free_ports(4)
            self._start(router, "--config-source=file", "--config-dir", manifests, "--router-config",
                        folder / "router.yaml", "--port", port, "--metrics-port", metrics, "--debug-port", debug)
            self.url, self.metrics = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{metrics}/metrics"
            until("the router is ready", lambda: get(self.url + "/readyz"))

            shutil.copy(ALERTS, folder / "alerts.yaml")
            (folder / "prometheus.yaml").write_text(PROMETHEUS.format(job=JOB, port=metrics))
            server = self._start("prometheus", f"--config.file={folder}/prometheus.yaml",
                                 f"--storage.tsdb.path={folder}/data", f"--web.listen-address=127.0.0.1:{prometheus}")
            self.prometheus = f"http://127.0.0.1:{prometheus}"
            until("Prometheus is ready", lambda: server.alive() and get(self.prometheus + "/-/ready"))
        except BaseException:
            self.stop()
            raise

    def _start(self, *command):
        self.parts.append(Process(*command))
        return self.parts[-1]

    def stop(self):
        for part in reversed(self.parts):
            part.stop()

    def chat(self, text, model=MODEL):
        body = json.dumps({"model": model, "max_tokens": 4, "messages": [{"role": "user", "content": text}]}).encode()
        request = urllib.request.Request(self.url + "/v1/chat/completions", body, {"Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
                answer.read()
                return answer.status
        except urllib.error.HTTPError as error:
            return error.code

    def ask(self, path, **parameters):
        query = urllib.parse.urlencode(parameters, doseq=True)
        url = f"{self.prometheus}/api/v1/{path}" + (f"?{query}" if query else "")
        answer = json.loads(get(url) or '{"status": "error", "error": "no answer"}')
        assert answer["status"] == "success", f"{parameters}: {answer.get('error')}"
        return answer["data"]

    def value(self, expression):
        """The value of each series, by its labels."""
        found = self.ask("query", query=expression)["result"]
        return {tuple(sorted(series["metric"].items())): float(series["value"][1]) for series in found}


def play(stack):
    """Prompts that share their first half with an earlier one, prompts that do not, and requests that find no pod."""
    shared = "All of us read this long introduction first. " * 20
    for n in range(6):
        stack.prompts += 1
        assert stack.chat(f"{shared}Question {n}?") == 200
        assert stack.chat(f"{stack.prompts} was never the first word of a prompt. " * 20) == 200
    assert stack.chat("x", NO_PODS) == 503
    assert stack.chat("x", FILTERED) == 400


def scraped(stack):
    """A rate needs two scrapes that differ: the traffic goes on until Prometheus has seen it grow."""
    def grown():
        play(stack)
        return all(any(v > 0 for v in stack.value(f"rate({name}[5m])").values()) for name in (
            "kthena_router_prefix_cache_evictions_total", "kthena_router_prefix_cache_match_ratio_count",
            'kthena_router_requests_total{error_type="pod_discovery"}',
            'kthena_router_requests_total{error_type="request_failed"}'))
    until("Prometheus has seen the traffic", grown)


def as_grafana_writes_it(expression):
    """With the variables of the dashboard filled in: all models."""
    filled = expression.replace("$model", ".*").replace("$__rate_interval", "5m")
    assert "$" not in filled, f"a variable that is not filled in: {expression}"
    return filled


def queries(dashboard):
    for panel in dashboard["panels"]:
        for target in panel.get("targets", []):
            yield panel["title"], target["expr"]


def panel_has_data(stack, expression):
    found = stack.value(as_grafana_writes_it(expression))
    assert found, "no series"
    for labels, value in found.items():
        assert math.isfinite(value), f"{dict(labels)}: {value}"


def variable_lists_the_models(stack, dashboard):
    variable = next(v for v in dashboard["templating"]["list"] if v["name"] == "model")
    metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", variable["query"]["query"]).groups()
    models = stack.ask(f"label/{label}/values", **{"match[]": metric})
    # No pod was scored for the others.
    assert models == [MODEL], models


def hit_rate_is_right(stack, dashboard):
    expression = next(e for title, e in queries(dashboard) if title == "Prefix cache hit rate")
    rate = stack.value(as_grafana_writes_it(expression))[(("model", MODEL),)]
    # Every other prompt shares its beginning with those before it.
    assert 0.3 < rate < 0.7, rate


def entries_are_those_of_the_page(stack, _):
    page = re.search(r"^kthena_router_prefix_cache_entries (\d+)$", get(stack.metrics), re.M)
    until("the gauge was scraped", lambda: stack.value("kthena_router_prefix_cache_entries").popitem()[1] == int(page[1]))
    assert 40 <= int(page[1]) <= 80, page[0]


def names_in(rules):
    return {name for rule in rules for name in re.findall(r"\bkthena_router_\w+", rule["expr"])}


def rules_evaluate(stack):
    rules = [rule for group in yaml.safe_load(ALERTS.read_text())["groups"] for rule in group["rules"]]

    def evaluated():
        loaded = [rule for group in stack.ask("rules")["groups"] for rule in group["rules"]]
        assert {r["name"] for r in loaded} == {r["alert"] for r in rules}
        return loaded if all(rule["health"] != "unknown" for rule in loaded) else None
    for rule in until("every rule was evaluated", evaluated):
        assert rule["health"] == "ok", f"{rule['name']}: {rule.get('lastError')}"
    for rule in rules:
        stack.value(rule["expr"])
        assert rule["annotations"]["summary"], rule["alert"]
    # A rule on a metric that does not exist never fires and never fails either.
    known = set(stack.ask("label/__name__/values"))
    assert names_in(rules) <= known, f"unknown metrics: {sorted(names_in(rules) - known)}"
    up = stack.value(f'up{{job="{JOB}"}}')
    assert list(up.values()) == [1.0], up


def alerts_under_traffic(stack):
    """The requests without a pod are pending as an alert; a healthy scrape and request are not."""
    def names():
        found = {alert["labels"]["alertname"] for alert in stack.ask("alerts")["alerts"]}
        return found if "KthenaRouterNoPodLeft" in found else None
    pending = until("the alert is pending", names)
    assert not pending & {"KthenaRouterDown", "KthenaRouterConfigSourceDown", "KthenaRouterScrapeFailures",
                          "KthenaRouterPodOverloaded", "KthenaRouterPrefixCacheNeverHits",
                          "KthenaRouterAccessLogLost"}, pending


def promtool(*command, stdin=None):
    done = subprocess.run(["promtool", *map(str, command)], input=stdin, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def page_passes_promtool(stack):
    promtool("check", "metrics", stdin=get(stack.metrics))


def unit_tests_pass(folder):
    shutil.copy(HERE / "alerts-test.yaml", folder)
    promtool("test", "rules", folder / "alerts-test.yaml")


def checks(stack, folder):
    dashboard = json.loads(DASHBOARD.read_text(encoding="utf-8"))
    for title, expression in queries(dashboard):
        yield f"{title}: {expression}", lambda e=expression: panel_has_data(stack, e)
    for check in variable_lists_the_models, hit_rate_is_right, entries_are_those_of_the_page:
        yield check.__name__, lambda c=check: c(stack, dashboard)
    for check in rules_evaluate, alerts_under_traffic, page_passes_promtool:
        yield check.__name__, lambda c=check: c(stack)
    yield "unit_tests_pass", lambda: unit_tests_pass(folder)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--router", required=True, type=Path, help="the program")
    options = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="observability-") as name:
        folder = Path(name)
        stack = Stack(options.router.resolve(), folder)
        try:
            scraped(stack)
            for what, check in checks(stack, folder):
                try:
                    check()
                    passed += 1
                    print(f"ok    {what}", flush=True)
                except Exception as error:  # a check may fail in any way
                    failed += 1
                    print(f"FAIL  {what}: {type(error).__name__}: {error}", flush=True)
        finally:
            stack.stop()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
