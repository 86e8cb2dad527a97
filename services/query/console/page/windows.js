// The reads of windowed states, and the names of windows.

import { time } from "./format.js";
import { el, setText } from "./node.js";
import { getJson } from "./service.js";
import { keyPath, page, statePath } from "./states.js";

const ROUNDS = 8;
const FIRST_KEYS = 50;
const DAY_MS = 86_400_000;
const UNITS = [[86_400, "d"], [3600, "h"], [60, "min"], [1, "s"]];
/** Without the values, which may be large. */
const KEY_ALONE = "device_id";

/** Return whether the answer is about a window: those of states with a lifetime have no end. */
export function isOfWindow(answer) {
  return Boolean(answer?.window_end);
}

/** Return the windows of a key that begin before `to`, in their order: {windows, older}, the last `limit` of them. */
export async function windowsOf(state, key, { to = null, limit, fields = "" }, options) {
  const query = new URLSearchParams({ order: "desc", limit });
  if (to) query.set("to", to);
  if (fields) query.set("fields", fields);
  const response = await getJson(`${keyPath(state, key)}/windows?${query}`, options);
  return { windows: [...response.windows].reverse(), older: response.cursor !== null };
}

/** Return the first keys of a window: {start, end, isOpen, answers}. With `orderBy`, those with the greatest numbers. */
export async function keysOf(state, time, { orderBy = "", limit, fields = "" }, options) {
  const found = { start: null, end: null, isOpen: null, answers: [] };
  let cursor = null;
  for (let round = 0; round < ROUNDS && found.answers.length < limit; round += 1) {
    const query = new URLSearchParams({ limit: limit - found.answers.length });
    if (orderBy) query.set("order_by", `-${orderBy}`);
    if (fields) query.set("fields", fields);
    if (cursor !== null) query.set("cursor", cursor);
    const response = await getJson(`${statePath(state)}/windows/${encodeURIComponent(time)}?${query}`, options);
    found.answers.push(...response.items);
    if (found.start === null) [found.start, found.end, found.isOpen] = [response.window_start, response.window_end, response.is_open];
    cursor = response.cursor;
    if (cursor === null) break;
  }
  return found;
}

/** Return the start of the newest window of a state: the present one, or in a replay that of the first keys; null if there is none. */
export async function newestWindow(state, options) {
  const present = await keysOf(state, "now", { limit: 1, fields: KEY_ALONE }, options);
  if (present.start !== null) return present.start;
  const first = await page(state, { limit: FIRST_KEYS, fields: KEY_ALONE }, options);
  return first.items.map((one) => one.window_start ?? "").sort().at(-1) || null;
}

/** The name of a window, by the reader's clock: a day, or its hours. */
export function windowName(start, end) {
  const [first, last] = [new Date(start), new Date(end)];
  const isWhole = [first, last].every((one) => one.getSeconds() === 0);
  const [from, to] = [first, last].map((one) => one.toTimeString().slice(0, isWhole ? 5 : 8));
  const isDay = last - first === DAY_MS && from === "00:00";
  if (isDay) return day(first);
  return day(first) === day(last) ? `${day(first)} ${from} – ${to}` : `${day(first)} ${from} – ${day(last)} ${to}`;
}

/** The size of windows in the largest unit that it is a whole number of. */
export function windowSize(seconds) {
  const [size, unit] = UNITS.find(([size]) => seconds % size === 0) ?? [1, "s"];
  return `${seconds / size} ${unit}`;
}

/** A mark of whether a window is open: {node, show(isOpen)}; without a value it is hidden. */
export function openMark() {
  const node = el("span", { class: "window-status", hidden: true });
  return {
    node,
    show(isOpen) {
      node.hidden = typeof isOpen !== "boolean";
      node.dataset.open = String(isOpen);
      node.title = isOpen ? "Records of this window may still arrive" : "The window is closed: its values are final";
      setText(node, isOpen ? "open window" : "closed window");
    },
  };
}

function day(date) {
  return time(date).slice(0, 10);
}
