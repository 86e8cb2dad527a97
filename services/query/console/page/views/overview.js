// The overview: the health report, the loop diagram, the metrics history, and the processes.

import { address } from "../applications.js";
import { chart } from "../chart.js";
import { count, duration, rate } from "../format.js";
import { loop } from "../loop.js";
import { el } from "../node.js";
import { picture } from "../picture/picture.js";
import { processes } from "./processes.js";
import { healthPanel } from "./health.js";

const RATES = [
  ["events", "events", "--blue"],
  ["snapshots", "snapshots", "--accent"],
  ["calls", "calls", "--amber"],
  ["feedback", "feedback", "--teal"],
];
const LAGS = [
  ["job", "job_lag", "--accent"],
  ["workers", "worker_lag", "--amber"],
  ["query", "query_lag", "--teal"],
];
const LATENCIES = [
  ["p50", "p50_ms", "--teal"],
  ["p95", "p95_ms", "--red"],
];
const VIEWS = { dead_letters: "dead_letters", query: "states", workers: "enrichments", apis: "enrichments" };

/** The view: {node, title, close()}. */
export function overview() {
  const health = healthPanel();
  const drawn = picture((name) => {
    const view = VIEWS[name.startsWith("api:") ? "apis" : name];
    if (view) location.hash = address(view);
  });
  const charts = [
    chart("Records and calls per second", RATES, rate),
    chart("Lag, in records", LAGS, count),
    chart("Latency of calls", LATENCIES, duration),
  ];
  const listed = processes();
  const node = el(
    "div",
    { class: "overview" },
    el("h1", { class: "hidden" }, "The loop"),
    health.node,
    el("section", { class: "panel picture" }, drawn.node),
    el("div", { class: "charts" }, charts.map((one) => one.node)),
    listed.node,
  );
  const show = () => {
    node.classList.remove("stale");
    health.show(loop.latest);
    draw();
  };
  const draw = () => {
    drawn.show(loop.latest);
    charts.forEach((one) => one.show(loop.history));
    listed.show(loop.latest);
  };
  const away = () => {
    node.classList.toggle("stale", loop.latest !== null);
    health.showError(loop.error, loop.at);
  };
  loop.addEventListener("loop", show);
  loop.addEventListener("away", away);
  if (loop.latest) draw();
  if (loop.latest && !loop.error) health.show(loop.latest);
  else away();
  const close = () => {
    loop.removeEventListener("loop", show);
    loop.removeEventListener("away", away);
    [drawn, ...charts].forEach((one) => one.close());
  };
  return { node, title: "Loop", close };
}
