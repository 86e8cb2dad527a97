// The open alerts of the rules of a table, as they open and close.

import { count, time, when } from "../format.js";
import { listIn } from "../lists.js";
import { el, setText } from "../node.js";
import { to } from "../route.js";

const SHOWN = 50;
const DRAW_MS = 100;
const AGE_MS = 5000;

/** The panel: {node, put(answer), remove(state, key), clear(), current(), openOf(rule)}. */
export function openAlerts(table, signal) {
  const total = el("span", { class: "total" });
  const none = el("p", { class: "muted", role: "status" });
  const list = el("ol", { class: "alerts", "aria-live": "polite" });
  const node = el("section", { class: "panel", "aria-label": "Open alerts" }, el("div", { class: "bar" }, el("h2", {}, "Open alerts"), total), none, list);
  const [byKey, byRule] = [new Map(), new Map()];
  let [timer, isCurrent] = [null, false];
  const rows = listIn(list, (one) => one.id, (one) => alertRow(one, table.alerts.length > 1));
  const change = (place, alerts) => {
    for (const one of byKey.get(place) ?? []) byRule.set(one.rule, byRule.get(one.rule) - 1);
    if (alerts.length) byKey.set(place, alerts);
    else byKey.delete(place);
    for (const one of alerts) byRule.set(one.rule, (byRule.get(one.rule) ?? 0) + 1);
    timer ??= setTimeout(draw, DRAW_MS);
  };
  const draw = () => {
    timer = null;
    const all = [...byKey.values()].flat();
    rows.show(all.sort((one, other) => (one.opened < other.opened ? 1 : -1)).slice(0, SHOWN));
    setText(total, count(all.length));
    total.dataset.open = String(all.length > 0);
    setText(none, all.length > SHOWN ? `The latest ${SHOWN} of ${count(all.length)}` : all.length || !isCurrent ? "" : "No alert is open.");
  };
  const aging = setInterval(draw, AGE_MS);
  signal.addEventListener("abort", () => (clearInterval(aging), clearTimeout(timer)), { once: true });
  return {
    node,
    put: (answer) => change(`${answer.state} ${answer.key}`, answer.value.alerts.filter((one) => one.status === "open").map((one) => ({ ...one, state: answer.state, key: answer.key, opened: one.opened_at ?? one.since, isNew: isCurrent }))),
    remove: (state, key) => change(`${state} ${key}`, []),
    clear: () => (byKey.clear(), byRule.clear(), (isCurrent = false)),
    current: () => ((isCurrent = true), (timer ??= setTimeout(draw, DRAW_MS))),
    openOf: (rule) => byRule.get(rule) ?? 0,
  };
}

function alertRow(alert, several) {
  const age = el("span", { class: "muted small age" });
  const rule = el("span", { class: "muted small" }, several ? `${alert.state} · ` : "", `by ${alert.rule}`);
  return {
    node: el("li", { class: alert.isNew ? "flash" : "", title: `${alert.id}\nopened ${time(alert.opened)}` }, el("span", { class: "sign", "aria-hidden": "true" }, "!"), el("a", { class: "key", href: to("device", alert.state, alert.key) }, alert.key), rule, age),
    show: () => setText(age, when(alert.opened)),
  };
}
