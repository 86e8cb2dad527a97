// A chart, drawn by uPlot: again when the width of its node or the theme changes.

import { setText } from "./node.js";
import { colour, onTheme } from "./theme.js";

/** Null when the service does not have uPlot's files. */
const library = import("./uplot/uPlot.esm.js").then((module) => module.default, () => null);
const MISSING = "The charts are missing: run stateloop jars where the query service runs, or set its STATELOOP_JARS.";
const HEIGHT = 170;
/** Steps of an axis of counts; never 2.5, since a count has no fraction. */
export const COUNTS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((one) => one * 10 ** power)).flat();

/** A chart in a node: {node, show(content), draw(), close()}. `written` formats its numbers.
 *
 * `data(content)` gives what uPlot draws; `options(uPlot, () => content)` its options, with `time` and `numbers` for the
 * axes, whose look is the same in all charts.
 */
export function chart(node, written, content, data, options) {
  let uPlot;
  let plot = null;
  const described = () => {
    const { time, numbers, ...own } = options(uPlot, () => content);
    const axes = [{ ...axis(), size: 26, ...time }, { ...axis(), size: 56, values: labels(written), ...numbers }];
    return { width: node.clientWidth, height: HEIGHT, padding: [8, 24, 0, 0], axes, ...own };
  };
  const draw = () => {
    if (uPlot === undefined) return;
    if (uPlot === null) return setText(node, MISSING);
    plot?.destroy();
    plot = node.clientWidth ? new uPlot(described(), data(content), node) : null;
  };
  const sized = new ResizeObserver(() => {
    if (plot && node.clientWidth) plot.setSize({ width: node.clientWidth, height: HEIGHT });
    else draw();
  });
  sized.observe(node);
  library.then((loaded) => ((uPlot = loaded), node.isConnected && draw()));
  const endTheme = onTheme(draw);
  return {
    node,
    draw,
    show(now) {
      content = now;
      if (plot) plot.setData(data(content));
      else draw();
    },
    close() {
      sized.disconnect();
      endTheme();
      plot?.destroy();
    },
  };
}

/** Shade spans of time, [[start, end]], behind the lines and over the whole height. */
export function shade(drawn, spans, property) {
  const { left, top, width, height } = drawn.bbox;
  drawn.ctx.save();
  drawn.ctx.fillStyle = colour(property);
  drawn.ctx.beginPath();
  drawn.ctx.rect(left, top, width, height);
  drawn.ctx.clip();
  for (const span of spans) {
    const [from, to] = span.map((one) => drawn.valToPos(one, "x", true));
    drawn.ctx.fillRect(from, top, to - from, height);
  }
  drawn.ctx.restore();
}

function axis() {
  return { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
}

function labels(written) {
  return (_, ticks) => ticks.map((one) => (one === 0 ? "0" : written(one).replace(/\.0(?=$| )/, "")));
}
