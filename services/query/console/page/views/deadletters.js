// Dead letters: by reason, and the latest of them.

import { clock, count, time, value as written } from "../format.js";
import { listIn } from "../lists.js";
import { loop } from "../loop.js";
import { el, setText, terms } from "../node.js";
import { own } from "../own.js";
import { repeat } from "../repeat.js";
import { getJson } from "../service.js";

const EVERY_MS = 3000;
const LIMIT = 100;
/** The number of reasons and dead letters visible at first. */
const REASONS = 8;
const INITIAL = 20;
const MEANINGS = {
  empty: "no value",
  oversized: "larger than the application allows",
  not_utf8: "not UTF-8",
  malformed: "not a JSON object with the declared types",
  invalid_field: "a field is missing or outside its bounds",
  wrong_key: "the record's key is not its device's",
  incredible_time: "the device's clock is ahead of the broker's or the job's",
  late: "its window had expired when it arrived",
  processor_failed: "the processor raised on the record: its variables are as before",
  undecodable: "a raw record cannot be decoded to events",
  large_snapshot: "the state is too large to be published whole",
  undecodable_snapshot: "a record of the snapshots topic is not a snapshot, or one of alerts is not of alerts",
  enrichment_failed: "a request failed after the attempts of its policy",
  delivery_failed: "a webhook did not accept an event of an alert",
  invalid_row: "a record of a reference table that its model rejects: the former row stays in force",
  not_derived: "the function of a derived state raised on a snapshot",
  not_stored: "a sink cannot write the record, or its store rejects the row",
  unreadable: "a record of this topic is not a dead letter",
  others: "reasons beyond the first fifty",
};

/** The view: {node, title, close()}. */
export function deadLetters() {
  const stopping = new AbortController();
  const since = el("p", { class: "muted" });
  const none = el("p", { class: "muted", role: "status" });
  const [reasons, latest] = [el("ul", { class: "reasons" }), el("ol", { class: "dead-letters" })];
  const [allReasons, more] = [el("button", { class: "fold" }), el("button", { class: "fold" })];
  const node = el("div", {}, el("h1", {}, "Dead letters"), since, reasons, allReasons, el("h2", {}, "The latest"), none, latest, more);
  const view = { response: null, at: null, chosen: null, isWhole: false, most: INITIAL };
  const kinds = listIn(reasons, ([name]) => name, ([name]) => reason(name, () => choose(name)));
  const rows = listIn(latest, placeOf, (one) => ({ node: entry(one) }));
  const choose = (name) => (Object.assign(view, { chosen: view.chosen === name ? null : name, most: INITIAL }), draw());
  const draw = () => {
    if (!view.response) return;
    setText(since, summary(view.response));
    drawReasons(view, kinds, allReasons);
    const of = view.response.latest.filter((one) => view.chosen === null || one.reason === view.chosen);
    const listed = of.slice(0, view.most);
    rows.show(listed);
    setText(none, view.chosen !== null && !of.length ? `None of the latest ${view.response.latest.length} is ${view.chosen}: they are older.` : "");
    more.hidden = of.length <= listed.length;
    setText(more, `Show ${of.length - listed.length} more`);
  };
  allReasons.addEventListener("click", () => ((view.isWhole = !view.isWhole), draw()));
  more.addEventListener("click", () => ((view.most = LIMIT), draw()));
  const look = async () => {
    try {
      view.response = await getJson(loop.path("/v1/loop/dead_letters", { limit: LIMIT }), { signal: stopping.signal });
      view.at = Date.now();
      draw();
    } catch (error) {
      if (!stopping.signal.aborted) setText(since, view.at === null ? error.message : `${error.message}: stale since ${clock(view.at)}`);
    }
  };
  repeat(look, EVERY_MS, stopping.signal);
  allReasons.hidden = more.hidden = true;
  return { node, title: "Dead letters", close: () => stopping.abort() };
}

function summary(response) {
  if (!response.since) return `${response.topic} has no dead letters: every record was processed.`;
  return `Dead letters in ${response.topic} since ${time(response.since)}, by reason.`;
}

function drawReasons(view, kinds, button) {
  const all = Object.entries(view.response.counts).sort(([, one], [, other]) => other - one);
  const visible = view.isWhole ? all : all.filter(([name], number) => number < REASONS || name === view.chosen);
  const most = Math.max(1, ...all.map(([, number]) => number));
  kinds.show(visible, most, view.chosen);
  button.hidden = all.length <= REASONS;
  setText(button, view.isWhole ? "Show fewer reasons" : `Show ${all.length - visible.length} more reasons`);
  button.setAttribute("aria-expanded", String(view.isWhole));
}

function reason(name, choose) {
  const bar = el("meter", { min: 0, "aria-hidden": "true" });
  const figure = el("span", { class: "number" });
  const words = name.split(/(?<=_)/).flatMap((word) => [word, el("wbr")]); // a long name breaks between its words
  const meaning = el("span", { class: "muted small" }, own(MEANINGS, name) ?? "");
  const button = el("button", { class: "panel reason", onclick: choose }, el("strong", {}, words), figure, bar, meaning);
  return {
    node: el("li", {}, button),
    show([, number], most, chosen) {
      setText(figure, count(number));
      Object.assign(bar, { max: most, value: number });
      button.setAttribute("aria-pressed", String(name === chosen));
    },
  };
}

/** One record may have several dead letters: one for each enrichment that failed. */
function placeOf(one) {
  return [one.topic, one.partition, one.offset, one.enrichment, one.written].join(" ");
}

function entry(one) {
  const facts = { key: one.key, "written at": time(one.written), origin: `${one.topic}, partition ${one.partition}, offset ${one.offset}`, enrichment: one.enrichment, attempts: one.attempts, response: one.response, detail: one.detail };
  const rows = Object.entries(facts).filter(([, value]) => value !== null && value !== undefined);
  const short = el("span", { class: "short" }, el("strong", {}, one.reason), " ", one.detail ?? "");
  return el(
    "li",
    { class: "panel" },
    el(
      "details",
      {},
      el("summary", {}, short, el("span", { class: "short muted small" }, `${time(one.written)}${one.key ? `, ${one.key}` : ""}`)),
      el("dl", { class: "pairs wide" }, terms(rows.map(([name, value]) => [name, written(value)]))),
      one.head === null ? null : el("pre", { class: "head", tabindex: 0, "aria-label": "Head of the record" }, one.head),
    ),
  );
}
