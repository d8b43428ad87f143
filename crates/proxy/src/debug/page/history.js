// Sampled decisions in buckets of some seconds, kept as long as the page is open and not longer than it can show.

const BUCKET = 5; // seconds
const KEPT = 120; // buckets: ten minutes

const history = {
  buckets: new Map(), // start in seconds → decisions by id
  add(decisions) {
    for (const d of decisions) {
      if (!known(d.at)) continue;
      const start = Math.floor(d.at / BUCKET) * BUCKET;
      if (!this.buckets.has(start)) this.buckets.set(start, new Map());
      this.buckets.get(start).set(`${d.requestId} ${d.at}`, d);
    }
    const oldest = Math.max(...this.buckets.keys()) - BUCKET * KEPT;
    for (const start of this.buckets.keys()) if (start < oldest) this.buckets.delete(start);
  },
  // Points of one figure of the decisions of a model, or of all; gaps where there is none.
  points(model, figure) {
    return [...this.buckets].sort(([a], [b]) => a - b).map(([start, all]) => {
      const chosen = [...all.values()].filter((d) => !model || d.model === model);
      return { x: start + BUCKET / 2, y: figure(chosen) };
    }).filter((p) => known(p.y));
  },
};

const bestMatch = (d) => Math.max(d.matchedBlocks || 0, ...list(d.candidates).map((c) => c.matchedBlocks || 0));
const sum = (items, value) => items.reduce((total, item) => total + (value(item) || 0), 0);

const matchRatio = (decisions) => {
  const scored = decisions.filter((d) => !d.pinned && d.hashedBlocks > 0);
  return scored.length ? sum(scored, bestMatch) / sum(scored, (d) => d.hashedBlocks) : null;
};
const cachedShare = (decisions) => {
  // A decode pod counts what it was handed over as cached.
  const told = decisions.filter((d) => !d.prefillPod && known(d.cachedTokens) && d.promptTokens > 0);
  return told.length ? sum(told, (d) => d.cachedTokens) / sum(told, (d) => d.promptTokens) : null;
};
const quantile = (q) => (decisions) => {
  const times = decisions.map((d) => d.ttftMs).filter(known).sort((a, b) => a - b);
  return times.length ? times[Math.min(times.length - 1, Math.floor(q * times.length))] : null;
};
