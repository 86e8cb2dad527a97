// The processes of the loop, one row each; above six of a kind, one row for all and one for each that is unreachable.

import { count, duration, rate, time } from "../format.js";
import { head, listIn } from "../lists.js";
import { el, setText } from "../node.js";

/** Kinds with more processes than this are folded. */
const MOST = 6;

/** A table of processes: {node, show(loop answer)}. */
export function processes() {
  const body = el("tbody");
  const none = el("tr", {}, el("td", { colspan: 5, class: "muted" }, "No scrape targets. Set STATELOOP_SCRAPE_TARGETS to see the processes here."));
  const table = el("table", {}, head(["process", "", "rate", "lag", "details"]), body);
  const node = el("section", { class: "panel processes", "aria-label": "Processes" }, el("h3", {}, "Processes"), el("div", { class: "scroll" }, table));
  const unfolded = new Set();
  let last = null;
  const toggle = (name) => ((unfolded.delete(name) || unfolded.add(name)), show(last));
  const rows = listIn(body, (one) => one.place, (one) => (one.parts ? sumRow(one.name, () => toggle(one.name)) : row()));
  const show = (now) => {
    last = now;
    const listed = groups(now).flatMap((kind) => {
      if (kind.parts.length <= MOST) return kind.parts;
      return [kind, ...(unfolded.has(kind.name) ? kind.parts : kind.parts.filter((one) => !one.up))];
    });
    rows.show(listed, unfolded);
    if (!listed.length) body.append(none);
  };
  return { node, show };
}

/** The kinds with their parts: {place, name, parts: [{place, kind, url, up, unreachable_s, does, lag, more}], does}. */
function groups(now) {
  const part = (kind, one, does, lag, more) => ({ ...one, kind, place: `${kind} ${one.url}`, does, lag, more: one.up ? more : (one.error ?? "") });
  const calls = now.workers.reduce((sum, one) => sum + (one.calls ?? 0), 0);
  return [
    { place: "job", name: "job", does: "", parts: now.job.map((one) => part("job", one, `${rate(now.topics.snapshots.rate)} snapshots/s`, one.lag, jobMore(one))) },
    { place: "worker", name: "worker", does: `${rate(calls)} calls/s`, parts: now.workers.map((one) => part("worker", one, `${rate(one.calls)} calls/s`, one.lag, workerMore(one))) },
    ...Object.entries(now.others).map(([kind, parts]) => ({ place: kind, name: kind, does: "", parts: parts.map((one) => part(kind, one, "", null, "")) })),
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
    show(kind, unfolded) {
      const isUnfolded = unfolded.has(name);
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
