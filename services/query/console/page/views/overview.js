// The overview: the health report, the loop diagram, the metrics history, and the processes.

import { address } from "../applications.js";
import { loop } from "../loop.js";
import { el } from "../node.js";
import { picture } from "../picture/picture.js";
import { processes } from "./processes.js";
import { healthPanel } from "./health.js";
import { historyCharts } from "./historycharts.js";

const VIEWS = { dead_letters: "dead_letters", query: "states", workers: "enrichments", apis: "enrichments" };

/** The view: {node, title, close()}. */
export function overview() {
  const health = healthPanel();
  const drawn = picture((name) => {
    const view = VIEWS[name.startsWith("api:") ? "apis" : name];
    if (view) location.hash = address(view);
  });
  const charts = historyCharts();
  const listed = processes();
  const node = el(
    "div",
    { class: "overview" },
    el("h1", { class: "hidden" }, "The loop"),
    health.node,
    el("section", { class: "panel picture" }, drawn.node),
    charts.node,
    listed.node,
  );
  const show = () => {
    node.classList.remove("stale");
    health.show(loop.latest);
    draw();
  };
  const draw = () => {
    drawn.show(loop.latest);
    charts.show(loop.latest, loop.history);
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
    [drawn, charts].forEach((one) => one.close());
  };
  return { node, title: "Loop", close };
}
