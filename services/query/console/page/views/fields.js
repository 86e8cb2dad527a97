// The fields of a state, with their recent changes.

import { leaves } from "../change.js";
import { value as written } from "../format.js";
import { el, setText } from "../node.js";

const LATELY_MS = 60_000;

/** A table of fields: {node, show(state, changes), age()}. */
export function fieldTable() {
  const rows = new Map();
  const body = el("tbody");
  const columns = el("colgroup", {}, ["name", "", "when"].map((name) => el("col", { class: name })));
  const node = el("table", { class: "fields", "aria-label": "Fields, their values, and when they changed lately" }, columns, body);
  return {
    node,
    show(state, differ) {
      const found = leaves(state ?? {});
      for (const [path, row] of rows) if (!found.has(path)) (row.node.remove(), rows.delete(path));
      for (const [path, value] of found) {
        const row = rows.get(path) ?? added(rows, body, path);
        setText(row.value, written(value));
        row.value.classList.toggle("none", value === null);
      }
      for (const one of differ) if (rows.has(one.path)) mark(rows.get(one.path), one);
    },
    clear() {
      body.replaceChildren();
      rows.clear();
    },
    age() {
      for (const row of rows.values()) {
        if (row.at === null) continue;
        const passed = Date.now() - row.at;
        setText(row.changed, passed < LATELY_MS ? elapsed(passed) : "");
        row.node.classList.toggle("lately", passed < LATELY_MS);
      }
    },
  };
}

function elapsed(passed) {
  return passed < 1000 ? "now" : `${Math.floor(passed / 1000)} s ago`;
}

function added(rows, body, path) {
  const [value, changed] = [el("div"), el("td", { class: "changed" })];
  const node = el("tr", {}, el("th", { scope: "row" }, path), el("td", { class: "value" }, value), changed);
  const row = { node, value, changed, at: null };
  rows.set(path, row);
  body.append(node);
  return row;
}

function mark(row, change) {
  row.at = Date.now();
  row.node.classList.remove("flash");
  void row.node.offsetWidth; // the animation restarts only after a layout without it
  row.node.classList.add("flash", "lately");
  setText(row.changed, "now");
  row.value.title = `before: ${written(change.before)}`;
}
