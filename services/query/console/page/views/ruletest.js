// The changes in the alerts if a rule is saved: the result of its test against the present states.

import { count } from "../format.js";
import { el, setText } from "../node.js";
import { to } from "../route.js";
import { testRule } from "../tables.js";

/** The panel: {node, run(key, row), clear()}. `run` throws what the request throws. */
export function ruleTest(table, { signal }) {
  const progress = el("p", { class: "muted", role: "status" });
  const results = el("div");
  const node = el("div", { class: "rule-test", hidden: true }, el("h3", {}, "If it is saved now"), progress, results);
  let running = new AbortController();
  const clear = () => {
    running.abort();
    node.hidden = true;
    results.replaceChildren();
  };
  return {
    node,
    clear,
    async run(key, row) {
      clear();
      running = new AbortController();
      const own = running;
      const onProgress = (found) => {
        if (own.signal.aborted) return;
        node.hidden = false;
        setText(progress, `Testing… ${count(Math.max(...found.map((one) => one.evaluated)))} states so far`);
        results.replaceChildren(...found.map((one) => result(one, table)));
      };
      try {
        await testRule(table.name, key, row, onProgress, { signal: AbortSignal.any([signal, own.signal]) });
        setText(progress, "");
      } catch (error) {
        if (!own.signal.aborted) throw error;
      }
    },
  };
}

function result(one, table) {
  const figures = [
    ["opening", one.opening.count, one.opening.count === 1 ? "alert opens" : "alerts open"],
    ["closing", one.closing.count, one.closing.count === 1 ? "alert closes" : "alerts close"],
    ["open", one.open, "are open then"],
    ["pending", one.pending, "wait for hold"],
    ["evaluated", one.evaluated, one.evaluated === 1 ? "state matches keys" : "states match keys"],
  ];
  return el(
    "section",
    { "aria-label": one.alerts },
    table.alerts.length > 1 ? el("h3", {}, one.alerts) : null,
    el("dl", { class: "figures" }, figures.map(([kind, number, text]) => el("div", { class: kind, "data-some": String(number > 0) }, el("dt", {}, text), el("dd", {}, count(number))))),
    one.failed ? el("p", { class: "notice" }, `The condition raises for ${count(one.failed)} states: ${one.failure}`) : null,
    keys("Opens", one.opening, table),
    keys("Closes", one.closing, table),
  );
}

function keys(name, found, table) {
  if (!found.count) return null;
  const more = found.count - found.keys.length;
  return el("p", { class: "tested-keys" }, el("span", { class: "muted" }, `${name}: `), found.keys.flatMap((key) => [el("a", { class: "key", href: to("device", table.application, key) }, key), " "]), more > 0 ? el("span", { class: "muted" }, `and ${count(more)} more`) : null);
}
