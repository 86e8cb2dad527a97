// Dead letters: by reason, and the latest of them.

import { clock, count, time, value as written } from "../format.js";
import { el, say } from "../node.js";
import { own } from "../own.js";
import { repeat } from "../repeat.js";
import { ask } from "../service.js";

const EVERY_MS = 3000;
const MEANINGS = {
  empty: "no value",
  oversized: "larger than the application allows",
  not_utf8: "no UTF-8",
  malformed: "no JSON object with the declared types",
  invalid_field: "a field is missing or outside its bounds",
  incredible_time: "the device's clock is ahead of the broker's",
  late: "its life was over when it came",
  large_snapshot: "the state is too large to be published whole",
  undecodable_snapshot: "a record of the snapshots topic is no snapshot",
  enrichment_failed: "a request was tried as its policy says, and failed",
  not_derived: "the function of a derived state raised on a snapshot",
  unreadable: "a record of this topic is no dead letter of ours",
  others: "reasons beyond the first fifty",
};

/** The view: {node, title, close()}. */
export function letters() {
  const stopping = new AbortController();
  const since = el("p", { class: "muted" });
  const reasons = el("ul", { class: "reasons" });
  const latest = el("ol", { class: "letters" });
  const node = el("div", {}, el("h1", {}, "Dead letters"), since, reasons, el("h2", {}, "The latest"), latest);
  let chosen = null;
  let told = null;
  let at = null;
  const draw = () => {
    if (!told) return;
    const most = Math.max(1, ...Object.values(told.counts));
    say(since, told.since ? `Those in ${told.topic} since ${time(told.since)}, by the reason why they could not be used.` : `There is none in ${told.topic}: every record was used.`);
    reasons.replaceChildren(...Object.entries(told.counts).map(([name, number]) => reason(name, number, most, chosen, (one) => ((chosen = chosen === one ? null : one), draw()))));
    const open = new Set([...latest.querySelectorAll("details[open]")].map((one) => one.dataset.place));
    latest.replaceChildren(...told.latest.filter((one) => chosen === null || one.reason === chosen).map((one) => letter(one, open)));
  };
  const look = async () => {
    try {
      told = await ask("/v1/loop/dead_letters?limit=100", { signal: stopping.signal });
      at = Date.now();
      draw();
    } catch (error) {
      if (!stopping.signal.aborted) say(since, at === null ? error.message : `${error.message}: stale since ${clock(at)}`);
    }
  };
  repeat(look, EVERY_MS, stopping.signal);
  return { node, title: "Dead letters", close: () => stopping.abort() };
}

function reason(name, number, most, chosen, choose) {
  const bar = el("meter", { min: 0, max: most, value: number, "aria-hidden": "true" });
  return el(
    "li",
    {},
    el(
      "button",
      { class: "panel reason", "aria-pressed": String(chosen === name), onclick: () => choose(name) },
      el("strong", {}, name),
      el("span", { class: "number" }, count(number)),
      bar,
      el("span", { class: "muted small" }, own(MEANINGS, name) ?? ""),
    ),
  );
}

function letter(one, open) {
  const place = `${one.topic} ${one.partition} ${one.offset}`;
  const facts = { key: one.key, "written at": time(one.written), origin: `${one.topic}, partition ${one.partition}, offset ${one.offset}`, enrichment: one.enrichment, attempts: one.attempts, response: one.response };
  const rows = Object.entries(facts).filter(([, value]) => value !== null && value !== undefined);
  return el(
    "li",
    { class: "panel" },
    el(
      "details",
      { open: open.has(place), "data-place": place },
      el("summary", {}, el("strong", {}, one.reason), " ", el("span", {}, one.detail ?? ""), " ", el("span", { class: "muted small" }, `${time(one.written)}${one.key ? `, ${one.key}` : ""}`)),
      el("dl", { class: "pairs" }, rows.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, written(value))))),
      one.head === null ? null : el("pre", { class: "head", tabindex: 0, "aria-label": "How the record begins" }, one.head),
    ),
  );
}
