// One key of a named state: its live value and recent changes; in a windowed state, one of its windows.

import { changes } from "../change.js";
import { ago, count, time, whole } from "../format.js";
import { el, setText, terms } from "../node.js";
import { own } from "../own.js";
import { to } from "../route.js";
import { order } from "../states.js";
import { watch, watchStatus } from "../watch.js";
import { isOfWindow, openMark, windowName } from "../windows.js";
import { enrichmentCards } from "./enrichments.js";
import { fieldTable } from "./fields.js";
import { timelinePanels } from "./timelines.js";
import { versionList } from "./versions.js";
import { windowPanel } from "./windowpanel.js";

const GONE = { never_seen: "Never seen", expired: "Its window has expired", removed: "The key was removed", not_yours: "Not allowed for this token", no_window: "No window of the key contains this time" };
/** After these events the key has no value, and its versions may start again. */
const RESET_BY = ["never_seen", "removed"];

/** The view: {node, title, close()}. `window` is a time in the window to show; null for the newest, or without windows. */
export function device(state, key, window) {
  const stopping = new AbortController();
  const status = watchStatus();
  const facts = el("dl", { class: "facts" });
  const notice = el("p", { class: "notice", hidden: true });
  const fields = fieldTable();
  const enriched = enrichmentCards(state, stopping.signal);
  const versions = versionList(state, key, stopping.signal);
  const open = openMark();
  const newest = el("a", { href: to("device", state, key), hidden: true, onclick: (event) => (event.preventDefault(), pick(null)) }, "Newest window");
  const windows = windowPanel(state, key, (start) => pick(start), stopping.signal);
  const timelines = timelinePanels(state, key, stopping.signal);
  const node = el(
    "div",
    { class: "device" },
    el("nav", { class: "crumbs", "aria-label": "Where this is" }, el("a", { href: to("states", state) }, state)),
    el("div", { class: "heading" }, el("h1", { class: "key" }, key), status.node, open.node, newest),
    facts,
    notice,
    timelines.node,
    windows.node,
    el(
      "div",
      { class: "columns" },
      el("div", {}, el("section", { class: "panel", "aria-label": "State" }, el("h2", {}, "State"), fields.node), versions.node),
      enriched.node,
    ),
  );
  let current = null;
  const update = (answer) => {
    if (current && order(answer, current) <= 0) return;
    if (isOfWindow(answer) && current?.window_start !== answer.window_start) forget();
    windows.show(answer);
    timelines.show(answer);
    open.show(answer.is_open);
    const differ = current ? changes(stateOf(current.value), stateOf(answer.value)) : [];
    const all = current ? changes(current.value, answer.value) : null;
    notice.hidden = true;
    fields.show(stateOf(answer.value), differ);
    enriched.show(answer.value, current?.value);
    versions.add(answer, all);
    showFacts(facts, answer);
    current = answer;
  };
  const forget = () => {
    current = null;
    facts.replaceChildren();
    for (const one of [fields, enriched, versions]) one.clear();
  };
  const on = {
    ...status,
    answer: update,
    event: (name, data) => {
      if (RESET_BY.includes(name)) forget();
      if (own(GONE, name)) showGone(notice, name, data);
    },
  };
  let watching = new AbortController();
  const pick = (start) => {
    watching.abort();
    watching = new AbortController();
    forget();
    newest.hidden = start === null;
    windows.select(start);
    timelines.select(start);
    history.replaceState(null, "", start === null ? to("device", state, key) : to("device", state, key, start));
    watch(state, key, start, on, AbortSignal.any([watching.signal, stopping.signal]));
  };
  pick(window);
  const timer = setInterval(() => (current && showFacts(facts, current), fields.age()), 1000);
  return { node, title: key, close: () => (stopping.abort(), windows.close(), timelines.close(), clearInterval(timer)) };
}

/** The part of a value to show: the state of a snapshot, the value of a derived state, or all of it. */
export function stateOf(value) {
  if (value && typeof value === "object") {
    if (value.state && typeof value.state === "object") return value.state;
    if (value.value && typeof value.value === "object") return value.value;
  }
  return value;
}

function showFacts(place, answer) {
  const facts = {
    version: whole(answer.version),
    epoch: whole(answer.epoch),
    [isOfWindow(answer) ? "window" : "window start"]: windowOf(answer),
    "event time": `${time(answer.event_time)} (${ago(answer.event_time)})`,
    source: `${answer.source.topic}, partition ${answer.source.partition}, offset ${answer.source.offset}`,
    "answered by": `${answer.instance}, ${answer.role}, ${count(answer.lag.records)} records behind`,
  };
  if (!place.children.length) place.append(...terms(Object.entries(facts)));
  Object.values(facts).forEach((text, number) => setText(place.children[number].lastChild, text));
}

function windowOf(answer) {
  if (isOfWindow(answer)) return windowName(answer.window_start, answer.window_end);
  return answer.window_start ? time(answer.window_start) : "–";
}

function showGone(place, name, data) {
  place.hidden = false;
  setText(place, `${GONE[name]}. ${typeof data?.detail === "string" ? data.detail : ""}`);
}
