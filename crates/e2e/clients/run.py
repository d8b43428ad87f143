#!/usr/bin/env python3
"""Real clients against the router in front of simulated engines.

    run.py --router PATH [--only TEXT]

Needs Python 3.11 with the packages openai, httpx[http2] and trustme, and curl. Starts two simulated engines and the router with a
directory of manifests, all on free ports of loopback, and talks to it as users do: with curl, with OpenAI's library and
with httpx over HTTP/2. One line per check; the last line is `N passed, N failed`. Exit code 0, or 1 if a check failed.
"""
import argparse
import asyncio
import gzip
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import ssl
import threading
import time
import urllib.request
from pathlib import Path

import httpx
import openai
import trustme

PATIENCE = 30.0  # seconds, for anything that must come
API = "networking.serving.volcano.sh/v1alpha1"
# What clients ask for, and what the engines call it.
MODEL, ENGINE_MODEL = "demo", "org/demo-7b"

CHECKS = []


def check(function):
    CHECKS.append(function)
    return function


# ---- the stack ----------------------------------------------------------------------------------------------------


def until(what, ask):
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        answer = ask()
        if answer is not None:
            return answer
        time.sleep(0.02)
    raise TimeoutError(f"waited {PATIENCE:.0f} s in vain: {what}")


class Process:
    """A process whose output is collected."""

    def __init__(self, *command, env=None):
        self.lines = []
        self.process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True, env=os.environ | (env or {}))
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self):
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))

    def said(self, pattern):
        def ask():
            found = next((m for line in list(self.lines) if (m := re.search(pattern, line))), None)
            if found is None and self.process.poll() is not None:
                raise RuntimeError("ended early:\n" + "\n".join(self.lines))
            return found
        return until(f"output with {pattern!r}", ask)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()
        return self.process.returncode


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def manifests(engine_ports):
    endpoints = "".join(f"  - {{name: e{n}, address: 127.0.0.1, port: {port}}}\n" for n, port in enumerate(engine_ports))

    def server(name, model):
        return (f"apiVersion: {API}\nkind: ModelServer\nmetadata: {{name: {name}}}\nspec:\n{model}  inferenceEngine: vLLM\n"
                f"  workloadSelector: {{matchLabels: {{app: engine}}}}\n  workloadPort: {{port: 8000}}\n"
                f"  endpoints:\n{endpoints}")

    def route(name, model, target):
        return (f"apiVersion: {API}\nkind: ModelRoute\nmetadata: {{name: {name}}}\nspec:\n  modelName: {model}\n"
                f"  rules:\n  - targetModels: [{{modelServerName: {target}}}]\n")

    return "---\n".join([server("renamed", f"  model: {ENGINE_MODEL}\n"), server("as-is", ""),
                         route("renamed", MODEL, "renamed"), route("as-is", ENGINE_MODEL, "as-is")])


class Secured:
    """Where the router is reached over TLS."""

    def __init__(self, url):
        self.url = url


class Stack:
    def __init__(self, router, folder):
        self.parts = []
        try:
            engines = [self._start(router, "sim-engine", "--port", "0", "--served-model-name", ENGINE_MODEL,
                                   "--time-scale", "4") for _ in range(2)]
            ports = [int(e.said(r"http://127\.0\.0\.1:(\d+)")[1]) for e in engines]
            (folder / "manifests.yaml").write_text(manifests(ports), encoding="utf-8")
            config = folder / "config.yml.txt"
            config.write_text("scheduler:\n  plugins:\n    Filter: {enabled: [least-request]}\n    Score:\n      enabled:\n"
                              "      - {name: prefix-cache, weight: 1}\n      - {name: least-request, weight: 1}\n")
            self.router, port, metrics = self._route(router, folder, config)
            self.url, self.metrics = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{metrics}/metrics"
            until("the router is ready", self._ready)
            self.authority, certificate, key = folder / "ca.crt", folder / "tls.crt", folder / "tls.key"
            authority = trustme.CA()
            authority.cert_pem.write_to_path(str(self.authority))
            pair = authority.issue_cert("localhost")
            pair.cert_chain_pems[0].write_to_path(str(certificate))
            pair.private_key_pem.write_to_path(str(key))
            _, port, _ = self._route(router, folder, config, "--tls-cert", str(certificate), "--tls-key", str(key))
            self.tls = Secured(f"https://localhost:{port}")
            until("the router with TLS is ready", lambda: curl_or_none(self, "/readyz"))
        except BaseException:
            self.stop()
            raise
        self.openai = openai.OpenAI(base_url=self.url + "/v1", api_key="none", max_retries=0, timeout=PATIENCE)

    def _route(self, router, folder, config, *more):
        port, metrics, debug = free_ports(3)
        process = self._start(router, "--config-source=file", "--config-dir", str(folder), "--router-config", str(config),
                              "--port", str(port), "--metrics-port", str(metrics), "--debug-port", str(debug), *more,
                              env={"METRICS_SCRAPE_INTERVAL": "200ms"})
        process.said("serving on port")
        return process, port, metrics

    def _start(self, *command, env=None):
        self.parts.append(Process(*command, env=env))
        return self.parts[-1]

    def _ready(self):
        try:
            with urllib.request.urlopen(self.url + "/readyz", timeout=PATIENCE) as answer:
                return answer.status
        except OSError:
            return None

    def stop(self):
        return [part.stop() for part in reversed(self.parts)]


