"use strict";
// What the router tells is text and nothing else: nodes are made here, and text is set by textContent only.

const SVG = "http://www.w3.org/2000/svg";
const byId = (id) => document.getElementById(id);

// Names come from elsewhere: what turns a line around, or is not seen, is spelled out.
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff]/g;
const plain = (text) => String(text).replace(UNSEEN, (c) => `\\u{${c.codePointAt(0).toString(16)}}`);
const words = (text) => document.createTextNode(plain(text));

function put(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name === "text") node.textContent = plain(value);
    else if (name === "title" || name.startsWith("aria-")) node.setAttribute(name, plain(value));
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  for (const child of children || []) if (child) node.append(child);
  return node;
}
const el = (name, attributes, ...children) => put(document.createElement(name), attributes, children);
const svg = (name, attributes, ...children) => put(document.createElementNS(SVG, name), attributes, children);

// Live regions speak when their text is set, so it is set only when it is another one.
function say(node, text) {
  const said = plain(text);
  if (node.textContent !== said) node.textContent = said;
}

const known = (value) => typeof value === "number" && Number.isFinite(value);
const list = (value) => (Array.isArray(value) ? value : []);
const whole = (n) => (known(n) ? Math.round(n).toLocaleString("en") : "–");
const percent = (share) => (known(share) ? `${Math.round(share * 100)} %` : "–");
const milliseconds = (ms) => (!known(ms) ? "–" : ms >= 10000 ? `${(ms / 1000).toFixed(1)} s` : ms >= 10 || ms === 0 ? `${Math.round(ms)} ms` : `${ms.toFixed(1)} ms`);
const clock = (seconds) => new Date(seconds * 1000).toLocaleTimeString("en-GB");

function duration(seconds) {
  if (!known(seconds)) return "";
  const units = [[86400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
  const [size, unit] = units.find(([size]) => seconds >= size) || [1, "s"];
  return `${Math.floor(seconds / size)} ${unit}`;
}

// A bar and its figure. `label` is what a screen reader says; from `hot` on the bar warns.
function meter(what, share, text, label, hot = Infinity) {
  const fill = el("div", { class: share >= hot ? "fill hot" : "fill" });
  fill.style.setProperty("--share", String(Math.max(0, Math.min(1, known(share) ? share : 0))));
  const track = el("div", {
    class: "track", role: "meter", "aria-label": label || what, "aria-valuemin": 0, "aria-valuemax": 100,
    "aria-valuenow": Math.round((known(share) ? share : 0) * 100), "aria-valuetext": text,
  }, fill);
  return el("div", { class: "meter" }, el("span", { class: "what", text: what }), track, el("span", { class: "much", text }));
}
