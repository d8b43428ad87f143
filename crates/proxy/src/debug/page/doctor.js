// What /debug/doctor finds.

let lastFindings = "";

function showFindings(answer) {
  const findings = list(answer && answer.findings);
  const wrong = findings.filter((f) => f.severity !== "note").length;
  say(byId("doctor-summary"), !answer ? "No answer from /debug/doctor."
    : wrong ? `${wrong} ${wrong === 1 ? "thing" : "things"} to change`
    : answer.judged === false && !findings.length ? "Nothing wrong so far: too few requests to judge by." : "Nothing wrong.");
  byId("doctor-summary").classList.toggle("fine", Boolean(answer) && !wrong && answer.judged !== false);
  const text = JSON.stringify(findings);
  if (text === lastFindings) return;
  lastFindings = text;
  const place = byId("findings");
  const open = new Set([...place.querySelectorAll("details[open]")].map((d) => d.dataset.key));
  const focused = document.activeElement && document.activeElement.closest("#findings details");
  place.replaceChildren(...findings.map((f) => finding(f, open)));
  if (focused) {
    const again = [...place.children].find((d) => d.dataset.key === focused.dataset.key);
    if (again) again.firstElementChild.focus();
  }
}

function finding(f, open) {
  const kind = ["problem", "warning"].includes(f.severity) ? f.severity : "note";
  const row = el("details", { class: `finding ${kind}` },
    el("summary", {}, el("span", { class: "kind", text: kind }), words(f.title)),
    el("dl", {}, el("dt", { text: "Seen" }), el("dd", { text: f.evidence }), el("dt", { text: "Advice" }), el("dd", { text: f.advice })));
  // Not the title: it holds figures that change.
  row.dataset.key = `${f.check} ${f.severity}`;
  row.open = open.has(row.dataset.key);
  return row;
}
