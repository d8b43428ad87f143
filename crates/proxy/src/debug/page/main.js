// Reads the debug pages again and again, and shows what they say.

const PERIOD = 2000; // milliseconds between two readings
const DOCTOR_EVERY = 3; // readings
const PATIENCE = 5000; // milliseconds until an answer is given up

const now = { data: null, doctor: null, readings: 0, paused: false, readAt: null, gone: false, uptime: null, timer: null, router: {} };
const model = () => byId("model").value;
const weightOf = (plugin) => (list(now.router.scores).find((s) => s.name === plugin) || { weight: 1 }).weight;

async function read(path) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(PATIENCE), cache: "no-store" });
  if (answer.status === 404) return { missing: true };
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}`);
  return answer.json();
}

async function reading() {
  const due = now.readings % DOCTOR_EVERY === 0;
  const [pods, prefix, decisions, router, doctor] = await Promise.all([
    read("/debug/config_dump/pods"), read("/debug/prefix-cache"), read("/debug/decisions"), read("/debug/router"),
    due ? read("/debug/doctor?format=json") : now.doctor]);
  now.readings += 1;
  now.readAt = new Date();
  now.data = { pods, prefix, decisions };
  now.doctor = doctor;
  now.router = router;
  history.add(list(decisions.decisions));
}

async function turn() {
  clearTimeout(now.timer);
  if (now.paused || document.hidden) return;
  try {
    await reading();
    now.gone = false;
    byId("gone").hidden = true;
    show();
  } catch (error) {
    gone(error);
  }
  state();
  clearTimeout(now.timer);
  now.timer = setTimeout(turn, PERIOD);
}

function gone(error) {
  now.gone = true;
  now.readAt = now.readAt || new Date();
  const since = now.readAt.toLocaleTimeString("en-GB");
  const silent = error instanceof TypeError || error.name === "TimeoutError";
  const what = silent ? `The router has not answered since ${since}.` : `The router answers with an error since ${since}: ${error.message}.`;
  const shown = now.data ? "What is shown below is from then." : "There is nothing to show yet.";
  say(byId("gone"), `${what} ${shown} It is asked again every ${PERIOD / 1000} seconds.`);
  byId("gone").hidden = false;
}

function state() {
  const [name, text] = now.paused ? ["paused", "Paused"] : now.gone ? ["gone", "No answer"] : ["live", "Live"];
  byId("state").dataset.state = name;
  byId("main").toggleAttribute("data-stale", name === "gone");
  say(byId("state-text"), text);
}

function show() {
  if (!now.data) return;
  const { data } = now;
  models(data);
  const up = now.router.uptimeSeconds;
  say(byId("about"), [now.router.version && `version ${now.router.version}`, known(up) && `up ${duration(up)}`].filter(Boolean).join(" · "));
  showTiles(data, model());
  showFindings(now.doctor);
  charts();
  showPods(data);
  showDecisions(data, model());
}

function charts() {
  const of = (figure) => history.points(model(), figure);
  drawChart(byId("ratio-chart"), byId("ratio-legend"), "Share of the prompt that was sent to the pod before", [
    { name: "router's match", points: of(matchRatio) },
    { name: "cached in the engine", points: of(cachedShare), second: true }], 1, percent,
    "Nothing to draw yet: this fills as requests come.");
  drawChart(byId("ttft-chart"), byId("ttft-legend"), "Time to first token", [
    { name: "p50", points: of(quantile(0.5)) }, { name: "p90", points: of(quantile(0.9)), second: true }], null, milliseconds,
    "Nothing to draw yet: only streamed answers have a first token before the rest.");
}

// A choice of models, once there are two.
function models(data) {
  const seen = new Set([...list(data.decisions.decisions).map((d) => d.model), ...[...byId("model").options].map((o) => o.value)].filter(Boolean));
  const names = [...seen].sort().slice(0, 200);
  byId("model-field").hidden = names.length < 2;
  if (byId("model").options.length === names.length + 1) return;
  const chosen = model();
  byId("model").replaceChildren(el("option", { value: "", text: "all" }), ...names.map((name) => el("option", { value: name, text: name })));
  byId("model").value = chosen;
}

byId("pause").addEventListener("click", () => {
  now.paused = !now.paused;
  byId("pause").setAttribute("aria-pressed", String(now.paused));
  byId("pause").textContent = now.paused ? "Resume" : "Pause";
  state();
  turn();
});
byId("model").addEventListener("change", show);
byId("more-pods").addEventListener("click", () => { allPods = !allPods; show(); });
byId("more-decisions").addEventListener("click", () => { allDecisions = !allDecisions; show(); });
document.addEventListener("visibilitychange", turn);
new ResizeObserver(() => now.data && charts()).observe(byId("main"));
turn();
