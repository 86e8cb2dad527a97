// The fields of a state, with what changed lately.

import { leaves } from "../change.js";
import { duration, value as written } from "../format.js";
import { el, say } from "../node.js";

const LATELY_MS = 60_000;

/** A table of fields: {node, show(state, changes), age()}. */
export function fieldTable() {
  const rows = new Map();
  const body = el("tbody");
  const node = el("table", { class: "fields" }, el("thead", { class: "hidden" }, el("tr", {}, el("th", {}, "field"), el("th", {}, "value"), el("th", {}, "changed"))), body);
  return {
    node,
    show(state, differ) {
      const told = leaves(state ?? {});
      for (const [path, row] of rows) if (!told.has(path)) (row.node.remove(), rows.delete(path));
      for (const [path, value] of told) {
        const row = rows.get(path) ?? added(rows, body, path);
        say(row.value, written(value));
        row.value.classList.toggle("none", value === null);
      }
      for (const one of differ) if (rows.has(one.path)) mark(rows.get(one.path), one);
    },
    age() {
      for (const row of rows.values()) {
        if (row.at === null) continue;
        const passed = Date.now() - row.at;
        say(row.changed, passed < LATELY_MS ? `${duration(Math.floor(passed / 1000) * 1000 || 1)} ago`.replace("1.0 ms", "now").replace("now ago", "now") : "");
        row.node.classList.toggle("lately", passed < LATELY_MS);
      }
    },
  };
}

function added(rows, body, path) {
  const [value, changed] = [el("td", { class: "value" }), el("td", { class: "changed" })];
  const node = el("tr", {}, el("th", { scope: "row" }, path), value, changed);
  const row = { node, value, changed, at: null };
  rows.set(path, row);
  body.append(node);
  return row;
}

function mark(row, change) {
  row.at = Date.now();
  row.node.classList.remove("flash");
  void row.node.offsetWidth; // the animation begins anew only after a layout without it
  row.node.classList.add("flash", "lately");
  say(row.changed, "now");
  row.value.title = `before: ${written(change.before)}`;
}
