#!/usr/bin/env python3
"""The page of the debug listener in a real headless Chromium.

    run.py --router PATH [--chromium PATH] [--screenshots FOLDER]

Needs Debian's package chromium and the Python package playwright. Starts two simulated engines and the router in file
mode, one model of which is named like an attack, plays chats, and looks at the page as an operator does: wide and narrow,
light and dark, with the keyboard, with motion reduced, and while the router is away. Screenshots go to a folder that is
not committed. One line per check; the last line is `N passed, N failed`. Exit code 0, or 1 if a check failed.
"""
import argparse
import json
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from pathlib import Path

from playwright.sync_api import sync_playwright

API = "networking.serving.volcano.sh/v1alpha1"
PATIENCE = 60.0  # seconds, for anything that must come
MODEL, ATTACK = "demo", "<img src=x onerror=alert(1)><b>m</b>\u202e"
SPELLED = ATTACK.replace("\u202e", "\\u{202e}")  # it would turn the rest of a line around
CONTRAST = 4.5  # WCAG 2.2, 1.4.3
SMALLEST = 24  # pixels of a control, WCAG 2.2, 2.5.8

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
kind: ModelRoute
metadata: {{name: demo}}
spec:
  modelName: {model}
  rules: [{{targetModels: [{{modelServerName: demo}}]}}]
---
apiVersion: {api}
kind: ModelRoute
metadata: {{name: attack}}
spec:
  modelName: {attack}
  rules: [{{targetModels: [{{modelServerName: demo}}]}}]
"""
# A misspelled argument, so that the doctor has something to say.
CONFIG = """
scheduler:
  pluginConfig:
  - {name: prefix-cache, args: {maxHashCacheSise: 1000}}
  plugins:
    Filter: {enabled: [least-request]}
    Score:
      enabled:
      - {name: least-request, weight: 1}
      - {name: gpu-usage, weight: 1}
      - {name: least-latency, weight: 1}
      - {name: prefix-cache, weight: 2}
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


class Process:
    """A process whose output is collected."""

    def __init__(self, *command):
        self.lines = []
        self.command = [str(c) for c in command]
        self.start()

    def start(self):
        self.process = subprocess.Popen(self.command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                        stderr=subprocess.STDOUT, text=True)
        threading.Thread(target=self._read, args=(self.process,), daemon=True).start()

    def _read(self, process):
        for line in process.stdout:
            self.lines.append(line.rstrip("\n"))

    def said(self, pattern):
        def look():
            if self.process.poll() is not None:
                raise RuntimeError("ended early:\n" + "\n".join(self.lines[-20:]))
            return next((m for line in list(self.lines) if (m := re.search(pattern, line))), None)
        return until(f"output with {pattern!r}", look)

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            try:
                self.process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait()


class Stack:
    """Engines, the router, and chats against it that go on until the end."""

    def __init__(self, router, folder):
        self.parts, self.ended, self.asked = [], threading.Event(), 0
        try:
            engines = [self._start(router, "sim-engine", "--port", 0, "--served-model-name", MODEL,
                                   "--served-model-name", ATTACK, "--time-scale", 4) for _ in range(2)]
            ports = [e.said(r"http://127\.0\.0\.1:(\d+)")[1] for e in engines]
            manifests = folder / "manifests"
            manifests.mkdir()
            endpoints = ", ".join(f"{{name: e{n}, address: 127.0.0.1, port: {p}}}" for n, p in enumerate(ports))
            (manifests / "all.yaml").write_text(MANIFESTS.format(api=API, endpoints=endpoints, model=MODEL,
                                                                 attack=json.dumps(ATTACK)))
            (folder / "router.yaml").write_text(CONFIG)
            port, metrics, debug = free_ports(3)
            self.router = self._start(router, "--config-source=file", "--config-dir", manifests, "--router-config",
                                      folder / "router.yaml", "--port", port, "--metrics-port", metrics,
                                      "--debug-port", debug)
            self.url, self.page = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{debug}/"
            until("the router is ready", self.ready)
        except BaseException:
            self.stop()
            raise

    def _start(self, *command):
        self.parts.append(Process(*command))
        return self.parts[-1]

    def ready(self):
        try:
            with urllib.request.urlopen(self.url + "/readyz", timeout=PATIENCE) as answer:
                return answer.status == 200
        except OSError:
            return False

    def chat(self, text, model):
        # Only a stream has a first token that comes before the rest.
        body = json.dumps({"model": model, "max_tokens": 4, "stream": True,
                           "messages": [{"role": "user", "content": text}]}).encode()
        request = urllib.request.Request(self.url + "/v1/chat/completions", body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=PATIENCE) as answer:
            answer.read()

    def play(self):
        """A chat every now and then, from a thread of its own."""
        def go_on():
            while not self.ended.wait(0.1):
                self.asked += 1
                text = f"Topic {self.asked % 3}. " + "All of us read this long introduction first. " * 20
                try:
                    self.chat(f"{text}Question {self.asked}?", ATTACK if self.asked % 5 == 0 else MODEL)
                except OSError:
                    pass  # a check has taken the router away
        threading.Thread(target=go_on, daemon=True).start()

    def stop(self):
        self.ended.set()
        for part in reversed(self.parts):
            part.stop()


