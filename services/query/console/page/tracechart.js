// A trace of samples in time, drawn by uPlot: a line with breaks, gaps shaded red and open windows teal.

import { el } from "./node.js";
import { HEIGHT, axis, labels, plotIn } from "./plot.js";
import { colour } from "./theme.js";

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];

/** A chart: {node, show({data, gaps, open, unit}), close()}. `data` is [times, values], `gaps` and `open` are [[start, end]]. */
export function traceChart(written, label) {
  const node = el("div", { class: "plot trace" });
  let content = { data: [[], []], gaps: [], open: [], unit: "" };
  const named = (value) => (value === null || value === undefined ? "–" : `${written(value)} ${content.unit}`.trimEnd());
  const plot = plotIn(node, (_, width) => options(width), () => content.data);
  const options = (width) => ({
    width,
    height: HEIGHT,
    padding: [8, 24, 0, 0],
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    legend: { live: true },
    scales: { x: { range: (_, low, high) => [low, high] }, y: { range: (_, low, high) => padded(low ?? 0, high ?? 1) } },
    axes: [
      { ...axis(), size: 26, space: 74, incrs: TIME_STEPS, values: (_, ticks) => ticks.map((at) => clock(at).slice(0, 8)) },
      { ...axis(), size: 56, values: labels(written) },
    ],
    series: [
      { label: "time", value: (_, at) => (at === null ? "" : clock(at)) },
      { label, stroke: colour("--accent"), width: 1.4, points: { show: false }, spanGaps: false, value: (_, value) => named(value) },
    ],
    hooks: { drawClear: [(drawn) => (shade(drawn, content.open, "--teal-soft"), shade(drawn, content.gaps, "--red-soft"))] },
  });
  return {
    node,
    show(now) {
      content = now;
      plot.update();
    },
    close: plot.close,
  };
}

function padded(low, high) {
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  return [low - room, high + room];
}

function shade(drawn, spans, property) {
  drawn.ctx.save();
  drawn.ctx.fillStyle = colour(property);
  drawn.ctx.beginPath();
  drawn.ctx.rect(drawn.bbox.left, drawn.bbox.top, drawn.bbox.width, drawn.bbox.height);
  drawn.ctx.clip();
  for (const span of spans) {
    const [left, right] = span.map((one) => drawn.valToPos(one, "x", true));
    drawn.ctx.fillRect(left, drawn.bbox.top, right - left, drawn.bbox.height);
  }
  drawn.ctx.restore();
}

/** The time of day, to the millisecond. */
function clock(at) {
  const date = new Date(Math.round(at * 1000));
  return `${date.toTimeString().slice(0, 8)}.${String(date.getMilliseconds()).padStart(3, "0")}`;
}
