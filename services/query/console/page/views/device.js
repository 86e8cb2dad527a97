// One key of a named state: as it is now, live, with what changed lately.

import { changes } from "../change.js";
import { ago, clock, count, time, whole } from "../format.js";
import { el, say } from "../node.js";
import { own } from "../own.js";
import { to } from "../route.js";
import { order } from "../states.js";
import { watch } from "../watch.js";
import { enrichmentCards } from "./enrichments.js";
import { fieldTable } from "./fields.js";
import { versionList } from "./versions.js";

const GONE = { never_seen: "Never seen", expired: "Its window has expired", removed: "It was removed", not_yours: "Not for this token" };
/** After these nothing is there, and what comes next is no later version of what was. */
const FORGOTTEN = ["never_seen", "removed"];

/** The view: {node, title, close()}. */
export function device(state, key) {
  const stopping = new AbortController();
  const standing = el("span", { class: "standing", role: "status", "data-standing": "waiting" }, "asking");
  const facts = el("dl", { class: "facts" });
  const notice = el("p", { class: "notice", hidden: true });
  const fields = fieldTable();
  const enriched = enrichmentCards(stopping.signal);
  const versions = versionList(state, key, stopping.signal);
  const node = el(
    "div",
    { class: "device" },
    el("nav", { class: "crumbs", "aria-label": "Where this is" }, el("a", { href: to("states", state) }, state)),
    el("div", { class: "heading" }, el("h1", { class: "key" }, key), standing),
    facts,
    notice,
    el(
      "div",
      { class: "columns" },
      el("div", {}, el("section", { class: "panel", "aria-label": "State" }, el("h2", {}, "State"), fields.node), versions.node),
      enriched.node,
    ),
  );
  let shown = null;
  let heard = null;
  const answer = (told) => {
    if (shown && order(told, shown) <= 0) return;
    const differ = shown ? changes(stateOf(shown.value), stateOf(told.value)) : [];
    const all = shown ? changes(shown.value, told.value) : null;
    notice.hidden = true;
    fields.show(stateOf(told.value), differ);
    enriched.show(told.value, shown?.value);
    versions.add(told, all);
    tellFacts(facts, told);
    shown = told;
  };
  const forget = () => {
    shown = null;
    facts.replaceChildren();
    for (const one of [fields, enriched, versions]) one.clear();
  };
  const on = {
    answer,
    event: (name, data) => {
      if (FORGOTTEN.includes(name)) forget();
      if (own(GONE, name)) tellGone(notice, name, data);
    },
    live: () => {
      heard = Date.now();
      tellStanding(standing, "live", "● live");
    },
    lost: (why) => tellStanding(standing, "waiting", heard === null ? `○ ${why}` : `○ ${why}, stale since ${clock(heard)}`),
  };
  watch(state, key, on, stopping.signal);
  const timer = setInterval(() => (shown && tellFacts(facts, shown), fields.age()), 1000);
  return { node, title: key, close: () => (stopping.abort(), clearInterval(timer)) };
}

function tellStanding(place, standing, text) {
  place.dataset.standing = standing;
  say(place, text);
}

/** What there is to show of a value: the state of a snapshot, the value of a derived state, or all of it. */
export function stateOf(value) {
  if (value && typeof value === "object") {
    if (value.state && typeof value.state === "object") return value.state;
    if (value.value && typeof value.value === "object") return value.value;
  }
  return value;
}

function tellFacts(place, told) {
  const facts = {
    version: whole(told.version),
    epoch: whole(told.epoch),
    "window start": told.window_start ? time(told.window_start) : "–",
    "event time": `${time(told.event_time)} (${ago(told.event_time)})`,
    source: `${told.source.topic}, partition ${told.source.partition}, offset ${told.source.offset}`,
    "answered by": `${told.instance}, ${told.role}, ${count(told.lag.records)} records behind`,
  };
  if (!place.children.length) place.append(...Object.keys(facts).map((name) => el("div", {}, el("dt", {}, name), el("dd"))));
  Object.values(facts).forEach((text, number) => say(place.children[number].lastChild, text));
}

function tellGone(place, name, data) {
  place.hidden = false;
  say(place, `${GONE[name]}. ${typeof data?.detail === "string" ? data.detail : ""}`);
}
