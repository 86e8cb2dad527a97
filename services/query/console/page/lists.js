// Lists and tables that are updated without touching what stays: it keeps focus, selection and open details.

import { el } from "./node.js";

/** Make these the children of a place, in this order. */
function arrange(place, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...place.children]) if (!wanted.has(child)) child.remove();
  let at = place.firstElementChild;
  for (const node of nodes) {
    if (node === at) at = at.nextElementSibling;
    else place.insertBefore(node, at);
  }
}

/** The children of a place, one for each item: {show(items, ...rest)}.
 *
 * `make(item)` returns {node, show(item, ...rest)}, or {node} of what does not change, once for each name of an item.
 */
export function listIn(place, nameOf, make) {
  let made = new Map();
  return {
    show(items, ...rest) {
      const before = made;
      made = new Map();
      for (const [number, item] of items.entries()) {
        const name = nameOf(item, number);
        made.set(name, before.get(name) ?? make(item));
        made.get(name).show?.(item, ...rest);
      }
      arrange(place, [...made.values()].map((one) => one.node));
    },
  };
}

/** The head of a table; a column is its name, or a cell. */
export function head(columns) {
  return el("thead", {}, el("tr", {}, columns.map((one) => (typeof one === "string" ? el("th", { scope: "col" }, one) : one))));
}

/** Replace the columns and rows of a table; the focus stays in the row of its `data-key`. */
export function fillTable(table, columns, rows) {
  const focused = document.activeElement?.closest?.("tr")?.dataset.key;
  table.replaceChildren(head(columns), el("tbody", {}, rows));
  if (focused !== undefined) rows.find((row) => row.dataset.key === focused)?.querySelector("a").focus();
}
