// The layout of the graph of enrichments, after Sugiyama: boxes in columns, each ordered by its neighbours.
// A line that crosses a column gets an empty box there, so that it does not cross other boxes.

const BOX = { width: 214, height: 74 };
const PILL = { width: 148, height: 28 };
const GAP = { width: 0, height: 4 };
const ACROSS = 64;
const DOWN = 16;
const MARGIN = 14;
const SWEEPS = 12;

/** {width, height, at: boxes by name, lines: [{through: boxes, isOptional}]}. A field is in the column before its first need. */
export function placeBoxes({ nodes, fields }) {
  const columnOf = columnsBy(nodes, fields);
  const lines = nodes.flatMap((one) => one.needs.filter((need) => need !== one.name && columnOf.has(need)).map((need) => route(need, one, columnOf)));
  const columns = filled(columnOf, lines);
  const joined = joins(lines);
  for (let sweep = 0; sweep < SWEEPS; sweep += 1) for (const column of columns) sort(column, columns, joined);
  const steps = new Set(nodes.map((one) => one.name));
  const isField = new Set(fields);
  const size = (name) => (steps.has(name) ? BOX : isField.has(name) ? PILL : GAP);
  const found = positioned(columns, size);
  const through = ({ names, isOptional }) => ({ through: names.map((name) => found.at.get(name)), isOptional });
  return { ...found, lines: lines.map(through) };
}

function columnsBy(nodes, fields) {
  const found = new Map(nodes.map((one) => [one.name, one.step]));
  const first = (field) => Math.min(...nodes.filter((one) => one.needs.includes(field)).map((one) => one.step));
  for (const field of fields) found.set(field, first(field) - 1);
  return found;
}

function route(need, one, columnOf) {
  const between = [];
  for (let column = columnOf.get(need) + 1; column < one.step; column += 1) between.push(`${need}→${one.name}@${column}`);
  return { names: [need, ...between, one.name], begin: columnOf.get(need), isOptional: one.optional.includes(need) };
}

function filled(columnOf, lines) {
  const columns = [];
  const put = (name, column) => (columns[column] ??= []).push(name);
  for (const [name, column] of columnOf) put(name, column);
  for (const { names, begin } of lines) names.slice(1, -1).forEach((name, number) => put(name, begin + 1 + number));
  return Array.from(columns, (column) => column ?? []);
}

function joins(lines) {
  const found = new Map();
  const join = (one, other) => found.set(one, [...(found.get(one) ?? []), other]);
  for (const { names } of lines) names.slice(1).forEach((name, number) => (join(name, names[number]), join(names[number], name)));
  return found;
}

function sort(column, columns, joined) {
  const rank = new Map(columns.flatMap((one) => one.map((name, number) => [name, (number + 0.5) / one.length])));
  const mean = new Map(column.map((name) => [name, average((joined.get(name) ?? []).map((other) => rank.get(other)), rank.get(name))]));
  column.sort((one, other) => mean.get(one) - mean.get(other));
}

function positioned(columns, size) {
  const at = new Map();
  const heightOf = (column) => column.reduce((sum, name) => sum + size(name).height + DOWN, -DOWN);
  const tall = Math.max(...columns.map(heightOf), 0);
  let x = MARGIN;
  for (const column of columns) {
    const wide = Math.max(...column.map((name) => size(name).width), 0);
    const free = column.length > 1 ? Math.min((tall - heightOf(column)) / (column.length - 1), 40) : 0;
    let y = MARGIN + (tall - heightOf(column) - free * (column.length - 1)) / 2;
    for (const name of column) {
      at.set(name, { x, y, ...size(name), ...(size(name) === GAP ? { width: wide } : { x: x + wide - size(name).width }) });
      y += size(name).height + DOWN + free;
    }
    x += wide + ACROSS;
  }
  return { width: Math.max(x - ACROSS + MARGIN, 320), height: tall + 2 * MARGIN, at };
}

function average(numbers, otherwise) {
  return numbers.length ? numbers.reduce((sum, one) => sum + one, 0) / numbers.length : otherwise;
}
