#!/usr/bin/env python3
"""What following many pods costs: the router's CPU time while it scrapes them and serves nothing.

Starts engines in one process, the router with all of them in one ModelServer, and takes the router's CPU time over some
seconds. The interval is the default, one second for each pod.
"""
import argparse
import re
import resource
import shutil
import subprocess
import sys
import time
import urllib.request

import run


def scraped(metrics_port):
    page = urllib.request.urlopen(f"http://127.0.0.1:{metrics_port}/metrics", timeout=5).read().decode()
    return len(re.findall(r"^kthena_router_pod_waiting_requests\{", page, re.M))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--router", default=str(run.HERE.parent / "target/release/kthena-router"))
    parser.add_argument("--pods", type=int, default=1000)
    parser.add_argument("--page-kib", type=int, default=70, help="size of a pod's metrics page; a real vLLM's has 70 KiB")
    parser.add_argument("--secs", type=int, default=20)
    parser.add_argument("--base-port", type=int, default=20000, help="first of --pods + 3 ports")
    options = parser.parse_args()
    if not shutil.which("taskset"):
        sys.exit("taskset is needed (Debian: util-linux)")
    wanted = 4 * options.pods + 256
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted if hard == resource.RLIM_INFINITY else min(wanted, hard), hard))
    subprocess.run(["cargo", "build", "--release", "--quiet", "--manifest-path", run.HERE / "Cargo.toml",
                    "--target-dir", run.HERE / "target"], check=True)
    work = run.HERE / "out/scrape"
    manifests = work / "manifests"
    manifests.mkdir(parents=True, exist_ok=True)
    ports = [options.base_port + i for i in range(options.pods)]
    endpoints = "\n".join(f"    - {{name: e{p}, address: 127.0.0.1, port: {p}}}" for p in ports)
    (manifests / "mock.yaml").write_text(run.MANIFESTS.format(first=ports[0], endpoints=endpoints))
    port = options.base_port + options.pods
    config = run.HERE.parent / "examples/standalone/config/routerConfiguration.yaml"
    log = open(work / "log", "wb")
    engines = subprocess.Popen(["taskset", "-c", str(run.REST_CPU), run.HERE / "target/release/engine", str(ports[0]),
                                str(options.pods), str(options.page_kib)], stdout=log, stderr=log)
    router = subprocess.Popen(["taskset", "-c", str(run.PROXY_CPU), options.router, "--config-source=file",
                               f"--config-dir={manifests}", f"--router-config={config}", f"--port={port}",
                               f"--metrics-port={port + 1}", f"--debug-port={port + 2}"], stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 30
        while True:
            try:
                if scraped(port + 1) == options.pods:
                    break
            except OSError:
                pass
            if router.poll() is not None or time.monotonic() > deadline:
                sys.exit(f"the router does not follow all pods; see {work / 'log'}")
            time.sleep(0.5)
        time.sleep(3)
        before, began = run.cpu_seconds(router.pid), time.monotonic()
        time.sleep(options.secs)
        share = (run.cpu_seconds(router.pid) - before) / (time.monotonic() - began)
        print(f"{options.pods} pods, pages of {options.page_kib} KiB: {share:.1%} of one core, {run.rss_mib(router.pid):.0f} MiB resident")
    finally:
        router.terminate()
        engines.kill()
        router.wait()


if __name__ == "__main__":
    main()
