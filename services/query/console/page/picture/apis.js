// The external APIs in the picture: a row for each with its breaker, and one that sums those beyond the maximum.

import { fit } from "../fit.js";
import { count, duration, rate } from "../format.js";
import { setText, svg } from "../node.js";
import { badge } from "./card.js";
import { MOST_APIS, ROW } from "./layout.js";

const FAILED = ["retryable", "permanent", "given_up"];
const SIGNS = { closed: "●", "half-open": "◐", open: "○", unknown: "?" };
const WORST = { open: 0, "half-open": 1, unknown: 2, closed: 3 };

/** The list of so many APIs: {node, show(apis, reasonFor)}. With too many, those that are down come first. */
export function apiList(number, at) {
  const rows = Array.from({ length: Math.min(number, MOST_APIS) }, (_, place) => row({ ...at, y: at.y + 32 + place * ROW }));
  const node = svg(
    "g",
    { class: "node part apis", "data-node": "apis", tabindex: 0, role: "group", "aria-label": "External APIs" },
    svg("rect", { class: "box", x: at.x, y: at.y, width: at.width, height: at.height, rx: 12 }),
    svg("text", { class: "title", x: at.x + 14, y: at.y + 24 }, "External APIs"),
    rows.map((one) => one.node),
  );
  return {
    node,
    show(apis, reasonFor) {
      const listed = apis.length > MOST_APIS ? [...apis].sort((one, other) => WORST[breaker(one)] - WORST[breaker(other)]) : apis;
      const rest = apis.length > MOST_APIS ? listed.splice(MOST_APIS - 1) : [];
      listed.forEach((one, place) => rows[place].show(one, reasonFor(`api:${one.name}`)));
      if (rest.length) rows.at(-1).sum(rest);
    },
  };
}

function row(at) {
  const sign = svg("text", { class: "sign", x: at.x + 14, y: at.y + 20 });
  const name = svg("text", { class: "name", x: at.x + 32, y: at.y + 20 });
  const figure = svg("text", { class: "rate", x: at.x + at.width - 14, y: at.y + 20, "text-anchor": "end" });
  const line = svg("text", { class: "line", x: at.x + 32, y: at.y + 37 });
  const all = svg("title");
  const node = svg("g", { class: "api" }, all, svg("path", { class: "rule", d: `M${at.x + 14},${at.y} H${at.x + at.width - 14}` }), sign, name, figure, line, badge({ x: at.x + 6, y: at.y + 10, width: at.width, height: 0 }));
  const write = (title, called, text) => {
    setText(figure, `${rate(called)}/s`);
    fit(name, title, at.width - 54 - figure.getComputedTextLength());
    fit(line, text, at.width - 46);
    setText(all, `${title}, ${rate(called)} calls a second, ${text}`);
  };
  return {
    node,
    show(api, reason) {
      node.dataset.node = `api:${api.name}`;
      node.dataset.breaker = breaker(api);
      node.dataset.status = reason ? "unhealthy" : "healthy";
      setText(sign, SIGNS[breaker(api)]);
      write(api.name, calls(api), details(api));
      node.setAttribute("aria-label", `${api.name}: ${rate(calls(api))} calls a second, breaker ${breaker(api)}, ${details(api)}`);
    },
    sum(apis) {
      const down = apis.filter((one) => ["open", "half-open"].includes(one.breaker)).length;
      Object.assign(node.dataset, { node: "apis", breaker: down ? "open" : "closed", status: down ? "unhealthy" : "healthy" });
      setText(sign, "…");
      const names = apis.map((one) => one.name).join(", ");
      write(`${apis.length} more`, apis.reduce((total, one) => total + calls(one), 0), down ? `${down} of them down` : names);
    },
  };
}

function calls(api) {
  return Object.values(api.calls).reduce((sum, one) => sum + one, 0);
}

/** The breaker over all workers; "unknown" when no monitored worker answers. */
function breaker(api) {
  return api.breaker ?? "unknown";
}

function details(api) {
  if (api.breaker === null) return "no worker reports on it";
  if (api.breaker !== "closed") return `breaker ${api.breaker}, ${count(api.queued)} wait`;
  const failed = FAILED.reduce((sum, outcome) => sum + (api.calls[outcome] ?? 0), 0);
  if (api.p50_ms === null) return "no recent calls";
  const slow = `p95 ${duration(api.p95_ms)}`;
  return failed > 0.05 ? `${rate(failed)} fail/s, ${slow}` : `p50 ${duration(api.p50_ms)}, ${slow}`;
}
