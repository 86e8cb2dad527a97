// The layout of the picture of the loop, for a wide and a narrow screen. Units are those of the SVG.

/** The height of an API's row, and the maximum number of rows. */
export const ROW = 46;
export const MOST_APIS = 6;

const MARGIN = 12;
/** The two nodes of each edge. */
const ENDS = {
  devices: ["devices", "events"],
  events: ["events", "job"],
  job: ["job", "snapshots"],
  query: ["snapshots", "query"],
  dead_letters: ["job", "dead_letters"],
  snapshots: ["snapshots", "workers"],
  calls: ["workers", "apis"],
  answers: ["apis", "workers"],
  results: ["workers", "feedback"],
  feedback: ["feedback", "job"],
};
/** The distance of two opposite edges of a narrow screen from the middle of their boxes. */
const ASIDE = { calls: -20, answers: 20 };

/** The boxes of these components, the edges between them, and labels: {width, height, nodes, edges, labels}. `apis` is the number of APIs. */
export function layout(isWide, components, apis) {
  const list = Math.min(apis, MOST_APIS) * ROW + 38;
  const has = (name) => components.includes(name);
  const all = isWide ? wide(list) : tall(list, has);
  const nodes = only(all.nodes, has);
  const edges = only(all.edges, (name) => ENDS[name].every(has));
  const labels = all.labels.filter((one) => one.edge in edges);
  const height = Math.max(...Object.values(nodes).map((one) => one.y + one.height)) + MARGIN;
  return { width: all.width, height, nodes, edges, labels };
}

function wide(list) {
  const nodes = {
    devices: box(14, 48, 124, 84),
    events: box(184, 48, 146, 84),
    job: box(392, 22, 236, 142),
    snapshots: box(694, 48, 146, 84),
    query: box(910, 22, 272, 136),
    dead_letters: box(436, 208, 148, 62),
    feedback: box(184, 294, 146, 84),
    workers: box(648, 268, 238, 136),
    apis: box(948, Math.max(188, 336 - list / 2), 234, list),
  };
  const edges = {
    devices: "M138,78 H184",
    events: "M330,78 H392",
    job: "M628,90 H694",
    query: "M840,90 H910",
    dead_letters: "M510,164 V208",
    snapshots: "M767,132 V268",
    calls: "M886,320 H948",
    answers: "M948,352 H886",
    results: "M648,336 H330",
    feedback: "M257,294 V196 Q257,146 307,146 H392",
  };
  const labels = [{ edge: "results", x: 489, y: 324, text: "results, merged into the same state" }];
  return { width: 1196, nodes, edges, labels };
}

/** The boxes of snapshots and query extend to the left edge if the component that stands there is missing. */
function tall(list, has) {
  const snapshots = has("feedback") ? 123 : 6;
  const query = has("workers") ? 181 : 6;
  const nodes = {
    devices: box(110, 6, 136, 58),
    events: box(110, 94, 136, 84),
    job: box(6, 210, 340, 132),
    feedback: box(6, 380, 106, 84),
    snapshots: box(snapshots, 380, 229 - snapshots, 84),
    dead_letters: box(240, 380, 106, 62),
    workers: box(6, 504, 165, 136),
    query: box(query, 504, 346 - query, 136),
    apis: box(6, 680, 340, list),
  };
  const edge = ([name, [from, to]]) => [name, vertical(nodes[from], nodes[to], ASIDE[name])];
  return { width: 360, nodes, edges: Object.fromEntries(Object.entries(ENDS).map(edge)), labels: [] };
}

/** The edge between two boxes, one above the other, in the middle of the width that they share. */
function vertical(from, to, aside = 0) {
  const left = Math.max(from.x, to.x);
  const right = Math.min(from.x + from.width, to.x + to.width);
  const [begin, end] = from.y < to.y ? [from.y + from.height, to.y] : [from.y, to.y + to.height];
  return `M${(left + right) / 2 + aside},${begin} V${end}`;
}

function only(table, condition) {
  return Object.fromEntries(Object.entries(table).filter(([name]) => condition(name)));
}

function box(x, y, width, height) {
  return { x, y, width, height };
}