class Browser:
    """Pages that keep an account of what they complain about and whom they talk to."""

    def __init__(self, chromium, url, screenshots):
        self.chromium, self.url, self.screenshots = chromium, url, screenshots
        self.complaints, self.strangers = [], set()

    def open(self, width=1280, height=900, wait=True, **options):
        page = self.chromium.new_page(viewport={"width": width, "height": height}, **options)
        page.set_default_timeout(PATIENCE * 1000)
        page.on("console", lambda m: m.type in ("error", "warning") and self.complaints.append(m.text))
        page.on("pageerror", lambda error: self.complaints.append(str(error)))
        page.on("dialog", lambda d: (self.complaints.append(f"a dialog: {d.message}"), d.dismiss()))
        page.on("request", lambda r: r.url.startswith((self.url, "data:")) or self.strangers.add(r.url))
        page.goto(self.url)
        if wait:
            page.wait_for_selector("details.decision")
            page.wait_for_selector("#ratio-chart svg")
        return page

    def shoot(self, page, name):
        page.screenshot(path=self.screenshots / f"{name}.png", full_page=True)


def content_under_traffic(browser, _):
    page = browser.open()
    page.wait_for_selector("#ttft-chart svg title", state="attached")
    assert page.locator(".pod").count() == 2
    assert page.locator("#tiles .tile").count() == 5
    until("the prefixes match", lambda: re.search(r"[1-9]\d* %", page.locator("#tiles .value").first.inner_text()))
    assert page.locator("#state-text").inner_text() == "Live"
    before = page.locator("details.decision").first.inner_text()
    until("new decisions come", lambda: page.locator("details.decision").first.inner_text() != before)
    browser.shoot(page, "wide-light")


def a_decision_explains_itself(browser, _):
    page = browser.open()
    first = page.locator("details.decision").first
    name = first.locator("summary").inner_text()
    first.locator("summary").click()
    rows = page.locator("details.decision[open] tbody tr")
    assert rows.count() == 2, rows.count()
    assert page.locator("details.decision[open] tr.chosen").count() == 1
    heads = page.locator("details.decision[open] thead").inner_text()
    assert "prefix-cache × 2" in heads and "least-request" in heads, heads
    # It stays open, and the same, while others come above it.
    until("others came above it", lambda: page.locator("details.decision").first.get_attribute("open") is None)
    assert page.locator("details.decision[open] summary").inner_text() == name
    browser.shoot(page, "decision")


def the_doctor_names_the_misspelled_argument(browser, _):
    page = browser.open()
    finding = page.locator(".finding.problem")
    finding.locator("summary").click()
    assert "maxHashCacheSise" in finding.inner_text()
    assert "to change" in page.locator("#doctor-summary").inner_text()


def narrow_has_no_horizontal_scroll(browser, _):
    page = browser.open(400, 800)
    for summary in page.locator(".finding summary").all():
        summary.click()
    page.locator("details.decision summary").first.click()
    wide = page.evaluate("document.documentElement.scrollWidth")
    browser.shoot(page, "narrow-light")
    assert wide <= 400, wide


