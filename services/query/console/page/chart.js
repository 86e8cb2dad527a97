// Line charts of the metrics history, drawn by uPlot.

import { el } from "./node.js";
import { HEIGHT, STEPS, axis, labels, plotIn } from "./plot.js";
import { colour } from "./theme.js";

const LEAST_S = 60;
const LEAST = 10;
/** Steps of the time axis. */
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600];

/** A chart: {node, show(points), close()}. `lines` are [label, name of the point's field, custom property of its colour]. */
export function chart(title, lines, written) {
  const place = el("div", { class: "plot" });
  const node = el("section", { class: "panel chart", "aria-label": title }, el("h3", {}, title), place);
  let points = [];
  const data = () => [points.map((one) => one.at / 1000), ...lines.map(([, field]) => points.map((one) => one[field]))];
  const plot = plotIn(place, (_, width) => options(lines, written, width), data);
  return {
    node,
    show(history) {
      points = history;
      plot.update();
    },
    close: plot.close,
  };
}

function options(lines, written, width) {
  return {
    width,
    height: HEIGHT,
    padding: [8, 22, 0, 0],
    cursor: { y: false, points: { size: 6 } },
    legend: { live: true },
    scales: { x: { range: (_, low, high) => [Math.min(low, high - LEAST_S), high] }, y: { range: (_, low, high) => [0, Math.max(LEAST, (high ?? 0) * 1.1)] } },
    axes: [
      { ...axis(), size: 26, space: 70, incrs: SECONDS, values: (_, ticks) => ticks.map((at) => clock(at, ticks.every((one) => one % 60 === 0))) },
      { ...axis(), size: 56, incrs: STEPS, values: labels(written) },
    ],
    series: [
      { value: (_, at) => (at === null ? "now" : clock(at, false)) },
      ...lines.map(([label, , property]) => ({
        label,
        stroke: colour(property),
        width: 1.75,
        points: { show: false },
        value: (plot, number, series) => written(number ?? (plot.cursor.idx === null ? plot.data[series].at(-1) : null)),
      })),
    ],
  };
}

function clock(seconds, isWhole) {
  return new Date(seconds * 1000).toTimeString().slice(0, isWhole ? 5 : 8);
}
