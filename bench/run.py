#!/usr/bin/env python3
"""The router beside nginx, in front of the same four engines that answer at once, in interleaved rounds.

The figure is the proxy's CPU time a request, and its ratio to nginx within a round: the speed of a shared machine
drifts within minutes, ratios of the same minute do not. The proxy has CPU 0 to itself, client and engines share CPU 1;
`direct` is the client at an engine, without a proxy, to show that the engines are not the limit.

The router runs as a user would run it: default plugins, a directory of manifests, its access log in a file, metrics
scraped every second. Several builds can be compared: --router before=PATH --router after=PATH.
"""
import argparse
import hashlib
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import time
import urllib.request
from datetime import datetime, timezone
from pathlib import Path

import bodies

HERE = Path(__file__).resolve().parent
TICKS = os.sysconf("SC_CLK_TCK")
ENGINES = 4
# Scenario: bodies, connections, pause between events in microseconds (None: not a stream).
SCENARIOS = {
    "small": ("small", 32, None),
    "medium": ("medium", 32, None),
    "large": ("large", 32, None),
    "huge": ("huge", 32, None),
    "stream": ("small-stream", 32, 0),
    "paced": ("small-stream", 64, 5000),
}
EVENTS = 20
PROXY_CPU, REST_CPU = 0, 1

NGINX = """daemon off;
worker_processes 1;
pid {run}/nginx.pid;
error_log {run}/nginx-error.log warn;
events {{ worker_connections 4096; }}
http {{
  access_log off;
  tcp_nodelay on;
  keepalive_requests 100000000;
  keepalive_timeout 300s;
  client_max_body_size 64m;
  client_body_buffer_size 2m;
  client_body_temp_path {run}/body;
  proxy_temp_path {run}/proxy;
  fastcgi_temp_path {run}/fastcgi;
  uwsgi_temp_path {run}/uwsgi;
  scgi_temp_path {run}/scgi;
  upstream engines {{
    {servers}
    keepalive 256;
    keepalive_requests 100000000;
  }}
  server {{
    listen 127.0.0.1:{port};
    location / {{
      proxy_pass http://engines;
      proxy_http_version 1.1;
      proxy_set_header Connection "";
      proxy_buffering off;
      proxy_request_buffering off;
      proxy_read_timeout 600s;
    }}
  }}
}}
"""
MANIFESTS = """apiVersion: networking.serving.volcano.sh/v1alpha1
kind: ModelServer
metadata: {{name: mock}}
spec:
  model: mock-model
  inferenceEngine: vLLM
  workloadSelector: {{matchLabels: {{app: mock}}}}
  workloadPort: {{port: {first}}}
  endpoints:
{endpoints}
---
apiVersion: networking.serving.volcano.sh/v1alpha1
kind: ModelRoute
metadata: {{name: mock}}
spec:
  modelName: mock-model
  rules:
    - targetModels: [{{modelServerName: mock}}]
"""


def get(url):
    with urllib.request.urlopen(url, timeout=5) as answer:
        return answer.read().decode()


def family(pid):
    """The process and all below it."""
    found, todo = [], [pid]
    while todo:
        pid = todo.pop()
        found.append(pid)
        for task in Path(f"/proc/{pid}/task").glob("*/children"):
            try:
                todo += map(int, task.read_text().split())
            except OSError:
                pass
    return found


def cpu_seconds(pid):
    """User and system time of a process and its children, from the scheduler's nanosecond counters."""
    total = 0
    for member in family(pid):
        for stat in Path(f"/proc/{member}/task").glob("*/schedstat"):
            try:
                total += int(stat.read_text().split()[0])
            except OSError:
                pass
    return total / 1e9