def the_keyboard_reaches_every_control(browser, _):
    page = browser.open()
    page.locator("#pause").click()  # so that no control comes while they are counted
    page.wait_for_timeout(500)  # a reading under way ends
    controls = page.evaluate("""() => [...document.querySelectorAll('a, button, select, summary, [tabindex="0"]')]
        .filter(e => e.checkVisibility()).map((e, n) => (e.dataset.tab = n))""")
    # The next one is the first of the page.
    page.evaluate("document.body.prepend(Object.assign(document.createElement('i'), {tabIndex: 0, id: 'before'}))")
    page.locator("#before").focus()
    reached = []
    for _ in controls:
        page.keyboard.press("Tab")
        number, outline = page.evaluate("""() => [document.activeElement.dataset.tab,
            getComputedStyle(document.activeElement).outlineStyle]""")
        reached.append(int(number))
        assert outline != "none", f"the focus does not show: {page.evaluate('document.activeElement.outerHTML')[:100]}"
    assert reached == controls, (reached, controls)
    # And works: a decision opens, and the page goes on.
    page.locator("details.decision summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator("details.decision[open]").count() == 1
    page.locator("#pause").focus()
    page.keyboard.press("Space")
    until("it goes on", lambda: page.locator("#state-text").inner_text() == "Live")


def controls_are_large_enough(browser, _):
    page = browser.open(400, 800)
    sizes = page.evaluate("""() => [...document.querySelectorAll('button, select, summary')]
        .filter(e => e.checkVisibility()).map(e => e.getBoundingClientRect()).map(r => Math.min(r.width, r.height))""")
    assert sizes and min(sizes) >= SMALLEST, min(sizes)


# The colours of every text against what is behind it.
CONTRASTS = """() => {
  const rgba = (c) => { const p = c.match(/[\\d.]+/g).map(Number); return p.length < 4 ? [...p, 1] : p; };
  const over = ([r, g, b, a], [R, G, B]) => [r * a + R * (1 - a), g * a + G * (1 - a), b * a + B * (1 - a)];
  const lum = (c) => { const [r, g, b] = c.map((v) => (v /= 255) <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b; };
  const behind = (e) => { const under = e ? rgba(getComputedStyle(e).backgroundColor) : [255, 255, 255, 1];
    return under[3] === 1 ? under.slice(0, 3) : over(under, behind(e.parentElement)); };
  const found = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const e = walker.currentNode.parentElement;
    if (!walker.currentNode.textContent.trim() || !e.checkVisibility() || e.closest(".skip, .hidden-text, script, style, noscript")) continue;
    const s = getComputedStyle(e), back = behind(e), colour = rgba(s[e.closest("svg") ? "fill" : "color"]);
    let alpha = colour[3];
    for (let at = e; at; at = at.parentElement) alpha *= Number(getComputedStyle(at).opacity);
    const text = over([...colour.slice(0, 3), alpha], back), [a, b] = [lum(text), lum(back)].sort((x, y) => y - x);
    found.push([(a + .05) / (b + .05), walker.currentNode.textContent.trim().slice(0, 40)]);
  }
  return found;
}"""


def contrast(browser, scheme):
    page = browser.open(color_scheme=scheme)
    for summary in page.locator(".finding summary").all():
        summary.click()
    page.locator("details.decision summary").first.click()
    found = page.evaluate(CONTRASTS)
    worst = min(found)
    browser.shoot(page, f"wide-{scheme}-open")
    assert len(found) > 50 and worst[0] >= CONTRAST, worst
    return page


def light_has_contrast(browser, _):
    contrast(browser, "light")


def dark_is_dark_and_has_contrast(browser, _):
    page = contrast(browser, "dark")
    red, green, blue = map(int, re.findall(r"\d+", page.evaluate("getComputedStyle(document.body).backgroundColor"))[:3])
    assert max(red, green, blue) < 64
    page = browser.open(400, 800, color_scheme="dark")
    browser.shoot(page, "narrow-dark")


def reduced_motion_moves_nothing(browser, _):
    page = browser.open(reduced_motion="reduce")
    moving = page.evaluate("document.getAnimations().length")
    assert moving == 0, moving


def pause_pauses(browser, _):
    page = browser.open()
    page.locator("#pause").click()
    assert page.locator("#pause").get_attribute("aria-pressed") == "true"
    assert page.locator("#state-text").inner_text() == "Paused"
    page.wait_for_timeout(500)  # a reading under way ends
    asked = []
    page.on("request", lambda r: asked.append(r.url))
    page.wait_for_timeout(4500)  # two periods
    assert not asked, asked
    page.locator("#pause").click()
    until("it goes on", lambda: page.wait_for_timeout(50) or asked)


def names_stay_text(browser, _):
    page = browser.open()
    until("the attack was decided", lambda: page.get_by_text(SPELLED, exact=True).count() > 0)
    assert page.locator("main img, main b >> text=/^m$/").count() == 0
    # The choice of models is for the figures of one of them.
    page.locator("#model").select_option(ATTACK)
    until("only those", lambda: set(page.locator("details.decision .model").all_inner_texts()) == {SPELLED})
    tile = page.locator("#tiles .tile").first.inner_text()
    assert "of this model" in tile, tile
    page.locator("details.decision summary").first.click()
    assert page.evaluate("document.querySelectorAll('main img').length") == 0


def charts_speak(browser, _):
    page = browser.open()
    for name in "ratio", "ttft":
        chart = page.locator(f"#{name}-chart svg")
        assert chart.get_attribute("role") == "img"
        assert "now" in chart.get_attribute("aria-label"), name
        assert chart.locator("title").text_content() and chart.locator("desc").text_content()
    for meter in page.get_by_role("meter").all():
        assert meter.get_attribute("aria-label") and meter.get_attribute("aria-valuetext")


def a_router_that_is_gone_and_comes_again(browser, stack):
    page = browser.open()
    complaints = list(browser.complaints)
    assert page.locator("main[data-stale]").count() == 0
    read = page.evaluate("now.readAt.getTime()")
    stack.router.stop()
    alert = page.locator("#gone")
    alert.wait_for(state="visible")
    assert page.locator("main[data-stale]").count() == 1, "old figures do not look like new ones"
    last = page.evaluate("[now.readAt.getTime(), now.readAt.toLocaleTimeString('en-GB')]")
    assert read <= last[0] < page.evaluate("Date.now()") and last[1] in alert.inner_text(), (last, alert.inner_text())
    assert "has not answered since" in alert.inner_text() and "from then" in alert.inner_text()
    assert page.locator("#state-text").inner_text() == "No answer"
    assert page.locator(".pod").count() == 2, "the last figures stay"
    browser.shoot(page, "gone")
    # That nobody answers is what the browser complains of.
    assert all("ERR_" in c for c in browser.complaints[len(complaints):]), browser.complaints
    browser.complaints[:] = complaints
    stack.router.start()
    alert.wait_for(state="hidden")
    until("it is live", lambda: page.locator("#state-text").inner_text() == "Live")
    browser.complaints[:] = complaints


def nothing_yet(browser, _):
    """A router without a request: what is empty says so."""
    page = browser.open(wait=False)
    page.wait_for_selector("#decisions .empty")
    assert "No request was scheduled yet" in page.locator("#decisions").inner_text()
    assert page.locator(".chart .empty").count() == 2
    browser.shoot(page, "empty")


def no_complaint(browser, _):
    assert not browser.complaints, browser.complaints


def no_stranger(browser, _):
    assert not browser.strangers, browser.strangers


FIRST = [nothing_yet]
CHECKS = [content_under_traffic, a_decision_explains_itself, the_doctor_names_the_misspelled_argument,
          narrow_has_no_horizontal_scroll, the_keyboard_reaches_every_control, controls_are_large_enough,
          light_has_contrast, dark_is_dark_and_has_contrast, reduced_motion_moves_nothing, pause_pauses, names_stay_text,
          charts_speak, a_router_that_is_gone_and_comes_again, no_complaint, no_stranger]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--router", required=True, type=Path, help="the program")
    parser.add_argument("--chromium", default="/usr/bin/chromium", help="the browser")
    parser.add_argument("--screenshots", default="target/page", type=Path, help="folder for pictures")
    options = parser.parse_args()
    options.screenshots.mkdir(parents=True, exist_ok=True)
    passed = failed = 0
    with tempfile.TemporaryDirectory(prefix="page-") as name, sync_playwright() as playwright:
        stack = Stack(options.router.resolve(), Path(name))
        # Chromium's own sandbox needs rights that a container does not have; it sees this page only.
        chromium = playwright.chromium.launch(executable_path=options.chromium, args=["--no-sandbox"])
        try:
            browser = Browser(chromium, stack.page, options.screenshots)
            for check in FIRST + CHECKS:
                if check is CHECKS[0]:
                    stack.play()
                try:
                    check(browser, stack)
                    passed += 1
                    print(f"ok    {check.__name__}", flush=True)
                except Exception as error:  # a check may fail in any way
                    failed += 1
                    print(f"FAIL  {check.__name__}: {type(error).__name__}: {error}", flush=True)
                for context in chromium.contexts:
                    context.close()
        finally:
            chromium.close()
            stack.stop()
    print(f"{passed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
