// The external APIs in the picture: a row for each with its breaker, and one for those for which there is no room.

import { fit } from "../fit.js";
import { count, duration, rate } from "../format.js";
import { say, svg } from "../node.js";
import { badge } from "./card.js";
import { MOST_APIS, ROW } from "./layout.js";

const FAILED = ["retryable", "permanent", "given_up"];
const SIGNS = { closed: "●", "half-open": "◐", open: "○", unknown: "?" };
const WORST = { open: 0, "half-open": 1, unknown: 2, closed: 3 };

/** The list of so many APIs: {node, show(apis, troubles)}. With too many, those that are down come first. */
export function apiList(number, at) {
  const rows = Array.from({ length: Math.min(number, MOST_APIS) }, (_, place) => row({ ...at, y: at.y + 32 + place * ROW }));
  const node = svg(
    "g",
    { class: "node part apis", "data-node": "apis", tabindex: 0, role: "group", "aria-label": "External APIs" },
    svg("rect", { class: "box", x: at.x, y: at.y, width: at.width, height: at.height, rx: 12 }),
    svg("text", { class: "title", x: at.x + 14, y: at.y + 24 }, "External APIs"),
    rows.map((one) => one.node),
    number ? null : svg("text", { class: "line", x: at.x + 14, y: at.y + 56 }, "none is called"),
  );
  return {
    node,
    show(apis, troubled) {
      const listed = apis.length > MOST_APIS ? [...apis].sort((one, other) => WORST[breaker(one)] - WORST[breaker(other)]) : apis;
      const rest = apis.length > MOST_APIS ? listed.splice(MOST_APIS - 1) : [];
      listed.forEach((one, place) => rows[place].show(one, troubled(`api:${one.name}`)));
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
  const write = (title, called, told) => {
    say(figure, `${rate(called)}/s`);
    fit(name, title, at.width - 54 - figure.getComputedTextLength());
    fit(line, told, at.width - 46);
    say(all, `${title}, ${rate(called)} calls a second, ${told}`);
  };
  return {
    node,
    show(api, isTroubled) {
      node.dataset.node = `api:${api.name}`;
      node.dataset.breaker = breaker(api);
      node.dataset.standing = isTroubled ? "troubled" : "well";
      say(sign, SIGNS[breaker(api)]);
      write(api.name, calls(api), told(api));
      node.setAttribute("aria-label", `${api.name}: ${rate(calls(api))} calls a second, breaker ${breaker(api)}, ${told(api)}`);
    },
    sum(apis) {
      const down = apis.filter((one) => ["open", "half-open"].includes(one.breaker)).length;
      Object.assign(node.dataset, { node: "apis", breaker: down ? "open" : "closed", standing: down ? "troubled" : "well" });
      say(sign, "…");
      const names = apis.map((one) => one.name).join(", ");
      write(`${apis.length} more`, apis.reduce((total, one) => total + calls(one), 0), down ? `${down} of them down` : names);
    },
  };
}

function calls(api) {
  return Object.values(api.calls).reduce((sum, one) => sum + one, 0);
}

/** That of all workers; "unknown" when none is watched, or none answers. */
function breaker(api) {
  return api.breaker ?? "unknown";
}

function told(api) {
  if (api.breaker === null) return "no worker reports it";
  if (api.breaker !== "closed") return `breaker ${api.breaker}, ${count(api.held)} wait`;
  const failed = FAILED.reduce((sum, outcome) => sum + (api.calls[outcome] ?? 0), 0);
  if (api.p50_ms === null) return "no call lately";
  const slow = `p95 ${duration(api.p95_ms)}`;
  return failed > 0.05 ? `${rate(failed)} fail/s, ${slow}` : `p50 ${duration(api.p50_ms)}, ${slow}`;
}
