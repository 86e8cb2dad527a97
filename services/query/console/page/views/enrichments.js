// The enrichments of a device with their status and its reason.

import { time, value as written } from "../format.js";
import { listIn } from "../lists.js";
import { el, terms } from "../node.js";
import { own } from "../own.js";
import { graphOf, isSnapshot } from "../snapshots.js";

const SIGNS = { result: "✓", absence: "–", failure: "✗", skipped: "»", open: "◌" };
const WORDS = { result: "done", absence: "absent", failure: "failed", skipped: "skipped", open: "open" };
const OPEN_FIELDS = 4;

/** The cards of a device's enrichments: {node, show(value, before)}. The application's graph has the dependencies of each. */
export function enrichmentCards(state, signal) {
  const list = el("ul", { class: "enrichments" });
  const summary = el("p", { class: "muted small summary" });
  const node = el("section", { class: "panel", "aria-label": "Enrichments", hidden: true }, el("h2", {}, "Enrichments"), summary, list);
  const cards = listIn(list, ({ name, answer, status, why }) => JSON.stringify([name, answer, status, why]), (one) => ({ node: card(one) }));
  let nodes = [];
  let graph = null;
  let last = null;
  const draw = (before) => {
    const answers = last?.enrichments ?? {};
    const named = nodes.length && isSnapshot(last) ? nodes : Object.keys(answers).map((name) => ({ name, needs: [], optional: [] }));
    node.hidden = !isSnapshot(last) || !named.length;
    const isNew = (name) => before && JSON.stringify(own(before.enrichments ?? {}, name)) !== JSON.stringify(own(answers, name));
    cards.show(named.map((one) => ({ name: one.name, answer: own(answers, one.name), isNew: isNew(one.name), ...statusOf(one, last) })));
    summary.textContent = tally(named, answers);
  };
  return {
    node,
    show(value, before) {
      last = value;
      if (isSnapshot(value)) graph ??= graphOf(state, { signal }).then((found) => ((nodes = found), last && draw(last)));
      draw(before);
    },
    clear() {
      last = null;
      draw();
    },
  };
}

/** The status of an enrichment of a device, and the reason: {status, why}. */
export function statusOf(one, value) {
  const answer = own(value.enrichments ?? {}, one.name);
  if (answer) return { status: answer.status, why: answer.reason ?? "" };
  const missing = one.needs.filter((need) => !one.optional.includes(need) && !isThere(need, value));
  return { status: "open", why: missing.length ? `waits for ${missing.join(", ")}` : "requested" };
}

function isThere(need, value) {
  const answer = own(value.enrichments ?? {}, need);
  if (answer) return answer.status === "result";
  const field = own(value.state ?? {}, need);
  return field !== null && field !== undefined;
}

function tally(named, answers) {
  const found = new Map();
  for (const one of named) {
    const status = own(answers, one.name)?.status ?? "open";
    found.set(status, (found.get(status) ?? 0) + 1);
  }
  return [...found].map(([status, number]) => `${number} ${own(WORDS, status) ?? status}`).join(", ");
}

function card({ name, answer, isNew, status, why }) {
  const result = answer?.result ? Object.entries(answer.result) : [];
  return el(
    "li",
    { class: isNew ? "flash" : "", "data-status": status, "data-enrichment": name },
    el("span", { class: "sign", "aria-hidden": "true" }, own(SIGNS, status) ?? "?"),
    el(
      "div",
      {},
      el("div", { class: "name" }, el("strong", {}, name), " ", el("span", { class: `word ${status}` }, own(WORDS, status) ?? status)),
      why ? el("div", { class: "why" }, why) : null,
      result.length ? pairs(result) : null,
      answer ? el("div", { class: "muted small" }, `answered ${time(answer.ts)}, on version ${answer.version}`) : null,
    ),
  );
}

function pairs(result) {
  const all = terms(result.map(([name, value]) => [name, written(value)]));
  const rest = all.splice(OPEN_FIELDS);
  const more = rest.length ? el("details", {}, el("summary", {}, `${rest.length} more`), el("dl", { class: "pairs" }, rest)) : null;
  return [el("dl", { class: "pairs" }, all), more];
}
