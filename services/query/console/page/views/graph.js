// The graph of enrichments, with the outcomes of their requests.

import { fit } from "../fit.js";
import { brief, clock, count, rate } from "../format.js";
import { head } from "../lists.js";
import { loop } from "../loop.js";
import { el, setText, svg } from "../node.js";
import { repeat } from "../repeat.js";
import { getJson } from "../service.js";
import { placeBoxes } from "./placing.js";

const EVERY_MS = 2000;
const STATUSES = ["result", "absence", "failure", "skipped"];
const SIGNS = { result: "✓", absence: "–", failure: "✗", skipped: "»" };

/** The view: {node, title, close()}. */
export function graph() {
  const stopping = new AbortController();
  const notice = el("p", { class: "muted", role: "status" });
  const drawing = svg("svg", { class: "graph", role: "img", "aria-label": "The graph of enrichments" });
  const body = el("tbody");
  const columns = ["enrichment", "needs", "calls/s", ...STATUSES.map((one) => `${SIGNS[one]} ${one}`)];
  const node = el(
    "div",
    {},
    el("h1", {}, "Enrichments"),
    notice,
    el("section", { class: "panel scroll graphed", tabindex: 0, "aria-label": "Graph" }, drawing),
    el("section", { class: "panel scroll" }, el("table", {}, head(columns), body)),
  );
  let drawn = null;
  let at = null;
  const look = async () => {
    try {
      const response = await getJson(loop.path("/v1/loop/graph"), { signal: stopping.signal });
      setText(notice, response.nodes.length ? "Each box is an enrichment, to the right of what it needs; a dashed line is an optional need. Counts are those since the workers started." : `${response.application} declares no enrichment.`);
      drawn ??= draw(drawing, response);
      response.nodes.forEach((one) => drawn.get(one.name)?.(one));
      body.replaceChildren(...response.nodes.map(row));
      at = Date.now();
    } catch (error) {
      if (!stopping.signal.aborted) setText(notice, at === null ? error.message : `${error.message}: stale since ${clock(at)}`);
    }
  };
  repeat(look, EVERY_MS, stopping.signal);
  return { node, title: "Enrichments", close: () => stopping.abort() };
}

function row(one) {
  return el(
    "tr",
    {},
    el("th", { scope: "row" }, one.name, el("span", { class: "muted small address" }, `${one.api} → ${one.gives}`)),
    el("td", { class: "muted" }, one.needs.map((need) => (one.optional.includes(need) ? `[${need}]` : need)).join(", ")),
    el("td", { class: "number" }, rate(one.calls)),
    STATUSES.map((status) => el("td", { class: "number" }, count(one.totals[status] ?? 0))),
  );
}

function draw(drawing, response) {
  const found = placeBoxes(response);
  drawing.setAttribute("viewBox", `0 0 ${found.width} ${found.height}`);
  drawing.style.width = `${found.width}px`;
  const boxes = response.nodes.map((one) => box(one, found.at.get(one.name)));
  const pills = response.fields.map((name) => pill(name, found.at.get(name)));
  drawing.replaceChildren(...found.lines.map(line), ...[...pills, ...boxes].map((one) => one.node));
  pills.forEach((one) => one.show());
  return new Map(response.nodes.map((one, number) => [one.name, boxes[number].show]));
}

/** A curve through these boxes, horizontal at both ends. */
function line({ through, isOptional }) {
  const middle = (place) => place.y + place.height / 2;
  let [x, y] = [through[0].x + through[0].width, middle(through[0])];
  let d = `M${x},${y}`;
  through.slice(1).forEach((place, number) => {
    const [half, down] = [(x + place.x) / 2, middle(place)];
    d += ` C${half},${y} ${half},${down} ${place.x},${down}`;
    if (number < through.length - 2) d += ` H${place.x + place.width}`;
    [x, y] = [place.x + place.width, down];
  });
  return svg("path", { class: `need ${isOptional ? "optional" : ""}`, d });
}

function pill(name, at) {
  const text = svg("text", { x: at.x + at.width / 2, y: at.y + at.height / 2 + 4, "text-anchor": "middle" });
  const node = svg("g", { class: "field" }, svg("title", {}, name), svg("rect", { x: at.x, y: at.y, width: at.width, height: at.height, rx: at.height / 2 }), text);
  return { node, show: () => fit(text, name, at.width - 20) };
}

function box(one, at) {
  const counts = svg("text", { class: "counts", x: at.x + 12, y: at.y + 60 });
  const calls = svg("text", { class: "rate", x: at.x + at.width - 12, y: at.y + 22, "text-anchor": "end" });
  const name = svg("text", { class: "name", x: at.x + 12, y: at.y + 22 });
  const line = svg("text", { class: "line", x: at.x + 12, y: at.y + 40 });
  const room = at.width - 24;
  const node = svg(
    "g",
    { class: "enrichment" },
    svg("title", {}, [one.name, `${one.api} → ${one.gives}`, ...one.notes].join(", ")),
    svg("rect", { x: at.x, y: at.y, width: at.width, height: at.height, rx: 10 }),
    name,
    line,
    counts,
    calls,
  );
  return {
    node,
    show(now) {
      node.dataset.breaker = now.breaker ?? "unknown";
      setText(calls, now.calls === null ? "" : `${rate(now.calls)}/s`);
      const texts = STATUSES.filter((status) => now.totals[status]).map((status) => `${SIGNS[status]} ${brief(now.totals[status])}`);
      fit(name, one.name, room - 6 - calls.getComputedTextLength());
      fit(line, `${one.api} → ${one.gives}`, room);
      fit(counts, texts.join("  ") || "no requests yet", room);
    },
  };
}
