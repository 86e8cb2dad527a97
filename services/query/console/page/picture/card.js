// One node of the picture: a box with a title, a figure and a few lines.

import { fit } from "../fit.js";
import { setText, svg } from "../node.js";

const PAD = 14;

/** A node that can be updated: {node, show({figure, unit, lines, status, message})}. `kind` is part, topic or people. A figure without a unit is a word. */
export function card(name, title, kind, at, lines) {
  const isSmall = at.width < 125;
  const pad = isSmall ? 10 : PAD;
  const figure = svg("tspan", { class: "figure" });
  const unit = svg("tspan", { class: "unit", dx: 4 });
  const top = kind === "part" ? 25 : 23;
  const headline = svg("text", { x: at.x + pad, y: at.y + top + 27 }, figure, unit);
  const rows = Array.from({ length: lines }, (_, number) =>
    svg("text", { class: "line", x: at.x + pad, y: at.y + top + 48 + 18 * number }),
  );
  const tooltip = svg("title");
  const node = svg(
    "g",
    { class: `node ${kind} ${isSmall ? "small" : ""}`, "data-node": name, tabindex: 0, role: "group" },
    tooltip,
    svg("rect", { class: "box", x: at.x, y: at.y, width: at.width, height: at.height, rx: kind === "topic" ? at.height / 3 : 12 }),
    svg("text", { class: "title", x: at.x + pad, y: at.y + top }, title),
    headline,
    rows,
    badge(at),
  );
  return {
    node,
    show(now) {
      setText(figure, now.figure ?? "");
      setText(unit, now.unit ?? "");
      headline.classList.toggle("word", now.unit === undefined);
      rows.forEach((row, number) => fit(row, now.lines?.[number] ?? "", at.width - pad - 6));
      node.dataset.status = now.status;
      const words = [title, [now.figure, now.unit].filter(Boolean).join(" "), ...(now.lines ?? []), now.message].filter(Boolean);
      setText(tooltip, words.join(", "));
      node.setAttribute("aria-label", words.join(", "));
    },
  };
}

/** The badge of an unhealthy node: a sign, not only a colour. */
export function badge(at) {
  const [x, y] = [at.x + at.width - 4, at.y + 4];
  return svg(
    "g",
    { class: "badge", "aria-hidden": "true" },
    svg("circle", { cx: x, cy: y, r: 11 }),
    svg("text", { x, y: y + 5, "text-anchor": "middle" }, "!"),
  );
}