# ---- curl ---------------------------------------------------------------------------------------------------------


def curl(stack, path, *options, body=None, headers=("Content-Type: application/json",)):
    """Status and body."""
    command = ["curl", "--silent", "--show-error", "--no-buffer", "--max-time", str(PATIENCE), "--write-out",
               "\n%{http_code} %{http_version}", *options]
    for header in headers:
        command += ["--header", header]
    if body is not None:
        command += ["--data-binary", "@-"]
    done = subprocess.run([*command, stack.url + path], input=body, capture_output=True, check=False)
    if done.returncode:
        raise AssertionError(f"curl ended with {done.returncode}: {done.stderr.decode()}")
    text, _, last = done.stdout.decode().rpartition("\n")
    status, version = last.split()
    return int(status), version, text


def chat_body(content="Say hello.", **more):
    return json.dumps({"model": MODEL, "max_tokens": 8, "messages": [{"role": "user", "content": content}]} | more).encode()


def equal(got, wanted):
    assert got == wanted, f"{got!r}, not {wanted!r}"


@check
def curl_chat(stack):
    status, version, text = curl(stack, "/v1/chat/completions", body=chat_body())
    equal((status, version), (200, "1.1"))
    assert json.loads(text)["choices"][0]["message"]["content"]


@check
def curl_stream_ends_with_done_and_hides_usage(stack):
    status, _, text = curl(stack, "/v1/chat/completions", body=chat_body(stream=True))
    equal(status, 200)
    events = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    equal(events[-1], "[DONE]")
    assert all(json.loads(e)["choices"] for e in events[:-1]), "an event without choices: usage was not asked for"


@check
def curl_expect_100_continue_with_a_large_body(stack):
    body = chat_body("word " * 1_000, padding="x" * (3 << 20))
    headers = ("Content-Type: application/json", "Expect: 100-continue")
    status, _, text = curl(stack, "/v1/chat/completions", "--http1.1", body=body, headers=headers)
    equal(status, 200)
    assert json.loads(text)["usage"]["prompt_tokens"] > 1_000


@check
def curl_chunked_upload(stack):
    headers = ("Content-Type: application/json", "Transfer-Encoding: chunked")
    equal(curl(stack, "/v1/chat/completions", "--http1.1", body=chat_body(), headers=headers)[0], 200)


@check
def curl_gzip_body(stack):
    headers = ("Content-Type: application/json", "Content-Encoding: gzip")
    # The router writes the model's other name into the body, so the engine gets it plain.
    status, _, text = curl(stack, "/v1/chat/completions", body=gzip.compress(chat_body()), headers=headers)
    equal(status, 200)
    assert json.loads(text)["choices"]
    # Where nothing changes it goes on as it came, and such engines do not read it: their answer comes back.
    as_is = gzip.compress(chat_body(model=ENGINE_MODEL))
    equal(curl(stack, "/v1/chat/completions", body=as_is, headers=headers)[0], 400)


@check
def curl_http2_prior_knowledge(stack):
    features = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout
    if "HTTP2" not in features:
        return
    status, version, text = curl(stack, "/v1/chat/completions", "--http2-prior-knowledge", body=chat_body())
    equal((status, version), (200, "2"))
    assert json.loads(text)["choices"]


