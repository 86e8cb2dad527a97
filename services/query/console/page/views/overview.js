// The loop: is it healthy, and if not, where; the picture, the course, and the processes.

import { chart } from "../chart.js";
import { clock, count, duration, rate } from "../format.js";
import { loop } from "../loop.js";
import { el } from "../node.js";
import { picture } from "../picture/picture.js";
import { go, to } from "../route.js";
import { processes } from "./processes.js";

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
const VIEWS = { dead_letters: "letters", query: "states", workers: "enrichments", apis: "enrichments" };

const WELL = "Every part that was named answers, nothing falls behind, and no API is down.";
const WELL_ALONE = "As far as this service sees: it knows of no other part. Name them in STATELOOP_PARTS.";

/** The view: {node, title, close()}. */
export function overview() {
  const verdict = el("section", { class: "verdict panel", role: "status", "aria-live": "polite" });
  const drawn = picture((name) => {
    const view = VIEWS[name.startsWith("api:") ? "apis" : name];
    if (view) go(view);
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
    verdict,
    el("section", { class: "panel picture" }, drawn.node),
    el("div", { class: "charts" }, charts.map((one) => one.node)),
    listed.node,
  );
  const show = () => {
    node.classList.remove("stale");
    tellVerdict(verdict, loop.latest);
    draw();
  };
  const draw = () => {
    drawn.show(loop.latest);
    charts.forEach((one) => one.show(loop.course));
    listed.show(loop.latest);
  };
  const away = () => {
    node.classList.toggle("stale", loop.latest !== null);
    tellWaiting(verdict, loop.trouble, loop.at);
  };
  loop.addEventListener("loop", show);
  loop.addEventListener("away", away);
  if (loop.latest) draw();
  if (loop.latest && !loop.trouble) tellVerdict(verdict, loop.latest);
  else away();
  const close = () => {
    loop.removeEventListener("loop", show);
    loop.removeEventListener("away", away);
    [drawn, ...charts].forEach((one) => one.close());
  };
  return { node, title: "Loop", close };
}

function tellVerdict(place, now) {
  const told = now.verdict;
  const isWatched = now.job.length + now.workers.length > 0;
  const key = JSON.stringify([told, isWatched]);
  if (place.dataset.told === key) return;
  place.dataset.told = key;
  place.dataset.standing = told.healthy ? "well" : "troubled";
  if (told.healthy) {
    place.replaceChildren(
      el("h2", {}, el("span", { class: "sign", "aria-hidden": "true" }, "✓"), " Healthy"),
      el("p", { class: "muted" }, isWatched ? WELL : WELL_ALONE),
    );
    return;
  }
  const number = told.troubles.length;
  place.replaceChildren(
    el("h2", {}, el("span", { class: "sign", "aria-hidden": "true" }, "!"), ` ${number === 1 ? "One trouble" : `${number} troubles`}`),
    el("ul", { class: "troubles" }, told.troubles.map(trouble)),
  );
}

function trouble(one) {
  const link = one.where === "dead_letters" ? el("a", { href: to("letters") }, "See them") : null;
  return el("li", {}, el("strong", {}, one.says), el("span", { class: "do" }, one.do, link ? [" ", link] : null));
}

function tellWaiting(place, trouble, at) {
  const key = JSON.stringify([trouble?.message, at]);
  if (place.dataset.told === key) return;
  place.dataset.told = key;
  place.dataset.standing = at === null ? "unknown" : "lost";
  const said = trouble ? "This page asks again by itself." : "The first figures come in a moment.";
  place.replaceChildren(
    el("h2", {}, at === null ? null : el("span", { class: "sign", "aria-hidden": "true" }, "○"), trouble ? ` ${trouble.message}` : "Looking…"),
    el("p", { class: "muted" }, at === null ? said : `What is shown is from ${clock(at)}, and may be wrong by now. ${said}`),
  );
}
