// The windows of a key: one of their numbers over time, as a chart and as a table.

import { barChart } from "../barchart.js";
import { leaves } from "../change.js";
import { value as written } from "../format.js";
import { head, listIn } from "../lists.js";
import { el, setText } from "../node.js";
import { shortened } from "../paths.js";
import { repeat } from "../repeat.js";
import { to } from "../route.js";
import { iso, seconds } from "../timeline.js";
import { isOfWindow, windowName, windowsOf } from "../windows.js";

const EVERY_MS = 5000;
const LENGTHS = [24, 48, 168, 720];
const USUAL = 48;
/** The windows that follow one that was chosen by its address. */
const AFTER = 12;

/** The panel: {node, show(answer), select(start), close()}. `pick(start)` is called with a window, or null for the newest. */
export function windowPanel(state, key, pick, signal) {
  const fields = el("select", { "aria-label": "Number to show" });
  const lengths = el("select", { "aria-label": "Windows at once" }, LENGTHS.map((one) => el("option", { value: one }, `${one} windows`)));
  lengths.value = String(USUAL);
  const [older, newer] = ["‹ Older", "Newer ›"].map((text) => el("button", {}, text));
  const readout = el("p", { class: "readout small muted" });
  const table = windowTable(state, key, (start) => choose(start));
  const view = { bars: [], pageEnds: [], selected: null, hovered: undefined };
  const showReadout = () => setText(readout, described(view.hovered ?? view.bars.find((one) => one.name === view.selected) ?? view.bars.at(-1), fields.value));
  const chart = barChart(written, {
    pick: (start) => choose(view.bars.find((one) => one.start === start).name),
    point: (bar) => ((view.hovered = bar), showReadout()),
  });
  const node = el(
    "section",
    { class: "panel windows", "aria-label": "Windows", hidden: true },
    el("div", { class: "bar" }, el("h2", {}, "Windows"), fields, lengths, el("span", { class: "legend" }, el("i", { class: "closed" }), "closed", el("i", { class: "open" }), "open"), el("span", { class: "pages" }, older, newer)),
    chart.node,
    readout,
    el("details", {}, el("summary", {}, "As a table"), table.node),
  );
  const isNewest = (start) => !view.pageEnds.length && view.bars.at(-1)?.name === start;
  const choose = (start) => pick(isNewest(start) ? null : start);
  const draw = () => {
    chart.show(view.bars);
    table.show(view.bars, view.selected);
    showReadout();
  };
  const look = async () => {
    const wanted = [fields.value, lengths.value, view.pageEnds.at(-1)].join();
    if (node.hidden || !fields.value) return;
    try {
      const found = await windowsOf(state, key, { to: view.pageEnds.at(-1), limit: Number(lengths.value), fields: fields.value }, { signal });
      if (wanted !== [fields.value, lengths.value, view.pageEnds.at(-1)].join()) return;
      view.bars = found.windows.map((one) => bar(one, fields.value));
      older.disabled = !found.older;
      newer.disabled = !view.pageEnds.length;
      draw();
    } catch (error) {
      if (!signal.aborted) setText(readout, error.message);
    }
  };
  older.addEventListener("click", () => (view.pageEnds.push(view.bars[0]?.name), look()));
  newer.addEventListener("click", () => (view.pageEnds.pop(), look()));
  lengths.addEventListener("change", () => ((view.pageEnds = []), look()));
  fields.addEventListener("change", look);
  repeat(look, EVERY_MS, signal);
  return {
    node,
    show(answer) {
      if (!isOfWindow(answer)) return;
      const isFirst = node.hidden;
      node.hidden = false;
      fill(fields, numbers(answer.value));
      if (isFirst && view.selected !== null) view.pageEnds = [endAround(answer)];
      if (isFirst) return look();
      merge(view, bar(answer, fields.value));
      draw();
    },
    select(start) {
      view.selected = start;
      if (start === null && view.pageEnds.length) {
        view.pageEnds = [];
        look();
      }
      chart.select(start === null ? null : seconds(start));
      draw();
    },
    close: chart.close,
  };
}

/** The end of a page that has this window, and some after it. */
function endAround(answer) {
  const [start, end] = [answer.window_start, answer.window_end].map(seconds);
  return iso(end + AFTER * (end - start));
}

/** The paths of the numbers in a value. */
function numbers(value) {
  return [...leaves(value ?? {})].filter(([path, one]) => typeof one === "number" && path.includes(".")).map(([path]) => path);
}

/** Fill the choice of numbers, which may grow: a number may be null in the first window. */
function fill(select, paths) {
  const known = new Set([...select.options].map((one) => one.value));
  select.append(...paths.filter((path) => !known.has(path)).map((path) => el("option", { value: path }, shortened(path))));
}

function bar(answer, path) {
  const [start, end] = [answer.window_start, answer.window_end].map(seconds);
  const found = leaves(answer.value ?? {}).get(path);
  return { name: answer.window_start, start, end, value: typeof found === "number" ? found : null, isOpen: answer.is_open };
}

/** Put the bar of a live answer in the place of the one of its window; a later window is added on the last page only. */
function merge(view, one) {
  const at = view.bars.findIndex((other) => other.name === one.name);
  if (at >= 0) view.bars = view.bars.with(at, one);
  else if (!view.pageEnds.length && one.start > (view.bars.at(-1)?.start ?? 0)) view.bars = [...view.bars, one];
}

function described(one, path) {
  if (!one) return "There are no windows yet.";
  const value = one.value === null ? "without a value" : written(one.value);
  return `${windowName(one.start * 1000, one.end * 1000)}: ${shortened(path)} ${value}${one.isOpen ? ", open" : ""}`;
}

/** The windows as a table, the newest first: {node, show(bars, selected)}. */
function windowTable(state, key, pick) {
  const body = el("tbody");
  const made = ({ name }) => {
    const link = el("a", { href: to("device", state, key, name), onclick: (event) => (event.preventDefault(), pick(name)) });
    const [value, open] = [el("td", { class: "number" }), el("td", { class: "muted" })];
    const node = el("tr", {}, el("th", { scope: "row" }, link), value, open);
    return {
      node,
      show(one, selected) {
        setText(link, windowName(one.start * 1000, one.end * 1000));
        setText(value, written(one.value));
        setText(open, one.isOpen ? "open" : "");
        if (one.name === selected) node.setAttribute("aria-current", "true");
        else node.removeAttribute("aria-current");
      },
    };
  };
  const rows = listIn(body, (one) => one.name, made);
  return {
    node: el("div", { class: "scroll" }, el("table", { class: "keys" }, head(["window", "value", ""]), body)),
    show: (bars, selected) => rows.show([...bars].reverse(), selected),
  };
}
