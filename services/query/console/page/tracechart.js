// A trace of samples in time: a line with breaks, gaps shaded red and open windows teal.

import { chart, shade } from "./chart.js";
import { clock } from "./format.js";
import { el } from "./node.js";
import { colour } from "./theme.js";

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 1800, 3600];
const NOTHING = { data: [[], []], gaps: [], open: [], unit: "" };

/** A chart of {data, gaps, open, unit}: `data` is [times, values], `gaps` and `open` are [[start, end]]. */
export function traceChart(written, label) {
  const options = (_, content) => ({
    cursor: { y: false, points: { size: 6 }, drag: { x: false, y: false } },
    legend: { live: true },
    scales: { x: { range: (_, low, high) => [low, high] }, y: { range: (_, low, high) => padded(low ?? 0, high ?? 1) } },
    time: { space: 74, incrs: TIME_STEPS, values: (_, ticks) => ticks.map((at) => exact(at).slice(0, 8)) },
    series: [
      { label: "time", value: (_, at) => (at === null ? "" : exact(at)) },
      { label, stroke: colour("--accent"), width: 1.4, points: { show: false }, spanGaps: false, value: (_, value) => (value === null || value === undefined ? "–" : `${written(value)} ${content().unit}`.trimEnd()) },
    ],
    hooks: { drawClear: [(drawn) => (shade(drawn, content().open, "--teal-soft"), shade(drawn, content().gaps, "--red-soft"))] },
  });
  return chart(el("div", { class: "plot trace" }), written, NOTHING, (content) => content.data, options);
}

function padded(low, high) {
  const room = (high - low || Math.abs(high) || 1) * 0.08;
  return [low - room, high + room];
}

/** The time of day, to the millisecond. */
function exact(at) {
  const milliseconds = Math.round(at * 1000);
  return `${clock(milliseconds)}.${String(new Date(milliseconds).getMilliseconds()).padStart(3, "0")}`;
}
