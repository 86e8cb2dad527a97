// The layout of the picture of the loop, for a wide and a narrow screen. Units are those of the SVG.

/** The height of an API's row, and the maximum number of rows. */
export const ROW = 46;
export const MOST_APIS = 6;

/** The boxes of the nodes, the edges between them, and labels: {width, height, nodes, edges, labels}. `apis` is their number. */
export function layout(isWide, apis) {
  const list = Math.max(1, Math.min(apis, MOST_APIS)) * ROW + 38;
  return isWide ? wide(list) : tall(list);
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
  const labels = [{ x: 489, y: 324, text: "results, merged into the same state" }];
  return { width: 1196, height: Math.max(418, nodes.apis.y + list + 12), nodes, edges, labels };
}

function tall(list) {
  const nodes = {
    devices: box(110, 6, 136, 58),
    events: box(110, 94, 136, 84),
    job: box(6, 210, 340, 132),
    feedback: box(6, 380, 106, 84),
    snapshots: box(123, 380, 106, 84),
    dead_letters: box(240, 380, 106, 62),
    workers: box(6, 504, 165, 136),
    query: box(181, 504, 165, 136),
    apis: box(6, 680, 340, list),
  };
  const edges = {
    devices: "M178,64 V94",
    events: "M178,178 V210",
    job: "M176,342 V380",
    dead_letters: "M293,342 V380",
    feedback: "M59,380 V342",
    results: "M59,504 V464",
    snapshots: "M150,464 V504",
    query: "M205,464 V504",
    calls: "M70,640 V680",
    answers: "M110,680 V640",
  };
  return { width: 360, height: nodes.apis.y + list + 8, nodes, edges, labels: [] };
}

function box(x, y, width, height) {
  return { x, y, width, height };
}
