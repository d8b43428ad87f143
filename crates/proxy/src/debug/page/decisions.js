// The latest decisions; each opens to tell why.

const FIRST_DECISIONS = 25;
let allDecisions = false;
const rows = new Map(); // key → details

function showDecisions(data, model) {
  const decisions = list(data.decisions.decisions).filter((d) => !model || d.model === model);
  const place = byId("decisions");
  say(byId("decisions-hint"), decisions.length ? "newest first; open one to see why" : "");
  if (!decisions.length) {
    rows.clear();
    byId("decisions-head").hidden = true;
    place.replaceChildren(el("p", { class: "empty", text: data.decisions.missing ? "This router does not tell its decisions." : "No request was scheduled yet. Decisions appear here as requests come." }));
  } else {
    byId("decisions-head").hidden = false;
    const shown = decisions.filter((d, n) => allDecisions || n < FIRST_DECISIONS || (rows.get(keyOf(d)) || {}).open);
    const keys = new Set(shown.map(keyOf));
    for (const [key, row] of rows) if (!keys.has(key)) { row.remove(); rows.delete(key); }
    for (const stray of [...place.children]) if (stray.tagName !== "DETAILS") stray.remove();
    // Rows that stay are not touched: an open one stays open, and the focus where it is.
    let next = place.firstElementChild;
    for (const d of shown) {
      const key = keyOf(d);
      if (!rows.has(key)) rows.set(key, decisionRow(d));
      const row = rows.get(key);
      if (row === next) next = next.nextElementSibling;
      else place.insertBefore(row, next);
    }
  }
  const more = byId("more-decisions");
  more.hidden = decisions.length <= FIRST_DECISIONS;
  say(more, allDecisions ? "Show fewer decisions" : `Show all ${decisions.length} decisions`);
}

const keyOf = (d) => `${d.requestId} ${d.at}`;

function decisionRow(d) {
  const share = d.hashedBlocks ? (d.matchedBlocks || 0) / d.hashedBlocks : 0;
  const matched = d.pinned ? "pinned" : `${whole(d.matchedBlocks)}/${whole(d.hashedBlocks)}`;
  const fill = el("div", { class: "fill" });
  fill.style.setProperty("--share", String(share));
  const failed = d.status >= 400;
  const to = d.prefillPod ? `${d.prefillPod} → ${d.pod}` : String(d.pod);
  const unseen = (text) => el("span", { class: "hidden-text", text });
  const summary = el("summary", {},
    el("span", { class: "mono time", text: known(d.at) ? clock(d.at) : "–" }),
    el("span", { class: "cut model", text: d.model, title: d.model }),
    el("span", { class: "cut to", text: to, title: to }),
    el("span", { class: "hit" }, el("span", { class: "track", "aria-hidden": "true" }, fill), unseen("matched blocks"), el("span", { text: matched })),
    el("span", { class: "num" }, unseen("time to first token"), words(milliseconds(d.ttftMs))),
    el("span", { class: failed ? "num bad-text" : "num" }, unseen("status"), words(d.status ?? "–")));
  const row = el("details", { class: "decision" }, summary);
  // The explanation is made when somebody wants it.
  row.addEventListener("toggle", () => { if (row.open && row.children.length === 1) row.append(explanation(d)); });
  return row;
}

function explanation(d) {
  const facts = [`${d.modelServer}`, `request ${d.requestId}`];
  if (d.attempt > 1) facts.push(`attempt ${d.attempt}: pods before it failed`);
  if (known(d.cachedTokens)) facts.push(`the engine had ${whole(d.cachedTokens)} of ${whole(d.promptTokens)} tokens cached`);
  else if (known(d.promptTokens)) facts.push(`${whole(d.promptTokens)} prompt tokens`);
  const candidates = list(d.candidates);
  const why = el("div", { class: "why" }, el("p", { text: `${facts.join(" · ")}.` }));
  const dropped = Object.entries(d.filtered || {}).map(([filter, pods]) => `${filter} dropped ${whole(pods)} ${pods === 1 ? "pod" : "pods"}.`);
  if (dropped.length) why.append(el("p", { text: `Before any score: ${dropped.join(" ")}` }));
  if (d.pinned) why.append(el("p", { text: "A session is bound to this pod, so no plugin scored the request." }));
  else if (candidates.length) {
    const sides = d.prefillPod ? [["decode", d.pod], ["prefill", d.prefillPod]] : [[null, d.pod]];
    for (const [role, pod] of sides) {
      const side = candidates.filter((c) => (c.role ?? null) === role);
      why.append(el("p", { text: `${role ? `${role} on ${pod}: ` : ""}${reason(pod, side)}` }));
    }
    why.append(scoreTable(d, candidates));
  }
  return why;
}

// In words: what made the difference to the next best pod. A pair is chosen side by side.
function reason(pod, candidates) {
  const chosen = candidates.find((c) => c.pod === pod);
  const others = candidates.filter((c) => c.pod !== pod).sort((a, b) => b.total - a.total);
  if (!chosen || !others.length) return "It was the only candidate.";
  const next = others[0];
  if (chosen.total === next.total) return `As good as ${next.pod}, and drawn among equals.`;
  if (chosen.total < next.total) return `${next.pod} had more points, but was not the one that served.`;
  const leads = Object.keys(chosen.scores || {}).map((name) => [name, weightOf(name) * (chosen.scores[name] - ((next.scores || {})[name] || 0))]);
  leads.sort((a, b) => b[1] - a[1]);
  return `${chosen.total - next.total} points ahead of ${next.pod}, mostly by ${(leads[0] || ["its scores"])[0]}.`;
}

function scoreTable(d, candidates) {
  const plugins = [...new Set(candidates.flatMap((c) => Object.keys(c.scores || {})))].sort();
  const head = el("tr", {}, el("th", { scope: "col", text: "pod" }),
    ...plugins.map((name) => el("th", { scope: "col", text: weightOf(name) === 1 ? name : `${name} × ${weightOf(name)}` })),
    el("th", { scope: "col", text: "matched" }), el("th", { scope: "col", text: "total" }));
  const side = (c) => c.role || "";
  const sorted = candidates.slice().sort((a, b) => side(a).localeCompare(side(b)) || b.total - a.total);
  const body = sorted.map((c) => {
    const chosen = c.pod === d.pod || c.pod === d.prefillPod;
    return el("tr", { class: chosen && "chosen" },
      el("td", {}, words(c.pod), c.role && el("small", { text: ` ${c.role}` }), chosen && el("small", { text: " ← chosen" })),
      ...plugins.map((name) => el("td", { text: (c.scores || {})[name] ?? "–" })),
      el("td", { text: c.matchedBlocks ?? "–" }), el("td", { text: c.total ?? "–" }));
  });
  return el("div", { class: "scroll", tabindex: 0, role: "region", "aria-label": "Scores of each candidate" },
    el("table", {}, el("thead", {}, head), el("tbody", {}, ...body)));
}
