// A strip of time: with data, gaps, time that has not passed, and time that is not remembered.

import { el, svg } from "./node.js";

const COLUMNS = 1000;
/** Of several kinds in a column, the first of these is drawn: no gap is too short to be visible. */
const KINDS = ["gap", "unknown", "open", "data"];

/** A strip: {node, show(intervals)}. Intervals are {kind, start, end}. `point(interval)` is called with that under the pointer. */
export function strip(point) {
  const picture = svg("svg", { viewBox: `0 0 ${COLUMNS} 1`, preserveAspectRatio: "none", role: "img" });
  const node = el("div", { class: "strip" }, picture);
  let current = [];
  node.addEventListener("pointermove", (event) => {
    const box = node.getBoundingClientRect();
    const [start, end] = [current[0]?.start ?? 0, current.at(-1)?.end ?? 0];
    const at = start + ((event.clientX - box.left) / box.width) * (end - start);
    point(current.find((one) => one.start <= at && at < one.end));
  });
  node.addEventListener("pointerleave", () => point(undefined));
  return {
    node,
    show(intervals, name) {
      current = intervals;
      picture.setAttribute("aria-label", name);
      picture.replaceChildren(...runs(columns(intervals)).map(({ kind, from, to }) => svg("rect", { class: kind, x: from, width: to - from, y: 0, height: 1 })));
    },
  };
}

/** The kind of each column. */
function columns(intervals) {
  const kinds = new Array(COLUMNS).fill(null);
  if (!intervals.length) return kinds;
  const [start, end] = [intervals[0].start, intervals.at(-1).end];
  const place = (time) => ((time - start) / (end - start)) * COLUMNS;
  for (const one of intervals) {
    const last = Math.max(Math.floor(place(one.start)) + 1, Math.ceil(place(one.end) - 1e-9));
    for (let at = Math.floor(place(one.start)); at < Math.min(last, COLUMNS); at += 1) {
      if (kinds[at] === null || KINDS.indexOf(one.kind) < KINDS.indexOf(kinds[at])) kinds[at] = one.kind;
    }
  }
  return kinds;
}

function runs(kinds) {
  const found = [];
  kinds.forEach((kind, at) => {
    if (found.at(-1)?.kind === kind) found.at(-1).to = at + 1;
    else if (kind !== null) found.push({ kind, from: at, to: at + 1 });
  });
  return found;
}
