// A line chart in SVG, drawn at the size of its place.

const MARGIN = { left: 46, right: 10, top: 8, bottom: 22 };

// The least of 1, 2, 5 × 10^n that holds a value.
function ceiling(value) {
  const power = 10 ** Math.floor(Math.log10(value || 1));
  return [1, 2, 5, 10].map((n) => n * power).find((n) => n >= value);
}

// series: [{name, points, format, second}], top: the upper end of the scale, or nothing to fit it; empty: what to say where there is no point.
function drawChart(place, legend, title, series, top, format, empty) {
  const shown = series.filter((s) => s.points.length);
  legend.replaceChildren(...shown.map((s) => el("span", { class: s.second && "second" },
    words(`${s.name} `), el("b", { text: format(s.points.at(-1).y) }))));
  if (!shown.length) {
    place.replaceChildren(el("p", { class: "empty", text: empty }));
    return;
  }
  const width = Math.max(200, place.clientWidth), height = Math.max(120, place.clientHeight);
  const xs = shown.flatMap((s) => s.points.map((p) => p.x));
  const end = Math.max(...xs) + BUCKET / 2, start = Math.min(Math.min(...xs) - BUCKET / 2, end - 60);
  const highest = top || ceiling(Math.max(...shown.flatMap((s) => s.points.map((p) => p.y))));
  const x = (t) => MARGIN.left + (t - start) / (end - start) * (width - MARGIN.left - MARGIN.right);
  const y = (v) => height - MARGIN.bottom - Math.min(v, highest) / highest * (height - MARGIN.top - MARGIN.bottom);

  const latest = shown.map((s) => `${s.name} ${format(s.points.at(-1).y)}`).join(", ");
  const picture = svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": `${title}: now ${latest}` },
    svg("title", { text: title }),
    svg("desc", { text: `From ${clock(start)} to ${clock(end)}; now ${latest}.` }));
  for (const part of [0, 0.5, 1]) {
    const at = y(part * highest);
    picture.append(svg("line", { class: "grid", x1: MARGIN.left, x2: width - MARGIN.right, y1: at, y2: at }),
      svg("text", { x: MARGIN.left - 8, y: at + 4, "text-anchor": "end", text: format(part * highest) }));
  }
  picture.append(svg("text", { x: MARGIN.left, y: height - 4, text: clock(start) }),
    svg("text", { x: width - MARGIN.right, y: height - 4, "text-anchor": "end", text: clock(end) }));
  for (const s of shown) {
    const kind = s.second ? " second" : "";
    for (const run of runs(s.points)) {
      const line = run.map((p) => `${x(p.x).toFixed(1)},${y(p.y).toFixed(1)}`).join(" ");
      if (!s.second && run.length > 1) {
        const [first, last] = [x(run[0].x), x(run.at(-1).x)];
        picture.append(svg("polygon", { class: "area", points: `${first},${y(0)} ${line} ${last},${y(0)}` }));
      }
      picture.append(run.length > 1 ? svg("polyline", { class: `series${kind}`, points: line })
        : svg("circle", { class: `point${kind}`, cx: x(run[0].x), cy: y(run[0].y), r: 2.5 }));
    }
    const last = s.points.at(-1);
    picture.append(svg("circle", { class: `point${kind}`, cx: x(last.x), cy: y(last.y), r: 3.5 }));
  }
  place.replaceChildren(picture);
}

// Points without a longer gap between them: a line over a gap would tell of what was not measured.
function runs(points) {
  const found = [];
  for (const p of points) {
    const run = found.at(-1);
    if (run && p.x - run.at(-1).x <= 3 * BUCKET) run.push(p);
    else found.push([p]);
  }
  return found;
}
