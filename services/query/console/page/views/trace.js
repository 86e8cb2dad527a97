// The series of a key: its windows joined to one trace, up to the window that is still open.

import { value as written } from "../format.js";
import { el, setText } from "../node.js";
import { shortened, valueAt } from "../paths.js";
import { repeat } from "../repeat.js";
import { firstSample, gapsIn, joined, seconds } from "../timeline.js";
import { traceChart } from "../tracechart.js";
import { windowSize, windowsOf } from "../windows.js";

/** The interval of reading windows again: late samples are in windows that are not watched. */
const EVERY_MS = 5000;
const SPANS_S = [10, 30, 60, 300, 3600];
const USUAL_S = 30;
const WINDOWS_MAX = 100;

/** The panel of a series: {node, show(answer), select(start), close()}. `field` is {path, rate, unit}. */
export function tracePanel(state, key, field, every, signal) {
  const name = shortened(field.path);
  const reachable = SPANS_S.filter((one) => one / every <= WINDOWS_MAX);
  const spans = el("select", { "aria-label": "Time at once" }, (reachable.length ? reachable : [every]).map((one) => el("option", { value: one }, windowSize(one))));
  spans.value = String([...reachable].reverse().find((one) => one <= Math.max(USUAL_S, every)) ?? spans.value);
  const readout = el("p", { class: "readout small muted" });
  const chart = traceChart(written, name);
  const legend = el("span", { class: "legend" }, el("i", { class: "gap" }), "gap", el("i", { class: "open" }), "open window");
  const node = el("section", { class: "panel timeline", "aria-label": `Series ${name}` }, el("div", { class: "bar" }, el("h2", {}, name), spans, legend), chart.node, readout);
  const windows = new Map();
  let selected = null;
  let end = null;
  const draw = () => {
    const known = [...windows.values()].filter((one) => one.samples.some((sample) => sample !== null));
    if (!known.length) return setText(readout, "There are no samples yet.");
    const data = joined(known, field.rate, Number(spans.value));
    const gaps = gapsIn(data, field.rate, firstSample(known, field.rate));
    const open = known.filter((one) => one.isOpen).map((one) => [one.start, one.end]);
    chart.show({ data, gaps, open, unit: field.unit });
    setText(readout, described(data, gaps, field));
  };
  const take = (answer) => {
    const samples = valueAt(answer.value, field.path);
    const [start, last] = [answer.window_start, answer.window_end].map(seconds);
    windows.set(answer.window_start, { start, end: last, isOpen: answer.is_open, version: answer.version, samples: Array.isArray(samples) ? samples : [] });
  };
  const look = async () => {
    const wanted = selected;
    if (wanted !== null && end === null) return; // the end of the window is known with its first answer
    const limit = Math.min(WINDOWS_MAX, Math.ceil(Number(spans.value) / every) + 1);
    try {
      const found = await windowsOf(state, key, { to: wanted === null ? null : end, limit, fields: field.path }, { signal });
      if (wanted !== selected) return;
      const kept = new Set(found.windows.map((one) => one.window_start));
      for (const start of windows.keys()) if (!kept.has(start) && start < (found.windows[0]?.window_start ?? "")) windows.delete(start);
      for (const one of found.windows) if (!(windows.get(one.window_start)?.version > one.version)) take(one);
      draw();
    } catch (error) {
      if (!signal.aborted) setText(readout, error.message);
    }
  };
  spans.addEventListener("change", look);
  repeat(look, EVERY_MS, signal);
  return {
    node,
    show(answer) {
      const isOther = end !== answer.window_end;
      end = answer.window_end;
      take(answer);
      draw();
      if (isOther) look();
    },
    select(start) {
      selected = start;
      end = null;
      windows.clear();
    },
    close: chart.close,
  };
}

function described([times, values], gaps, field) {
  const samples = values.filter((one) => one !== null).length;
  const missing = gaps.reduce((sum, [start, end]) => sum + end - start, 0);
  const lost = gaps.length ? `, ${gaps.length} ${gaps.length === 1 ? "gap" : "gaps"} of ${written(Number(missing.toFixed(3)))} s` : ", no gaps";
  const last = new Date(Math.round((times.at(-1) + 1 / field.rate) * 1000)).toTimeString().slice(0, 8);
  return `${samples} samples at ${written(field.rate)} Hz up to ${last}${lost}`;
}
