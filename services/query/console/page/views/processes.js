// The processes of the loop, one row each.

import { count, duration, rate, time } from "../format.js";
import { el } from "../node.js";

/** A table of processes: {node, show(loop answer)}. */
export function processes() {
  const body = el("tbody");
  const head = el("tr", {}, ["process", "", "does", "lag", "more"].map((name) => el("th", { scope: "col" }, name)));
  const table = el("table", {}, el("thead", {}, head), body);
  const node = el("section", { class: "panel processes", "aria-label": "Processes" }, el("h3", {}, "Processes"), el("div", { class: "scroll" }, table));
  return {
    node,
    show(now) {
      const rows = [
        ...now.job.map((one) => row("job", one, `${rate(now.topics.snapshots.rate)} snapshots/s`, one.lag, jobMore(one))),
        ...now.workers.map((one) => row("worker", one, `${rate(one.calls)} calls/s`, one.lag, workerMore(one))),
        ...Object.entries(now.others).flatMap(([kind, parts]) => parts.map((one) => row(kind, one, "", null, ""))),
      ];
      const none = el("tr", {}, el("td", { colspan: 5, class: "muted" }, "None is named. Set STATELOOP_PARTS, and their figures show here."));
      body.replaceChildren(...(rows.length ? rows : [none]));
    },
  };
}

function row(kind, one, does, lag, more) {
  const standing = one.up ? el("span", { class: "mark well" }, "● up") : el("span", { class: "mark bad" }, `○ away for ${duration(one.away_s * 1000)}`);
  return el(
    "tr",
    { "data-up": String(one.up) },
    el("th", { scope: "row" }, kind, el("span", { class: "muted small address" }, one.url.replace(/^https?:\/\//, ""))),
    el("td", {}, standing),
    el("td", { class: "number" }, one.up ? does : ""),
    el("td", { class: "number" }, one.up && lag !== null ? count(lag) : ""),
    el("td", { class: "muted" }, one.up ? more : (one.why ?? "")),
  );
}

function jobMore(one) {
  const told = [];
  if (one.committed_s !== null) told.push(`batch committed ${duration(one.committed_s * 1000)} ago`);
  if (one.watermark !== null) told.push(`watermark ${time(one.watermark)}`);
  if (one.failures) told.push(`${count(one.failures)} failures`);
  return told.join(", ");
}

function workerMore(one) {
  const told = [`${count(one.in_flight)} in flight`, `${count(one.waiting)} waiting`, `${count(one.partitions)} partitions`];
  return (one.paused ? ["reading is paused", ...told] : told).join(", ");
}
