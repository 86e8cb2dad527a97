// The named states, and the keys of one of them as they change; of a windowed state, the top keys of a window too.

import { clock, count, when } from "../format.js";
import { fillTable, listIn } from "../lists.js";
import { el, setText } from "../node.js";
import { own } from "../own.js";
import { repeat } from "../repeat.js";
import { to } from "../route.js";
import { graphOf, isSnapshot } from "../snapshots.js";
import { page, states, versionName } from "../states.js";
import { windowSize } from "../windows.js";
import { cell, chosenColumns } from "./columns.js";
import { stateOf } from "./device.js";
import { statusOf } from "./enrichments.js";
import { topKeys } from "./topkeys.js";

const EVERY_MS = 2000;
const ROWS = 40;
const LEAST_ROWS = 5;
/** The largest response, in characters: with large values, fewer rows are requested. */
const MOST_CHARACTERS = 1_000_000;
const COLUMNS = 6;
/** With more enrichments than this, one column counts them all. */
const MOST_MARKS = 10;
const MARKS = { result: "✓", absence: "–", failure: "✗", skipped: "»", open: "·" };

/** The view: {node, title, close()}. `time` is in the window to show of a windowed state; null for the newest one. */
export function statesView(chosen, time) {
  const stopping = new AbortController();
  const list = el("ul", { class: "states" });
  const filter = el("input", { type: "search", placeholder: "Keys that begin with…", "aria-label": "Keys that begin with", spellcheck: "false" });
  const more = el("button", { hidden: true }, "Next keys");
  const table = el("table", { class: "keys" });
  const notice = el("p", { class: "muted", role: "status" });
  const keys = el("section", { class: "panel", "aria-label": "Keys", hidden: true }, el("div", { class: "bar" }, el("h2", {}, "Keys"), filter, more), notice, el("div", { class: "scroll" }, table));
  const top = topKeys(time);
  const node = el("div", {}, el("h1", {}, "Named states"), list, top.node, keys);
  const looking = { state: chosen, after: null, next: null, seen: new Map(), at: null, rows: ROWS };
  let graph = null;
  looking.enrichments = () => (graph ??= graphOf(looking.state, { signal: stopping.signal }));
  const cards = listIn(list, (one) => one.name, stateCard);
  let request = new AbortController();
  const look = async () => {
    request.abort(); // its response would be late, and perhaps for another prefix
    request = new AbortController();
    const signal = AbortSignal.any([request.signal, stopping.signal]);
    try {
      const response = await states({ signal });
      looking.state ??= response[0]?.name ?? null;
      cards.show(response, looking.state);
      keys.hidden = looking.state === null;
      await top.look(response.find((one) => one.name === looking.state) ?? null, { signal });
      if (looking.state !== null) await showKeys(looking, filter.value, table, notice, more, signal);
      looking.at = Date.now();
    } catch (error) {
      if (signal.aborted) return;
      setText(notice, looking.at === null ? error.message : `${error.message}: stale since ${clock(looking.at)}`);
      keys.hidden = false;
    }
  };
  const again = () => ((looking.after = null), looking.seen.clear(), look());
  filter.addEventListener("input", again);
  more.addEventListener("click", () => ((looking.after = looking.next), look()));
  table.addEventListener("keydown", moved);
  repeat(look, EVERY_MS, stopping.signal);
  return { node, title: "States", close: () => stopping.abort() };
}

function stateCard({ name }) {
  const [topic, figures, here] = ["muted small", "", "muted small"].map((kind) => el("span", { class: kind }));
  const link = el("a", { class: "panel state", href: to("states", name) }, el("strong", {}, name), topic, figures, here);
  return {
    node: el("li", {}, link),
    show(one, chosen) {
      const roles = Map.groupBy(one.partitions, (partition) => partition.role);
      if (name === chosen) link.setAttribute("aria-current", "true");
      setText(topic, `from ${one.topic}`);
      const what = typeof one.window_s === "number" ? `windows of ${windowSize(one.window_s)}` : "keys";
      setText(figures, `${count(one.keys)} ${what} · lag ${count(one.lag.records)} · ${one.partitions.length} partitions`);
      setText(here, `here: ${[...roles].map(([role, those]) => `${those.length} ${role.replace("_", " ")}`).join(", ")}`);
    },
  };
}

async function showKeys(looking, prefix, table, notice, more, signal) {
  const found = await page(looking.state, { prefix, after: looking.after, limit: looking.rows }, { signal });
  looking.next = found.after;
  looking.rows = rowsFor(found.items);
  more.hidden = found.after === null && looking.after === null;
  setText(more, found.after === null ? "First keys" : "Next keys");
  setText(notice, found.items.length ? "" : prefix ? `No key begins with ${prefix}` : "There are no keys yet. They appear here with their first record.");
  const columns = chosenColumns(found.items, COLUMNS);
  const named = found.items.some((one) => isSnapshot(one.value)) ? await looking.enrichments() : [];
  const marked = named.length > MOST_MARKS ? ["enrichments"] : named.map((one) => el("th", { scope: "col", class: "mark", title: one.name }, one.name.slice(0, 4)));
  fillTable(table, ["key", "v", ...columns, ...marked, "event time"], found.items.map((one) => keyRow(looking, one, columns, named)));
}

function rowsFor(answers) {
  const each = JSON.stringify(answers).length / Math.max(1, answers.length);
  return Math.max(LEAST_ROWS, Math.min(ROWS, Math.floor(MOST_CHARACTERS / each)));
}

function keyRow(looking, one, columns, named) {
  const place = versionName(one);
  const before = looking.seen.get(one.key);
  looking.seen.set(one.key, place);
  const isNew = looking.seen.size > 1 && before !== place && looking.started;
  looking.started ||= looking.seen.size >= 1 && before !== undefined;
  const state = stateOf(one.value) ?? {};
  return el(
    "tr",
    { class: isNew ? "flash" : "", "data-key": one.key },
    el("th", { scope: "row" }, el("a", { href: to("device", looking.state, one.key), title: one.key }, one.key)),
    el("td", { class: "number" }, count(one.version)),
    columns.map((name) => el("td", {}, cell(own(state, name)))),
    named.length > MOST_MARKS ? tally(named, one.value) : named.map((enrichment) => mark(enrichment, one.value)),
    el("td", { class: "muted" }, when(one.event_time)),
  );
}

function mark(enrichment, value) {
  const { status, why } = statusOf(enrichment, value);
  return el("td", { class: `mark ${status}`, title: `${enrichment.name}: ${status}${why ? `, ${why}` : ""}`, "aria-label": status }, own(MARKS, status) ?? "?");
}

/** The number of enrichments by status. */
function tally(named, value) {
  const found = new Map(Object.keys(MARKS).map((status) => [status, 0]));
  for (const one of named) {
    const { status } = statusOf(one, value);
    found.set(status, (found.get(status) ?? 0) + 1);
  }
  const counts = [...found].filter(([, number]) => number);
  const marks = counts.map(([status, number]) => el("span", { class: `mark ${status}`, title: `${number} ${status}` }, `${own(MARKS, status) ?? "?"} ${number}`));
  return el("td", { class: "tally" }, marks);
}

function moved(event) {
  const step = { ArrowDown: "nextElementSibling", ArrowUp: "previousElementSibling" }[event.key];
  const row = event.target.closest("tr");
  if (!step || !row?.[step]) return;
  event.preventDefault();
  row[step].querySelector("a")?.focus();
}
