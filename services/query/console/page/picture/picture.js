// The loop as a live picture.

import { svg } from "../node.js";
import { apiList } from "./apis.js";
import { card } from "./card.js";
import { nodeFigures } from "./figures.js";
import { layout } from "./layout.js";

const NODES = {
  devices: ["Devices", "people", 0],
  events: ["events", "topic", 1],
  job: ["Spark job", "part", 3],
  snapshots: ["snapshots", "topic", 1],
  query: ["Query service", "part", 3],
  dead_letters: ["dead letters", "topic", 0],
  feedback: ["feedback", "topic", 1],
  workers: ["Enrichment workers", "part", 3],
};
const NARROW_PX = 760;
const SLOWEST_S = 2.4;
const FASTEST_S = 0.35;

/** A picture that can be updated: {node, show(loop answer), close()}. `onChoose(name)` is called when a node is chosen. */
export function picture(onChoose) {
  const node = svg("svg", { class: "loop", role: "img", "aria-label": "The loop" });
  let drawn = null;
  let last = null;
  const draw = () => {
    const isWide = innerWidth > NARROW_PX;
    const apis = last.apis.length;
    const shape = `${isWide} ${last.components} ${apis}`;
    if (drawn?.shape === shape) return;
    drawn = { shape, ...parts(layout(isWide, last.components, apis), apis, node) };
  };
  const show = (now) => {
    last = now ?? last;
    if (!last) return;
    draw();
    update(drawn, last);
  };
  const resized = () => show(null);
  const chosen = (event) => {
    const name = event.target.closest?.("[data-node]")?.dataset.node;
    if (name && (event.type === "click" || event.key === "Enter")) onChoose(name);
  };
  addEventListener("resize", resized);
  node.addEventListener("click", chosen);
  node.addEventListener("keydown", chosen);
  return { node, show, close: () => removeEventListener("resize", resized) };
}

function parts(at, apis, node) {
  node.setAttribute("viewBox", `0 0 ${at.width} ${at.height}`);
  const edges = Object.fromEntries(Object.entries(at.edges).map(([name, d]) => [name, edge(name, d)]));
  const cards = Object.fromEntries(
    Object.entries(NODES)
      .filter(([name]) => name in at.nodes)
      .map(([name, [title, kind, lines]]) => {
        const short = at.nodes[name].width < 200 && name === "workers" ? "Workers" : title;
        return [name, card(name, short, kind, at.nodes[name], lines)];
      }),
  );
  const lists = at.nodes.apis ? [apiList(apis, at.nodes.apis)] : [];
  node.replaceChildren(
    tips(),
    svg("g", { class: "edges" }, Object.values(edges).map((one) => one.node)),
    ...at.labels.map(({ x, y, text }) => svg("text", { class: "words", x, y, "text-anchor": "middle" }, text)),
    ...Object.values(cards).map((one) => one.node),
    ...lists.map((one) => one.node),
  );
  return { edges, cards, lists };
}

function update({ edges, cards, lists }, now) {
  const reasonFor = (name) => now.health.reasons.find((reason) => reason.component === name);
  const processes = { job: now.job, workers: now.workers };
  for (const [name, one] of Object.entries(cards)) {
    const isAway = processes[name]?.length && processes[name].every((part) => !part.up);
    const reason = reasonFor(name);
    const status = isAway ? "unreachable" : reason ? "unhealthy" : "healthy";
    one.show({ ...nodeFigures[name](now), status, message: reason?.message });
  }
  lists.forEach((one) => one.show(now.apis, reasonFor));
  const flows = rates(now);
  for (const [name, one] of Object.entries(edges)) one.show(now.kafka ? flows[name] : null);
}

function rates(now) {
  const topic = (name) => now.topics[name]?.rate;
  const calls = now.apis.flatMap((api) => Object.values(api.calls)).reduce((sum, one) => sum + one, 0);
  return {
    devices: topic("events"),
    events: topic("events"),
    job: topic("snapshots"),
    query: topic("snapshots"),
    dead_letters: topic("dead_letters"),
    snapshots: topic("snapshots"),
    calls,
    answers: calls,
    results: topic("feedback"),
    feedback: topic("feedback"),
  };
}

/** An edge with dots that move along it, faster with a higher rate. */
function edge(name, d) {
  const dots = svg("path", { class: "dots", d });
  const kind = ["results", "feedback"].includes(name) ? "back" : ["calls", "answers"].includes(name) ? "calls" : "on";
  const node = svg("g", { class: `edge ${kind}` }, svg("path", { class: "bed", d, "marker-end": `url(#tip-${kind})` }), dots);
  return {
    node,
    show(number) {
      node.classList.toggle("idle", !number);
      if (!number) return;
      const seconds = Math.max(FASTEST_S, SLOWEST_S / (1 + Math.log10(1 + number)));
      const pace = `${seconds.toFixed(1)}s`;
      if (dots.style.animationDuration !== pace) dots.style.animationDuration = pace;
    },
  };
}

function tips() {
  return svg(
    "defs",
    {},
    ["on", "back", "calls"].map((kind) =>
      svg(
        "marker",
        { id: `tip-${kind}`, viewBox: "0 0 8 8", refX: 7, refY: 4, markerWidth: 9, markerHeight: 9, orient: "auto", markerUnits: "userSpaceOnUse" },
        svg("path", { class: `tip ${kind}`, d: "M0,0.5 L8,4 L0,7.5 z" }),
      ),
    ),
  );
}
