// The coverage of a key over its last windows: a strip of data and gaps, and the gaps as a table.

import { duration, time } from "../format.js";
import { el, setText } from "../node.js";
import { shortened } from "../paths.js";
import { repeat } from "../repeat.js";
import { strip } from "../strip.js";
import { coverageOf, seconds } from "../timeline.js";
import { windowSize } from "../windows.js";

const EVERY_MS = 5000;
const LENGTHS = [1, 6, 24, 96];
const USUAL = 24;
const GAPS_MAX = 100;
const KINDS = { data: "data", gap: "gap", open: "not passed yet", unknown: "not remembered" };

/** The panel of a Coverage field: {node, show(answer), select(start)}. `field` is {path, step}. */
export function coveragePanel(state, key, field, every, signal) {
  const name = shortened(field.path);
  const lengths = el("select", { "aria-label": "Windows of coverage" }, LENGTHS.map((one) => el("option", { value: one }, windowSize(one * every))));
  lengths.value = String(USUAL);
  const [from, to] = [el("span"), el("span")];
  const readout = el("p", { class: "readout small muted" });
  const body = el("tbody");
  const view = { intervals: [], hovered: undefined, end: null };
  const showReadout = () => setText(readout, view.hovered ? described(view.hovered) : summary(view.intervals));
  const line = strip((one) => ((view.hovered = one), showReadout()));
  const legend = el("span", { class: "legend" }, Object.entries(KINDS).map(([kind, text]) => [el("i", { class: kind }), text]));
  const node = el(
    "section",
    { class: "panel timeline", "aria-label": `Coverage ${name}` },
    el("div", { class: "bar" }, el("h2", {}, name), lengths, legend),
    line.node,
    el("div", { class: "ends small muted" }, from, to),
    readout,
    el("details", {}, el("summary", {}, "Gaps as a table"), el("div", { class: "scroll" }, el("table", { class: "keys" }, body))),
  );
  const look = async () => {
    if (view.end === null) return;
    const range = { path: field.path, from: view.end - Number(lengths.value) * every, to: view.end };
    try {
      const found = await coverageOf(state, key, range, { signal });
      view.intervals = found;
      line.show(found, summary(found));
      setText(from, time(range.from * 1000));
      setText(to, time(range.to * 1000));
      showReadout();
      body.replaceChildren(...gapsOf(found).reverse().slice(0, GAPS_MAX).map(row));
    } catch (error) {
      if (!signal.aborted) setText(readout, error.message);
    }
  };
  lengths.addEventListener("change", look);
  repeat(look, EVERY_MS, signal);
  return {
    node,
    show(answer) {
      const end = seconds(answer.window_end);
      const isOther = end !== view.end;
      view.end = end;
      if (isOther) look();
    },
  };
}

function gapsOf(intervals) {
  return intervals.filter((one) => one.kind === "gap");
}

function row(one) {
  return el("tr", {}, el("th", { scope: "row" }, time(one.start * 1000)), el("td", {}, time(one.end * 1000)), el("td", { class: "number" }, duration((one.end - one.start) * 1000)));
}

function described(one) {
  return `${KINDS[one.kind]}: ${time(one.start * 1000)} – ${time(one.end * 1000)}, ${duration((one.end - one.start) * 1000)}`;
}

function summary(intervals) {
  const total = (kind) => intervals.filter((one) => one.kind === kind).reduce((sum, one) => sum + one.end - one.start, 0);
  const [data, gap] = [total("data"), total("gap")];
  if (!data && !gap) return "No time of this range is known.";
  const gaps = gapsOf(intervals);
  const longest = Math.max(0, ...gaps.map((one) => one.end - one.start));
  const share = `${((100 * data) / (data + gap)).toFixed(gap && data / (data + gap) > 0.999 ? 3 : 1)} % with data`;
  return gaps.length ? `${share}, ${gaps.length} ${gaps.length === 1 ? "gap" : "gaps"}, the longest of ${duration(longest * 1000)}` : `${share}, no gaps`;
}
