// One card a pod.

const FIRST_PODS = 48;
let allPods = false;

function showPods(data) {
  const entries = new Map(list(data.prefix.pods).map((p) => [p.pod, p]));
  const pods = list(data.pods.pods).slice().sort((a, b) => podName(a).localeCompare(podName(b), "en", { numeric: true }));
  const busiest = Math.max(1, ...pods.map((p) => p.inFlight || 0));
  say(byId("pods-hint"), pods.length ? `${pods.length} in all` : "");
  const shown = allPods ? pods : pods.slice(0, FIRST_PODS);
  byId("pods").replaceChildren(...shown.map((pod) => podCard(pod, entries.get(podName(pod)), busiest)));
  if (!pods.length) byId("pods").replaceChildren(el("p", { class: "empty", text: "No pod. ModelServers name the pods; the router's log says if one was refused." }));
  const more = byId("more-pods");
  more.hidden = pods.length <= FIRST_PODS;
  say(more, allPods ? "Show fewer pods" : `Show all ${pods.length} pods`);
}

const podName = (pod) => `${pod.namespace}/${pod.name}`;

function podCard(pod, entries, busiest) {
  const name = podName(pod), m = pod.metrics || {}, unknown = !pod.metricsKnown;
  const kv = m.gpuCacheUsage;
  const lines = [
    meter("requests", (pod.inFlight || 0) / busiest, whole(pod.inFlight), `requests from this router on ${name}`),
    meter("KV cache", unknown ? 0 : kv, unknown ? "–" : percent(kv), `KV cache in use on ${name}`, 0.9),
  ];
  if (entries) {
    lines.push(meter("entries", entries.capacity ? entries.entries / entries.capacity : 0, whole(entries.entries), `prefix entries of ${name}`));
  }
  const engine = unknown ? "load unknown" : `${whole(m.requestRunningNum)} running, ${whole(m.requestWaitingNum)} waiting`;
  const ttft = m.ttft > 0 && !unknown ? ` · TTFT ${milliseconds(m.ttft * 1000)}` : "";
  return el("div", { class: unknown ? "pod unknown" : "pod" },
    el("div", { class: "pod-name" }, el("b", { text: name }), el("span", { class: unknown ? "tag bad" : "tag", text: unknown ? "unknown" : pod.engine })),
    ...lines, el("p", { class: "hint", text: `${engine}${ttft}` }));
}
