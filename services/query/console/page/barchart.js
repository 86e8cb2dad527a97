// A bar for each window of a key: closed windows filled, open ones pale and outlined.

import { COUNTS, chart, shade } from "./chart.js";
import { el } from "./node.js";
import { colour } from "./theme.js";

const GAP = 0.86;
const WIDEST = 64;
const [MINUTE_S, DAY_S] = [60, 86_400];
const TIME_STEPS = [1, 5, 15, 60, 300, 900, 3600, 10_800, 21_600, 43_200, 86_400, 172_800, 604_800];

/** A chart of bars, with select(start). A bar is {start, end, value, isOpen}, times in seconds.
 *
 * Calls `on.pick(start)` for a click, and `on.point(bar)` when the pointer enters a bar, with undefined when it leaves.
 */
export function barChart(written, on) {
  let selected = null;
  const data = (bars) => [bars.map((one) => one.start), ...[false, true].map((isOpen) => bars.map((one) => (one.isOpen === isOpen ? one.value : null)))];
  const options = (uPlot, bars) => {
    const at = (drawn) => barAt(bars(), drawn.posToVal(drawn.cursor.left, "x"));
    const chosen = () => bars().filter((one) => one.start === selected).map((one) => [one.start, one.end]);
    return {
      cursor: { y: false, points: { show: false }, drag: { x: false, y: false } },
      legend: { show: false },
      scales: { x: { range: () => [bars()[0]?.start ?? 0, Math.max(...bars().map((one) => one.end), 1)] }, y: { range: (_, low, high) => [Math.min(0, low ?? 0), Math.max(1, (high ?? 0) * 1.1)] } },
      time: { grid: { show: false }, space: 84, incrs: TIME_STEPS, values: (_, ticks) => ticks.map((one, number) => label(one, ticks[number - 1], ticks)) },
      numbers: { incrs: COUNTS },
      series: [{}, series(uPlot, colour("--accent"), colour("--accent"), 0), series(uPlot, colour("--teal-soft"), colour("--teal"), 1.5)],
      hooks: {
        drawClear: [(drawn) => shade(drawn, chosen(), "--amber-soft")],
        init: [(drawn) => drawn.over.addEventListener("click", () => at(drawn) && on.pick(at(drawn).start))],
        setCursor: [(drawn) => on.point(drawn.cursor.left >= 0 ? at(drawn) : undefined)],
      },
    };
  };
  const made = chart(el("div", { class: "plot bars" }), written, [], data, options);
  return { ...made, select: (start) => ((selected = start), made.draw()) };
}

function series(uPlot, fill, stroke, width) {
  return { fill, stroke, width, points: { show: false }, paths: uPlot.paths.bars({ size: [GAP, WIDEST], align: 1 }) };
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
