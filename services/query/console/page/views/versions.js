// The versions of a key over time: those that the service keeps, and those seen since this page was opened.

import { changes } from "../change.js";
import { time, value as written, whole } from "../format.js";
import { el } from "../node.js";
import { shortened } from "../paths.js";
import { order, versionName, versions as kept } from "../states.js";
import { isOfWindow } from "../windows.js";

const MOST = 100;
const MOST_CHANGES = 6;

/** The list: {node, add(answer, changes since the one before, or null)}. Stored versions are requested with the first. */
export function versionList(state, key, signal) {
  const list = el("ol", { class: "versions" });
  const node = el("section", { class: "panel", "aria-label": "Versions", hidden: true }, el("h2", {}, "Versions"), list);
  const known = new Map();
  const put = (answer, differ) => {
    node.hidden = false;
    const place = versionName(answer);
    if (known.has(place) && differ === null) return;
    known.set(place, { answer, node: row(answer, differ) });
    const ordered = [...known.values()].sort((one, other) => order(other.answer, one.answer)).slice(0, MOST);
    list.replaceChildren(...ordered.map((one) => one.node));
  };
  const add = (answer, differ) => {
    const isFirst = node.hidden;
    put(answer, differ);
    if (isFirst) loadStored(state, key, isOfWindow(answer) ? answer.window_start : null, put, signal);
  };
  const clear = () => {
    known.clear();
    list.replaceChildren();
    node.hidden = true;
  };
  return { node, add, clear };
}

async function loadStored(state, key, at, put, signal) {
  try {
    const found = await kept(state, key, at, { signal });
    found.forEach((one, number) => put(one, number + 1 < found.length ? changes(found[number + 1].value, one.value) : null));
  } catch {
    // new versions are shown in any case
  }
}

function row(answer, differ) {
  const relevant = (differ ?? []).filter((one) => !NOISE.test(one.path));
  const named = relevant.slice(0, MOST_CHANGES).map(difference);
  const more = relevant.length - named.length;
  return el(
    "li",
    { class: differ ? "flash" : "" },
    el("div", {}, el("strong", {}, `v${whole(answer.version)}`), " ", el("span", { class: "muted small" }, time(answer.event_time))),
    named.length ? el("ul", { class: "differences" }, named, more > 0 ? el("li", { class: "muted" }, `and ${more} more`) : null) : null,
  );
}

/** Fields that change with every result; the result itself is in the enrichment's card. */
const NOISE = /^(epoch|version|as_of|traceparent)$|^enrichments\.[^.]+\.(fingerprint|ts|epoch|version|spent|result.*)$/;

function difference(one) {
  const path = shortened(one.path).replace(/^enrichments\.([^.]+)\.status$/, "$1");
  return el("li", {}, el("code", {}, path), " ", el("span", { class: "muted" }, short(one.before)), " → ", el("strong", {}, short(one.after)));
}

function short(value) {
  const text = value === undefined || value === null ? "nothing" : written(value);
  return text.length > 40 ? `${text.slice(0, 39)}…` : text;
}
