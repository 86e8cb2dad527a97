// The keys of one window of a state, those with the greatest numbers first.

import { cell, chosenColumns } from "./columns.js";
import { stateOf } from "./device.js";
import { leaves } from "../change.js";
import { clock, value as written, when } from "../format.js";
import { fillTable } from "../lists.js";
import { el, setText } from "../node.js";
import { own } from "../own.js";
import { shortened } from "../paths.js";
import { to } from "../route.js";
import { iso, seconds } from "../timeline.js";
import { keysOf, newestWindow, openMark, windowName } from "../windows.js";

const ROWS = 20;
const COLUMNS = 5;

/** The panel of a state: {node, look(state, options)}. `time` is in the window to show; null for the newest one. */
export function topKeys(time) {
  const order = el("select", { "aria-label": "Order by" });
  const [before, after, newest] = ["‹ Previous", "Next ›", "Newest"].map((text) => el("a", { class: "button", hidden: true }, text));
  const [name, open] = [el("strong"), openMark()];
  const notice = el("p", { class: "muted", role: "status" });
  const table = el("table", { class: "ranking" });
  const node = el(
    "section",
    { class: "panel", "aria-label": "Top keys", hidden: true },
    el("div", { class: "bar" }, el("h2", {}, "Top keys"), order, name, open.node, el("span", { class: "pages" }, before, after, newest)),
    notice,
    el("div", { class: "scroll" }, table),
  );
  const view = { at: null, again: () => {} };
  order.addEventListener("change", () => view.again());
  const load = async (state, options) => {
    node.hidden = state === null || typeof state.window_s !== "number";
    if (node.hidden) return;
    view.again = () => look(state, options);
    if (!order.options.length) order.append(...state.indexes.map((path) => el("option", { value: path }, `by ${shortened(path)}`)), el("option", { value: "" }, "by key"));
    const orderBy = order.value;
    const wanted = time ?? (await newestWindow(state.name, options));
    const found = wanted === null ? { answers: [], start: null } : await keysOf(state.name, wanted, { orderBy, limit: ROWS }, options);
    if (order.value !== orderBy) return;
    const start = found.start ?? wanted;
    setText(name, start === null ? "" : windowName(start, found.end ?? new Date(start).getTime() + state.window_s * 1000));
    open.show(found.isOpen);
    setText(notice, found.answers.length ? "" : missing(start, orderBy));
    move([before, after, newest], state, start, time);
    draw(table, state.name, found.answers, orderBy);
    view.at = Date.now();
  };
  const look = (state, options) =>
    load(state, options).catch((error) => {
      if (options.signal.aborted) return;
      setText(notice, view.at === null ? error.message : `${error.message}: stale since ${clock(view.at)}`);
    });
  return { node, look };
}

function missing(start, orderBy) {
  if (start === null) return "There are no windows yet. They appear here with their first record.";
  return orderBy ? `No key of this window has a number in ${orderBy}.` : "No key has a record in this window.";
}

function move([before, after, newest], state, start, time) {
  const step = (sign) => to("states", state.name, iso(seconds(start) + sign * state.every_s));
  if (start !== null) [before.href, after.href, newest.href] = [step(-1), step(1), to("states", state.name)];
  before.hidden = start === null;
  for (const one of [after, newest]) one.hidden = start === null || time === null;
}

function draw(table, state, answers, orderBy) {
  const numbers = answers.map((one) => (orderBy ? leaves(one.value).get(orderBy) : null));
  const greatest = Math.max(...numbers.map((one) => one ?? 0), 0);
  const ordered = shortened(orderBy);
  const columns = chosenColumns(answers, COLUMNS + 1).filter((one) => one !== ordered).slice(0, COLUMNS);
  const rows = answers.map((one, number) => row(state, one, number + 1, orderBy ? { number: numbers[number], greatest } : null, columns));
  fillTable(table, ["", "key", ...(orderBy ? [ordered] : []), ...columns, "event time"], rows);
}

function row(state, one, rank, ordered, columns) {
  const value = stateOf(one.value) ?? {};
  const bar = ordered && el("td", { class: "ranked" }, el("meter", { min: 0, max: ordered.greatest || 1, value: Math.max(0, ordered.number ?? 0), "aria-hidden": "true" }), el("span", {}, written(ordered.number)));
  return el(
    "tr",
    { "data-key": one.key },
    el("td", { class: "rank muted" }, rank),
    el("th", { scope: "row" }, el("a", { href: to("device", state, one.key, one.window_start), title: one.key }, one.key)),
    bar,
    columns.map((name) => el("td", { class: "number" }, cell(own(value, name)))),
    el("td", { class: "muted" }, when(one.event_time)),
  );
}
