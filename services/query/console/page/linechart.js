// Line charts of the metrics history.

import { COUNTS, chart } from "./chart.js";
import { clock } from "./format.js";
import { el } from "./node.js";
import { colour } from "./theme.js";

const LEAST_S = 60;
const LEAST = 10;
/** Steps of the time axis. */
const SECONDS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600];

/** A chart of points with a title. `lines` are [label, name of the point's field, custom property of its colour]. */
export function lineChart(title, lines, written) {
  const place = el("div", { class: "plot" });
  const data = (points) => [points.map((one) => one.at / 1000), ...lines.map(([, field]) => points.map((one) => one[field]))];
  const node = el("section", { class: "panel chart", "aria-label": title }, el("h3", {}, title), place);
  return { ...chart(place, written, [], data, () => options(lines, written)), node };
}

function options(lines, written) {
  return {
    padding: [8, 22, 0, 0],
    cursor: { y: false, points: { size: 6 } },
    legend: { live: true },
    scales: { x: { range: (_, low, high) => [Math.min(low, high - LEAST_S), high] }, y: { range: (_, low, high) => [0, Math.max(LEAST, (high ?? 0) * 1.1)] } },
    time: { space: 70, incrs: SECONDS, values: (_, ticks) => ticks.map((at) => clock(at * 1000).slice(0, ticks.every((one) => one % 60 === 0) ? 5 : 8)) },
    numbers: { incrs: COUNTS },
    series: [
      { value: (_, at) => (at === null ? "now" : clock(at * 1000)) },
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
