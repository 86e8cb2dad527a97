// Line charts of the metrics history, drawn by uPlot.

import { el, setText } from "./node.js";
import { colour, onTheme } from "./theme.js";

/** Null when the service does not have uPlot's files. */
const library = import("./uplot/uPlot.esm.js").then((module) => module.default, () => null);
const MISSING = "The charts are missing: run make jars where the query service runs, or set its STATELOOP_JARS.";

const HEIGHT = 170;
const LEAST_S = 60;
const LEAST = 10;
/** Steps of the axes; never 2.5, since a count has no fraction. */
const STEPS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((one) => one * 10 ** power)).flat();
/** Steps of the time axis. */
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600];

/** A chart: {node, show(points), close()}. `lines` are [label, name of the point's field, custom property of its colour]. */
export function chart(title, lines, written) {
  const place = el("div", { class: "plot" });
  const node = el("section", { class: "panel chart", "aria-label": title }, el("h3", {}, title), place);
  let uPlot;
  let plot = null;
  let points = [];
  const data = () => [points.map((one) => one.at / 1000), ...lines.map(([, field]) => points.map((one) => one[field]))];
  const draw = () => {
    if (uPlot === undefined) return;
    if (uPlot === null) return setText(place, MISSING);
    plot?.destroy();
    plot = place.clientWidth ? new uPlot(options(lines, written, place.clientWidth), data(), place) : null;
  };
  const sized = new ResizeObserver(() => {
    if (plot && place.clientWidth) plot.setSize({ width: place.clientWidth, height: HEIGHT });
    else draw();
  });
  sized.observe(place);
  library.then((loaded) => ((uPlot = loaded), node.isConnected && draw()));
  const endTheme = onTheme(draw);
  return {
    node,
    show(history) {
      points = history;
      if (plot) plot.setData(data());
      else draw();
    },
    close() {
      sized.disconnect();
      endTheme();
      plot?.destroy();
    },
  };
}

function options(lines, written, width) {
  const axis = { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
  return {
    width,
    height: HEIGHT,
    padding: [8, 22, 0, 0],
    cursor: { y: false, points: { size: 6 } },
    legend: { live: true },
    scales: { x: { range: (_, low, high) => [Math.min(low, high - LEAST_S), high] }, y: { range: (_, low, high) => [0, Math.max(LEAST, (high ?? 0) * 1.1)] } },
    axes: [
      { ...axis, size: 26, space: 70, incrs: SECONDS, values: (_, ticks) => ticks.map((at) => clock(at, ticks.every((one) => one % 60 === 0))) },
      { ...axis, size: 56, incrs: STEPS, values: (_, ticks) => ticks.map((one) => (one === 0 ? "0" : written(one).replace(/\.0(?=$| )/, ""))) },
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