def curl_or_none(stack, path):
    try:
        answer = curl_tls(stack, path)
    except AssertionError:
        return None
    return answer if answer[0] == 200 else None


def curl_tls(stack, path, *options, **more):
    return curl(stack.tls, path, "--cacert", str(stack.authority), *options, **more)


@check
def curl_tls_http2_by_alpn(stack):
    features = subprocess.run(["curl", "--version"], capture_output=True, text=True, check=True).stdout
    status, version, text = curl_tls(stack, "/v1/chat/completions", body=chat_body())
    equal((status, version), (200, "2" if "HTTP2" in features else "1.1"))
    assert json.loads(text)["choices"]


@check
def curl_tls_http1_and_old_tls(stack):
    for options in (["--http1.1"], ["--http1.1", "--tls-max", "1.2"], ["--http1.1", "--tlsv1.3"]):
        status, version, text = curl_tls(stack, "/v1/chat/completions", *options, body=chat_body())
        equal((status, version), (200, "1.1"))
        assert json.loads(text)["choices"]


@check
def curl_errors(stack):
    for body, status, kind in ((b"{", 400, "request_parsing"), (b'{"model":"no-such"}', 404, "route_not_found")):
        got, _, text = curl(stack, "/v1/chat/completions", body=body)
        error = json.loads(text)["error"]
        equal((got, error["type"], error["code"]), (status, kind, status))


# ---- OpenAI's library ---------------------------------------------------------------------------------------------

MESSAGES = [{"role": "system", "content": "You are brief."}, {"role": "user", "content": "What is a router?"}]


@check
def sdk_chat(stack):
    answer = stack.openai.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=8)
    assert answer.choices[0].message.content
    equal(answer.usage.completion_tokens, 8)


@check
def sdk_chat_stream(stack):
    chunks = list(stack.openai.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=8, stream=True))
    assert "".join(c.choices[0].delta.content or "" for c in chunks)
    equal(chunks[-1].choices[0].finish_reason, "length")


@check
def sdk_chat_stream_with_usage(stack):
    stream = stack.openai.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=8, stream=True,
                                                  stream_options={"include_usage": True})
    last = list(stream)[-1]
    equal((last.choices, last.usage.completion_tokens), ([], 8))


@check
def sdk_chat_stream_left_early(stack):
    stream = stack.openai.chat.completions.create(model=MODEL, messages=MESSAGES, max_tokens=2_000, stream=True)
    next(iter(stream))
    stream.close()

    def idle():
        with urllib.request.urlopen(stack.metrics, timeout=PATIENCE) as page:
            gauges = re.findall(r"^kthena_router_active_requests (\d+)$", page.read().decode(), re.M)
        return True if gauges == ["0"] else None
    until("the request is over", idle)


@check
def sdk_completions(stack):
    answer = stack.openai.completions.create(model=MODEL, prompt="Once upon a time", max_tokens=8)
    assert answer.choices[0].text


@check
def sdk_completions_stream(stack):
    chunks = list(stack.openai.completions.create(model=MODEL, prompt="Once upon a time", max_tokens=8, stream=True))
    assert "".join(c.choices[0].text for c in chunks)


@check
def sdk_responses(stack):
    answer = stack.openai.responses.create(model=MODEL, instructions="Be brief.", input="What is a router?",
                                           max_output_tokens=8)
    assert answer.output_text


@check
def sdk_responses_stream(stack):
    with stack.openai.responses.create(model=MODEL, input="What is a router?", max_output_tokens=8, stream=True) as stream:
        events = list(stream)
    equal(events[0].type, "response.created")
    assert any(e.type == "response.output_text.delta" for e in events)
    assert events[-1].type in ("response.completed", "response.incomplete"), events[-1].type


@check
def sdk_models(stack):
    equal(sorted(m.id for m in stack.openai.models.list()), sorted([MODEL, ENGINE_MODEL]))
    equal(stack.openai.models.retrieve(ENGINE_MODEL).id, ENGINE_MODEL)


