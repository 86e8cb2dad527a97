// The fields of a state that extend over time, from its schema: series of samples, and coverage.

import { getJson } from "./service.js";
import { keyPath, states } from "./states.js";

const DEEPEST = 4;

/** Return the fields of a state: {every, series: [{path, rate, unit}], coverage: [{path, step}]}, times in seconds. */
export async function timelines(state, options) {
  const found = (await states(options)).find((one) => one.name === state);
  const coverage = (found?.coverage ?? []).map((one) => ({ path: one.path, step: one.step_s }));
  const series = [...leavesOf(found?.schema ?? {})].filter(([, one]) => one["x-rate-hz"] > 0);
  return { every: found?.every_s ?? null, coverage, series: series.map(([path, one]) => ({ path, rate: one["x-rate-hz"], unit: one["x-unit"] ?? "" })) };
}

/** Return the coverage of a key from one time up to another, in seconds since 1970: [{kind, start, end}]. */
export async function coverageOf(state, key, { path, from, to }, options) {
  const found = [];
  for (let next = iso(from); next !== null; ) {
    const query = new URLSearchParams({ from: next, to: iso(to), field: path });
    const part = await getJson(`${keyPath(state, key)}/coverage?${query}`, options);
    found.push(...part.intervals.map((one) => ({ kind: one.kind, start: seconds(one.from), end: seconds(one.to) })));
    next = part.next;
  }
  return found;
}

/** The samples of some windows of a key as one line: [times, values], the last `span` seconds of them.
 *
 * `windows` are {start, samples}. A time without a sample is null. Where windows overlap, any sample counts.
 */
export function joined(windows, rate, span) {
  const end = Math.max(...windows.map((one) => one.start + one.samples.length / rate));
  const size = Math.max(0, Math.round(span * rate));
  const first = Math.round(end * rate) - size;
  const values = new Array(size).fill(null);
  for (const { start, samples } of windows) {
    const offset = Math.round(start * rate) - first;
    for (let at = Math.max(0, -offset); at < samples.length && offset + at < size; at += 1) values[offset + at] ??= samples[at];
  }
  return [values.map((_, at) => (first + at) / rate), values];
}

/** The time of the first sample of some windows; they have at least one. */
export function firstSample(windows, rate) {
  return Math.min(...windows.map(({ start, samples }) => start + samples.findIndex((one) => one !== null) / rate));
}

/** The runs of times without a sample, from a time on: [[start, end]] in seconds. */
export function gapsIn([times, values], rate, since) {
  const gaps = [];
  let at = times.findIndex((one) => one > since - 0.5 / rate);
  for (; at >= 0 && at < values.length; at += 1) {
    if (values[at] !== null) continue;
    const first = at;
    while (at < values.length && values[at] === null) at += 1;
    gaps.push([times[first], times[first] + (at - first) / rate]);
  }
  return gaps;
}

/** The seconds since 1970 of a time in ISO 8601. */
export function seconds(text) {
  return new Date(text).getTime() / 1000;
}

/** The time in ISO 8601 of seconds since 1970. */
export function iso(time) {
  return new Date(time * 1000).toISOString();
}

/** The fields of a JSON Schema by their dotted paths: those that are no objects of known fields. */
function* leavesOf(schema, node = schema, path = "", depth = 0) {
  for (const one of alternatives(schema, node)) {
    if (!one.properties || depth === DEEPEST) yield [path, { ...one, ...node }];
    else for (const [name, inner] of Object.entries(one.properties)) yield* leavesOf(schema, inner, path ? `${path}.${name}` : name, depth + 1);
  }
}

function alternatives(schema, node) {
  if (node.$ref) return alternatives(schema, schema.$defs?.[node.$ref.split("/").at(-1)] ?? {});
  const choices = node.anyOf ?? node.oneOf;
  return choices ? choices.flatMap((one) => alternatives(schema, one)).filter((one) => one.type !== "null") : [node];
}
