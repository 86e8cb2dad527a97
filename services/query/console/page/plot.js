// A place in the page that uPlot draws in: drawn again when its width or the theme changes.

import { setText } from "./node.js";
import { colour, onTheme } from "./theme.js";

/** Null when the service does not have uPlot's files. */
const library = import("./uplot/uPlot.esm.js").then((module) => module.default, () => null);
const MISSING = "The charts are missing: run make jars where the query service runs, or set its STATELOOP_JARS.";

export const HEIGHT = 170;
/** Steps of an axis of numbers; never 2.5, since a count has no fraction. */
export const STEPS = Array.from({ length: 12 }, (_, power) => [1, 2, 5].map((one) => one * 10 ** power)).flat();

/** A plot: {update(), draw(), close()}. `options(uPlot, width)` and `data()` give what uPlot draws. */
export function plotIn(place, options, data) {
  let uPlot;
  let plot = null;
  const draw = () => {
    if (uPlot === undefined) return;
    if (uPlot === null) return setText(place, MISSING);
    plot?.destroy();
    plot = place.clientWidth ? new uPlot(options(uPlot, place.clientWidth), data(), place) : null;
  };
  const sized = new ResizeObserver(() => {
    if (plot && place.clientWidth) plot.setSize({ width: place.clientWidth, height: HEIGHT });
    else draw();
  });
  sized.observe(place);
  library.then((loaded) => ((uPlot = loaded), place.isConnected && draw()));
  const endTheme = onTheme(draw);
  return {
    draw,
    update() {
      if (plot) plot.setData(data());
      else draw();
    },
    close() {
      sized.disconnect();
      endTheme();
      plot?.destroy();
    },
  };
}

/** The look of an axis, in the colours of the theme. */
export function axis() {
  return { stroke: colour("--muted"), grid: { stroke: colour("--line"), width: 1 }, ticks: { show: false }, font: "11px system-ui, sans-serif" };
}

/** The labels of an axis of numbers. */
export function labels(written) {
  return (_, ticks) => ticks.map((one) => (one === 0 ? "0" : written(one).replace(/\.0(?=$| )/, "")));
}