@check
def sdk_error_classes(stack):
    chat = stack.openai.chat.completions
    for error, what, call in (
        (openai.NotFoundError, "unknown model", lambda: chat.create(model="no-such", messages=MESSAGES)),
        (openai.NotFoundError, "model of that name", lambda: stack.openai.models.retrieve("no-such")),
        (openai.BadRequestError, "max_tokens", lambda: chat.create(model=MODEL, messages=MESSAGES, max_tokens=-1)),
        (openai.BadRequestError, "prompt too long", lambda: chat.create(model=MODEL, messages=MESSAGES, max_tokens=10**7)),
    ):
        try:
            call()
        except error as raised:
            assert raised.message
        else:
            raise AssertionError(f"no {error.__name__} for {what}")


@check
def sdk_async_many_at_once(stack):
    async def play():
        async with openai.AsyncOpenAI(base_url=stack.url + "/v1", api_key="none", max_retries=0) as client:
            calls = [client.chat.completions.create(model=MODEL, max_tokens=8, messages=MESSAGES + [
                {"role": "user", "content": f"Question {n}"}]) for n in range(24)]
            return await asyncio.gather(*calls)
    equal(len([a for a in asyncio.run(play()) if a.choices[0].message.content]), 24)


# ---- httpx --------------------------------------------------------------------------------------------------------


JSON = {"content-type": "application/json"}


def h2(stack):
    return httpx.Client(http1=False, http2=True, base_url=stack.url, timeout=PATIENCE, headers=JSON)


@check
def httpx_http2_chat(stack):
    with h2(stack) as client:
        answer = client.post("/v1/chat/completions", content=chat_body())
    equal((answer.status_code, answer.http_version), (200, "HTTP/2"))
    assert answer.json()["choices"]


@check
def httpx_http2_stream(stack):
    body = chat_body(stream=True, max_tokens=40)
    with h2(stack) as client, client.stream("POST", "/v1/chat/completions", content=body) as answer:
        equal((answer.status_code, answer.http_version), (200, "HTTP/2"))
        events = [line for line in answer.iter_lines() if line.startswith("data: ")]
    equal(events[-1], "data: [DONE]")
    assert len(events) > 10, len(events)


@check
def httpx_http2_many_on_one_connection(stack):
    async def play():
        async with httpx.AsyncClient(http1=False, http2=True, base_url=stack.url, timeout=PATIENCE, headers=JSON) as client:
            posts = (client.post("/v1/chat/completions", content=chat_body(f"Number {n}")) for n in range(30))
            return await asyncio.gather(*posts)
    equal([a.status_code for a in asyncio.run(play())], [200] * 30)


@check
def openai_over_tls(stack):
    trust = ssl.create_default_context(cafile=str(stack.authority))
    with httpx.Client(http2=True, verify=trust, timeout=PATIENCE) as client:
        api = openai.OpenAI(base_url=stack.tls.url + "/v1", api_key="none", max_retries=0, http_client=client)
        question = [{"role": "user", "content": "Say hello."}]
        with api.chat.completions.create(model=MODEL, messages=question, max_tokens=8, stream=True) as stream:
            equal(stream.response.http_version, "HTTP/2")
            assert sum(len(part.choices[0].delta.content or "") for part in stream) > 0


@check
def httpx_prefix_is_found_the_second_time(stack):
    with httpx.Client(base_url=stack.url, timeout=PATIENCE, headers=JSON) as client:
        body = chat_body("A long question that both requests share. " * 40)
        for _ in range(2):
            equal(client.post("/v1/chat/completions", content=body).status_code, 200)
    page = httpx.get(stack.metrics, timeout=PATIENCE).text
    assert re.search(r'^kthena_router_prefix_cache_match_ratio_count\{model="demo"\} ', page, re.M), page
    entries = re.search(r"^kthena_router_prefix_cache_entries (\d+)$", page, re.M)
    assert int(entries[1]) > 20, entries[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--router", required=True, type=Path, help="the program")
    parser.add_argument("--only", default="", help="part of a check's name")
    options = parser.parse_args()
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="clients-") as folder:
        stack = Stack(str(options.router.resolve()), Path(folder))
        try:
            for function in CHECKS:
                if options.only not in function.__name__:
                    continue
                try:
                    function(stack)
                    passed += 1
                    print(f"ok    {function.__name__}", flush=True)
                except Exception as error:  # a check may fail in any way
                    failed += 1
                    print(f"FAIL  {function.__name__}: {type(error).__name__}: {error}", flush=True)
        finally:
            codes = stack.stop()
        if any(codes):
            failed += 1
            print(f"FAIL  exit codes of router and engines {codes}\n" + "\n".join(stack.router.lines[-20:]))
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
