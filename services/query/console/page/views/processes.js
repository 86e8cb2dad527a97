// The processes of the loop, one row each; above six of a kind, one row for all and one for each that is unreachable.

import { Kept, arrange } from "../arrange.js";
import { count, duration, rate, time } from "../format.js";
import { el, setText } from "../node.js";

/** Kinds with more processes than this are folded. */
const MOST = 6;

/** A table of processes: {node, show(loop answer)}. */
export function processes() {
  const body = el("tbody");
  const head = el("tr", {}, ["process", "", "rate", "lag", "details"].map((name) => el("th", { scope: "col" }, name)));
  const table = el("table", {}, el("thead", {}, head), body);
  const node = el("section", { class: "panel processes", "aria-label": "Processes" }, el("h3", {}, "Processes"), el("div", { class: "scroll" }, table));
  const none = el("tr", {}, el("td", { colspan: 5, class: "muted" }, "No scrape targets. Set STATELOOP_SCRAPE_TARGETS to see the processes here."));
  const [rows, sums, unfolded] = [new Kept(), new Kept(), new Set()];
  let last = null;
  const show = (now) => {
    last = now;
    const kinds = groups(now);
    const listed = kinds.flatMap((kind) => (kind.parts.length > MOST && !unfolded.has(kind.name) ? kind.parts.filter((one) => !one.up) : kind.parts));
    const made = new Map(rows.of(listed.map((one) => one.place), row).map((one, number) => [listed[number], one]));
    const large = kinds.filter((kind) => kind.parts.length > MOST);
    const toggle = (name) => ((unfolded.delete(name) || unfolded.add(name)), show(last));
    const sum = new Map(sums.of(large.map((kind) => kind.name), (name) => sumRow(name, () => toggle(name))).map((one, number) => [large[number], one]));
    for (const [part, one] of made) one.show(part);
    for (const [kind, one] of sum) one.show(kind, unfolded.has(kind.name));
    const nodes = kinds.flatMap((kind) => [sum.get(kind)?.node, ...kind.parts.map((part) => made.get(part)?.node)].filter(Boolean));
    arrange(body, nodes.length ? nodes : [none]);
  };
  return { node, show };
}

/** The kinds with their parts: {name, parts: [{place, kind, url, up, unreachable_s, does, lag, more}], does}. */
function groups(now) {
  const part = (kind, one, does, lag, more) => ({ ...one, kind, place: `${kind} ${one.url}`, does, lag, more: one.up ? more : (one.error ?? "") });
  const calls = now.workers.reduce((sum, one) => sum + (one.calls ?? 0), 0);
  return [
    { name: "job", does: "", parts: now.job.map((one) => part("job", one, `${rate(now.topics.snapshots.rate)} snapshots/s`, one.lag, jobMore(one))) },
    { name: "worker", does: `${rate(calls)} calls/s`, parts: now.workers.map((one) => part("worker", one, `${rate(one.calls)} calls/s`, one.lag, workerMore(one))) },
    ...Object.entries(now.others).map(([kind, parts]) => ({ name: kind, does: "", parts: parts.map((one) => part(kind, one, "", null, "")) })),
  ];
}

function row() {
  const [kind, address, status] = [el("span"), el("span", { class: "muted small address" }), el("span")];
  const cells = ["number", "number", "muted"].map((name) => el("td", { class: name }));
  const node = el("tr", {}, el("th", { scope: "row" }, kind, address), el("td", {}, status), cells);
  return {
    node,
    show(one) {
      setText(kind, one.kind);
      setText(address, one.url.replace(/^https?:\/\//, ""));
      node.dataset.up = String(one.up);
      mark(status, one.up, one.up ? "● up" : `○ unreachable for ${duration(one.unreachable_s * 1000)}`);
      const texts = [one.up ? one.does : "", one.up && one.lag !== null ? count(one.lag) : "", one.more];
      texts.forEach((text, number) => setText(cells[number], text));
    },
  };
}

function sumRow(name, toggle) {
  const [status, button] = [el("span"), el("button", { class: "fold", onclick: toggle })];
  const cells = ["number", "number"].map((kind) => el("td", { class: kind }));
  const title = el("span");
  const node = el("tr", { class: "sum" }, el("th", { scope: "row" }, title), el("td", {}, status), cells, el("td", {}, button));
  return {
    node,
    show(kind, isUnfolded) {
      const all = kind.parts.length;
      const up = kind.parts.filter((one) => one.up);
      const lags = up.map((one) => one.lag).filter((lag) => lag !== null);
      setText(title, `${all} × ${name}`);
      mark(status, up.length === all, up.length === all ? "● all up" : `○ ${all - up.length} unreachable`);
      setText(cells[0], kind.does);
      setText(cells[1], lags.length ? count(lags.reduce((sum, lag) => sum + lag, 0)) : "");
      setText(button, isUnfolded ? "Show fewer" : "Show each");
      button.setAttribute("aria-expanded", String(isUnfolded));
      button.setAttribute("aria-label", `${isUnfolded ? "Show fewer" : "Show each"} ${name}`);
    },
  };
}

function mark(place, isWell, text) {
  place.className = isWell ? "mark well" : "mark bad";
  setText(place, text);
}

function jobMore(one) {
  const facts = [];
  if (one.starting) facts.push("starting");
  if (one.committed_s !== null) facts.push(`batch committed ${duration(one.committed_s * 1000)} ago`);
  if (one.watermark !== null) facts.push(`watermark ${time(one.watermark)}`);
  if (one.failures) facts.push(`${count(one.failures)} failures`);
  return facts.join(", ");
}

function workerMore(one) {
  const facts = [`${count(one.in_flight)} in flight`, `${count(one.waiting)} waiting`, `${count(one.partitions)} partitions`];
  return (one.paused ? ["reading paused", ...facts] : facts).join(", ");
}
