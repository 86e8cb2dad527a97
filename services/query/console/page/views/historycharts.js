// The charts of the metrics history: a line for each metric of the components that the loop has.

import { count, duration, rate } from "../format.js";
import { lineChart } from "../linechart.js";
import { el } from "../node.js";

/** [title, lines, how a number is written]; a line is [label, name of the point's field, custom property of its colour, component]. */
const CHARTS = [
  [
    "Throughput, per second",
    [
      ["events", "events", "--blue", "events"],
      ["snapshots", "snapshots", "--accent", "snapshots"],
      ["calls", "calls", "--amber", "workers"],
      ["feedback", "feedback", "--teal", "feedback"],
    ],
    rate,
  ],
  [
    "Lag, in records",
    [
      ["job", "job_lag", "--accent", "job"],
      ["workers", "worker_lag", "--amber", "workers"],
      ["query", "query_lag", "--teal", "query"],
    ],
    count,
  ],
  [
    "Latency of calls",
    [
      ["p50", "p50_ms", "--teal", "apis"],
      ["p95", "p95_ms", "--red", "apis"],
    ],
    duration,
  ],
];

/** The charts: {node, show(loop response, points), close()}. */
export function historyCharts() {
  const node = el("div", { class: "charts" });
  let [made, shape] = [[], null];
  const close = () => made.forEach((one) => one.close());
  const make = (components) => {
    close();
    const kept = CHARTS.map(([title, lines, written]) => [title, lines.filter(([, , , component]) => components.includes(component)), written]);
    made = kept.filter(([, lines]) => lines.length).map((one) => lineChart(...one));
    node.replaceChildren(...made.map((one) => one.node));
    shape = String(components);
  };
  return {
    node,
    show(now, points) {
      if (shape !== String(now.components)) make(now.components);
      made.forEach((one) => one.show(points));
    },
    close,
  };
}
