// The panels of the fields of a key that extend over time: a trace of each series, and a strip of each coverage.

import { el } from "../node.js";
import { timelines } from "../timeline.js";
import { isOfWindow } from "../windows.js";
import { coveragePanel } from "./coverage.js";
import { tracePanel } from "./trace.js";

/** The panels: {node, show(answer), select(start), close()}. A state without such fields has none. */
export function timelinePanels(state, key, signal) {
  const node = el("div", { class: "timelines" });
  let panels = [];
  let [latest, selected] = [null, null];
  timelines(state, { signal }).then(
    ({ every, series, coverage }) => {
      if (every === null || signal.aborted) return;
      panels = [
        ...series.map((one) => tracePanel(state, key, one, every, signal)),
        ...coverage.map((one) => coveragePanel(state, key, one, every, signal)),
      ];
      node.append(...panels.map((one) => one.node));
      for (const one of panels) {
        one.select?.(selected);
        if (latest) one.show(latest);
      }
    },
    () => {}, // without the list of states, the key has only the other panels
  );
  return {
    node,
    show(answer) {
      if (!isOfWindow(answer)) return;
      latest = answer;
      for (const one of panels) one.show(answer);
    },
    select(start) {
      [latest, selected] = [null, start];
      for (const one of panels) one.select?.(start);
    },
    close() {
      for (const one of panels) one.close?.();
    },
  };
}
