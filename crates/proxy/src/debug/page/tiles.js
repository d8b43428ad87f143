// The figures at the top.

function showTiles(data, model) {
  const ratio = data.prefix.ratio || {};
  const of = (window) => (ratio[window] || {}).ratio;
  const pods = list(data.pods.pods);
  const recent = list(data.decisions.decisions).filter((d) => !model || d.model === model);
  const capacity = sum(list(data.prefix.pods), (p) => p.capacity);
  const running = sum(pods, (p) => (p.metrics || {}).requestRunningNum), waiting = sum(pods, (p) => (p.metrics || {}).requestWaitingNum);
  const enabled = data.prefix.configuration;
  const match = data.prefix.missing ? ["Prefix match", "–", "this router does not tell"]
    : !enabled ? ["Prefix match", "off", "prefix-cache is not enabled"]
    // The windows are of all models.
    : model ? ["Prefix match, latest", percent(matchRatio(recent)), recent.length ? `of this model, ${whole(recent.length)} decisions` : "no request yet"]
    : ["Prefix match, 1 minute", percent(of("1m")), `5 min ${percent(of("5m"))} · 15 min ${percent(of("15m"))}`];
  const tiles = [
    match,
    ["Time to first token, p50", milliseconds(quantile(0.5)(recent)), recent.length ? `p90 ${milliseconds(quantile(0.9)(recent))} · ${whole(recent.length)} decisions` : "no request yet"],
    ["Requests on pods", whole(sum(pods, (p) => p.inFlight)), `engines: ${whole(running)} running, ${whole(waiting)} waiting`],
    ["Prefix entries", whole(data.prefix.entries), capacity ? `${percent(data.prefix.entries / capacity)} of ${whole(capacity)} · ${whole(data.prefix.evictions)} evicted` : ""],
    ["Pods", whole(pods.length), !pods.length ? "no request can be served" : pods.every((p) => p.metricsKnown) ? "the load of all is known" : `${pods.filter((p) => !p.metricsKnown).length} with unknown load`],
  ];
  byId("tiles").replaceChildren(...tiles.map(([name, value, note]) => el("div", { class: "tile" },
    el("h2", { text: name }), el("p", { class: "value", text: value }), el("p", { class: "note", text: note }))));
}
