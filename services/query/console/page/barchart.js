// A bar for each window of a key, drawn by uPlot: closed windows filled, open ones pale and outlined.

import { el } from "./node.js";
import { HEIGHT, STEPS, axis, labels, plotIn } from "./plot.js";
import { colour } from "./theme.js";

const GAP = 0.86;
const WIDEST = 64;
const [MINUTE_S, DAY_S] = [60, 86_400];
const TIME_STEPS = [1, 5, 15, 60, 300, 900, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800];

/** A chart: {node, show(bars), select(start), close()}. A bar is {start, end, value, isOpen}, times in seconds.
 *
 * Calls `on.pick(start)` for a click, and `on.point(bar)` when the pointer enters a bar, with undefined when it leaves.
 */
export function barChart(written, on) {
  const node = el("div", { class: "plot bars" });
  let bars = [];
  let selected = null;
  const of = (isOpen) => bars.map((one) => (one.isOpen === isOpen ? one.value : null));
  const plot = plotIn(node, (uPlot, width) => options(uPlot, width), () => [bars.map((one) => one.start), of(false), of(true)]);
  const at = (drawn) => barAt(bars, drawn.posToVal(drawn.cursor.left, "x"));
  const span = () => [bars[0]?.start ?? 0, Math.max(...bars.map((one) => one.end), 1)];
  const options = (uPlot, width) => ({
    width,
    height: HEIGHT,
    padding: [8, 24, 0, 0],
    cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
    legend: { show: false },
    scales: { x: { range: () => span() }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(1, (high ?? 0) * 1.1)] } },
    axes: [
      { ...axis(), grid: { show: false }, size: 26, space: 84, incrs: TIME_STEPS, values: (_, ticks) => ticks.map((one, number) => label(one, ticks[number - 1], ticks)) },
      { ...axis(), size: 56, incrs: STEPS, values: labels(written) },
    ],
    series: [{}, series(uPlot, colour("--accent"), colour("--accent"), 0), series(uPlot, colour("--teal-soft"), colour("--teal"), 1.5)],
    hooks: {
      drawClear: [(drawn) => shade(drawn, bars.find((one) => one.start === selected))],
      init: [(drawn) => drawn.over.addEventListener("click", () => at(drawn) && on.pick(at(drawn).start))],
      setCursor: [(drawn) => on.point(drawn.cursor.left >= 0 ? at(drawn) : undefined)],
    },
  });
  return {
    node,
    show(now) {
      bars = now;
      plot.update();
    },
    select(start) {
      selected = start;
      plot.draw();
    },
    close: plot.close,
  };
}

function series(uPlot, fill, stroke, width) {
  return { fill, stroke, width, points: { show: false }, paths: uPlot.paths.bars({ size: [GAP, WIDEST], align: 1 }) };
}

/** Shades the selected window behind its bar, over the whole height. */
function shade(drawn, bar) {
  if (!bar) return;
  const [left, right] = [bar.start, bar.end].map((one) => drawn.valToPos(one, "x", true));
  drawn.ctx.save();
  drawn.ctx.fillStyle = colour("--amber-soft");
  drawn.ctx.fillRect(left, drawn.bbox.top, right - left, drawn.bbox.height);
  drawn.ctx.restore();
}

function barAt(bars, seconds) {
  return bars.findLast((one) => one.start <= seconds && seconds < one.end);
}

/** A tick of the time axis: the time of day, and the date where a day begins. */
function label(seconds, before, ticks) {
  const date = new Date(seconds * 1000);
  const day = `${date.getMonth() + 1}/${date.getDate()}`;
  const step = ticks.length > 1 ? ticks[1] - ticks[0] : DAY_S;
  if (step >= DAY_S) return day;
  const isNew = before === undefined || new Date(before * 1000).getDate() !== date.getDate();
  const time = date.toTimeString().slice(0, step < MINUTE_S ? 8 : 5);
  return isNew ? `${day} ${time}` : time;
}
