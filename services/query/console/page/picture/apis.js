// The external APIs in the picture: a row for each, with its breaker.

import { count, duration, rate } from "../format.js";
import { say, svg } from "../node.js";
import { badge } from "./card.js";

const FAILED = ["retryable", "permanent", "given_up"];
const SIGNS = { closed: "●", "half-open": "◐", open: "○" };

/** The list of APIs: {node, show(apis, troubles)}. */
export function apiList(names, at, height) {
  const rows = names.map((name, number) => row(name, { ...at, y: at.y + 32 + number * height, height }));
  const node = svg(
    "g",
    { class: "node part apis", "data-node": "apis", tabindex: 0, role: "group", "aria-label": "External APIs" },
    svg("rect", { class: "box", x: at.x, y: at.y, width: at.width, height: at.height, rx: 12 }),
    svg("text", { class: "title", x: at.x + 14, y: at.y + 24 }, "External APIs"),
    rows.map((one) => one.node),
    names.length ? null : svg("text", { class: "line", x: at.x + 14, y: at.y + 56 }, "none is called"),
  );
  return {
    node,
    show(apis, troubled) {
      rows.forEach((one, number) => one.show(apis[number], troubled(`api:${apis[number].name}`)));
    },
  };
}

function row(name, at) {
  const sign = svg("text", { class: "sign", x: at.x + 14, y: at.y + 20 });
  const figure = svg("text", { class: "rate", x: at.x + at.width - 14, y: at.y + 20, "text-anchor": "end" });
  const line = svg("text", { class: "line", x: at.x + 32, y: at.y + 37 });
  const node = svg(
    "g",
    { class: "api", "data-node": `api:${name}` },
    svg("path", { class: "rule", d: `M${at.x + 14},${at.y} H${at.x + at.width - 14}` }),
    sign,
    svg("text", { class: "name", x: at.x + 32, y: at.y + 20 }, name.length > 16 ? `${name.slice(0, 15)}…` : name),
    figure,
    line,
    badge({ x: at.x, y: at.y + 10, width: at.width, height: 0 }),
  );
  return {
    node,
    show(api, isTroubled) {
      const calls = Object.values(api.calls).reduce((sum, one) => sum + one, 0);
      node.dataset.breaker = api.breaker;
      node.dataset.standing = isTroubled ? "troubled" : "well";
      say(sign, SIGNS[api.breaker]);
      say(figure, `${rate(calls)}/s`);
      say(line, told(api));
      node.setAttribute("aria-label", `${name}: ${rate(calls)} calls a second, breaker ${api.breaker}, ${told(api)}`);
    },
  };
}

function told(api) {
  if (api.breaker !== "closed") return `breaker ${api.breaker}, ${count(api.held)} wait`;
  const failed = FAILED.reduce((sum, outcome) => sum + (api.calls[outcome] ?? 0), 0);
  const latency = api.p50_ms === null ? "no call lately" : `p50 ${duration(api.p50_ms)}, p95 ${duration(api.p95_ms)}`;
  return failed > 0.05 ? `${latency}, ${rate(failed)} fail/s` : latency;
}