def rss_mib(pid):
    total = 0
    for member in family(pid):
        try:
            total += int(re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{member}/status").read_text())[1])
        except (OSError, TypeError):
            pass
    return total / 1024


class Bench:
    def __init__(self, options, out):
        self.options, self.out = options, out
        self.run = HERE / "out/run"
        self.bodies = HERE / "out/bodies"
        self.run.mkdir(parents=True, exist_ok=True)
        bodies.write(self.bodies)
        self.engines = [options.base_port + i for i in range(ENGINES)]
        self.processes = {}

    def start(self, name, command, cpu, env=None, url=None):
        log = open(self.run / f"{name}.log", "ab")
        process = subprocess.Popen(["taskset", "-c", str(cpu), *map(str, command)], stdin=subprocess.DEVNULL, stdout=log,
                                   stderr=log, env=os.environ | (env or {}), cwd=self.run)
        self.processes[name] = process
        deadline = time.monotonic() + 30
        while time.monotonic() < deadline and process.poll() is None:
            try:
                if url is None or self.answers(url):
                    return process
            except OSError:
                pass
            time.sleep(0.1)
        sys.exit(f"{name} does not answer; see {self.run / name}.log")

    def answers(self, url):
        request = urllib.request.Request(url + "/v1/chat/completions", (self.bodies / "small-00.json").read_bytes(),
                                         {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=3) as answer:
            return answer.status == 200

    def start_all(self):
        self.start("engines", [HERE / "target/release/engine", self.engines[0], ENGINES], REST_CPU, url=self.url(self.engines[0]))
        port = self.options.base_port + ENGINES
        servers = "\n    ".join(f"server 127.0.0.1:{p} max_fails=0;" for p in self.engines)
        (self.run / "nginx.conf").write_text(NGINX.format(run=self.run, port=port, servers=servers))
        peers = {"direct": (None, self.url(self.engines[0]))}
        nginx = self.start("nginx", ["nginx", "-c", self.run / "nginx.conf", "-p", self.run], PROXY_CPU, url=self.url(port))
        peers["nginx"] = (nginx, self.url(port))
        manifests = self.run / "manifests"
        manifests.mkdir(exist_ok=True)
        endpoints = "\n".join(f"    - {{name: e{p}, address: 127.0.0.1, port: {p}}}" for p in self.engines)
        (manifests / "mock.yaml").write_text(MANIFESTS.format(first=self.engines[0], endpoints=endpoints))
        config = HERE.parent / "examples/standalone/config/routerConfiguration.yaml"
        for name, path in self.options.routers.items():
            port += 3
            access_log = self.run / f"{name}-access.log"
            access_log.unlink(missing_ok=True)
            command = [path, "--config-source=file", f"--config-dir={manifests}", f"--router-config={config}",
                       f"--port={port}", f"--metrics-port={port + 1}", f"--debug-port={port + 2}"]
            process = self.start(name, command, PROXY_CPU, {"ACCESS_LOG_OUTPUT": str(access_log)}, self.url(port))
            peers[name] = (process, self.url(port))
        return peers

    def url(self, port):
        return f"http://127.0.0.1:{port}"

    def measure(self, name, scenario, process, url):
        kind, connections, interval = SCENARIOS[scenario]
        for port in self.engines:
            get(f"{self.url(port)}/mock/interval/{interval or 0}")
            get(f"{self.url(port)}/mock/reset")
        files = sorted(str(p) for p in self.bodies.glob(f"{kind}-[0-9]*.json"))
        # Without a proxy the client takes its core.
        cpu = PROXY_CPU if process is None else REST_CPU
        target, seconds = f"{url}/v1/chat/completions", str(self.options.secs)
        if interval is None:
            client = ["wrk", "-t1", f"-c{connections}", f"-d{seconds}s", "--timeout", "30s", "-s", str(HERE / "wrk.lua"), target]
        else:
            client = [str(HERE / "target/release/load"), target, "-c", str(connections), "-s", seconds, "-e", str(EVENTS), *files]
        before, began = cpu_seconds(process.pid) if process else 0, time.monotonic()
        done = subprocess.run(["taskset", "-c", str(cpu), *client], capture_output=True, text=True,
                              env=os.environ | {"BODIES": " ".join(files)})
        lines = re.findall(r"\{.*\}", done.stdout)
        if not lines:
            raise RuntimeError(f"the client failed: {done.stdout[-200:]} {done.stderr[-200:]}")
        row = json.loads(lines[-1])
        wall = time.monotonic() - began
        row |= {"peer": name, "scenario": scenario, "load_average": os.getloadavg()[0]}
        if process:
            used = cpu_seconds(process.pid) - before
            row |= {"cpu_us": used * 1e6 / max(row["n"], 1), "cpu_share": used / wall, "rss_mib": rss_mib(process.pid)}
        stats = [get(f"{self.url(port)}/mock/stats").split() for port in self.engines]
        row["engine_requests"] = [int(n) for n, _ in stats]
        return row

    def all_rounds(self):
        rows, peers = [], self.start_all()
        try:
            with open(self.out / "raw.jsonl", "w", encoding="utf-8") as raw:
                for turn in range(self.options.rounds):
                    for k, scenario in enumerate(self.options.scenarios):
                        names = list(peers)
                        first = (turn + k) % len(names)
                        for name in names[first:] + names[:first]:
                            row = {"round": turn} | self.measure(name, scenario, *peers[name])
                            rows.append(row)
                            raw.write(json.dumps(row) + "\n")
                            raw.flush()
                            print(f"{turn} {scenario:7} {name:10} {row.get('cpu_us', 0):8.1f} us  {row['rps']:8.0f}/s  p50 {row['p50_us']:7.0f} us  "
                                  f"p99 {row['p99_us']:7.0f} us  share {row.get('cpu_share', 0):.2f}  bad {row['bad']} {row.get('why', '')}", flush=True)
        finally:
            for process in reversed(self.processes.values()):
                process.terminate()
            for process in self.processes.values():
                try:
                    process.wait(10)
                except subprocess.TimeoutExpired:
                    process.kill()
        return rows


def summary(rows, about):
    """Medians over rounds; a ratio is the median of the ratios within a round."""
    peers, scenarios = list(dict.fromkeys(r["peer"] for r in rows)), list(dict.fromkeys(r["scenario"] for r in rows))
    cells = {(r["peer"], r["scenario"], r["round"]): r for r in rows}
    rounds = sorted({r["round"] for r in rows})

    def values(peer, scenario, key):
        return [cells[peer, scenario, n][key] for n in rounds if key in cells.get((peer, scenario, n), {})]

    def ratio(peer, scenario, key, spread):
        pairs = ((cells.get((peer, scenario, n), {}).get(key), cells.get(("nginx", scenario, n), {}).get(key)) for n in rounds)
        ratios = [a / b for a, b in pairs if a and b]
        if not ratios or peer == "nginx":
            return ""
        return f" ({statistics.median(ratios):.2f}" + (f"; {min(ratios):.2f}..{max(ratios):.2f})" if spread else ")")

    def table(title, key, digits, skip=(), spread=False):
        lines = [f"\n## {title}\n", "| | " + " | ".join(scenarios) + " |", "|---" * (len(scenarios) + 1) + "|"]
        for peer in (p for p in peers if p not in skip):
            row = []
            for scenario in scenarios:
                found = values(peer, scenario, key)
                row.append(f"{statistics.median(found):.{digits}f}{ratio(peer, scenario, key, spread)}" if found else "-")
            lines.append(f"| {peer} | " + " | ".join(row) + " |")
        return lines

    lines = ["# Router beside nginx\n", *(f"- {line}" for line in about)]
    lines += table("CPU time of the proxy, µs a request (ratio to nginx: median; least..most of the rounds)", "cpu_us", 1, ("direct",), spread=True)
    lines += table("Requests a second (ratio to nginx)", "rps", 0)
    lines += table("Median latency under this load, µs", "p50_us", 0)
    lines += table("99th percentile, µs", "p99_us", 0)
    lines += table("Share of one core that the proxy used", "cpu_share", 2, ("direct",))
    lines += table("Resident memory after the scenario, MiB", "rss_mib", 0, ("direct",))
    lines += ["\n## Wrong answers\n", *(f"- {p}: {sum(r['bad'] for r in rows if r['peer'] == p)}" for p in peers)]
    return "\n".join(lines) + "\n"


def cpu_model():
    found = re.search(r"model name\s*:\s*(.*)", Path("/proc/cpuinfo").read_text())
    return found[1].strip() if found else "unknown CPU"


def output(*command):
    done = subprocess.run(command, capture_output=True, text=True)
    return (done.stdout + done.stderr).strip().splitlines()[0] if done.returncode in (0, 1) else "?"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--router", action="append", metavar="[NAME=]PATH", help="a router to measure; target/release/kthena-router unless given")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--secs", type=int, default=2, help="seconds a scenario")
    parser.add_argument("--scenarios", default="small,medium,huge,stream,paced", help=f"of {','.join(SCENARIOS)}")
    parser.add_argument("--base-port", type=int, default=19000, help="first of about a dozen ports")
    parser.add_argument("--keep", action="store_true", help="write to bench/baselines/DATE-CPU instead of bench/out")
    options = parser.parse_args()
    options.scenarios = options.scenarios.split(",")
    given = options.router or [str(HERE.parent / "target/release/kthena-router")]
    options.routers = {(name if eq else "router"): Path(path if eq else name).resolve() for name, eq, path in (r.partition("=") for r in given)}
    for tool in ("nginx", "wrk", "taskset"):
        if not shutil.which(tool):
            sys.exit(f"{tool} is needed (Debian: nginx-light, wrk, util-linux)")
    subprocess.run(["cargo", "build", "--release", "--quiet", "--manifest-path", HERE / "Cargo.toml", "--target-dir", HERE / "target"], check=True)
    now = datetime.now(timezone.utc)
    slug = re.sub(r"[^a-z0-9]+", "-", re.sub(r"\(.*?\)|@.*|\bCPU\b", "", cpu_model()).lower()).strip("-")
    out = HERE / "baselines" / f"{now:%Y-%m-%d}-{slug}" if options.keep else HERE / "out"
    out.mkdir(parents=True, exist_ok=True)
    about = [
        f"{now:%Y-%m-%d}, {cpu_model()}, {os.cpu_count()} CPUs, Linux {os.uname().release}; load average before: {os.getloadavg()[0]:.1f}",
        f"{output('nginx', '-v')}; {output('wrk', '-v').split(' Copyright')[0]}; {output('rustc', '--version')}",
        *(f"{name}: {path.name} built {datetime.fromtimestamp(path.stat().st_mtime, timezone.utc):%Y-%m-%d %H:%M} UTC, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()[:12]}" for name, path in options.routers.items()),
        f"this checkout: commit {output('git', '-C', HERE, 'rev-parse', '--short', 'HEAD')}",
        f"{options.rounds} rounds of {options.secs} s a scenario; proxy on CPU {PROXY_CPU}, client and {ENGINES} engines on CPU {REST_CPU}",
        "; ".join(f"{s}: {SCENARIOS[s][0]} bodies, {SCENARIOS[s][1]} connections" + (f", {EVENTS} events" if SCENARIOS[s][2] is not None else "")
                  + (f" {SCENARIOS[s][2] / 1000:g} ms apart" if SCENARIOS[s][2] else "") for s in options.scenarios),
    ]
    text = summary(Bench(options, out).all_rounds(), about)
    (out / "summary.md").write_text(text, encoding="utf-8")
    print("\n" + text)


if __name__ == "__main__":
    main()
