// The reads of named states.

import { getJson } from "./service.js";

/** Return the path of a state. */
export const statePath = (state) => `/v1/states/${encodeURIComponent(state)}`;

/** Return all readable states. */
export async function states(options) {
  return (await getJson("/v1/states", options)).states;
}

/** Return a page of the answers of keys: {items, after}; of the values only these fields, if some are named. */
export function page(state, { prefix = "", after = null, limit = 50, fields = "" } = {}, options) {
  const query = new URLSearchParams({ limit });
  if (prefix) query.set("prefix", prefix);
  if (after) query.set("after", after);
  if (fields) query.set("fields", fields);
  return getJson(`${statePath(state)}?${query}`, options);
}

/** Compares two answers about one key by window, epoch and version: negative if the first is the earlier. */
export function order(one, other) {
  const [start, otherStart] = [one.window_start ?? "", other.window_start ?? ""];
  if (start !== otherStart) return start < otherStart ? -1 : 1;
  return one.epoch - other.epoch || one.version - other.version;
}

/** Return the name of a version, unique within its key. */
export function versionName(one) {
  return `${one.window_start ?? ""} ${one.epoch} ${one.version}`;
}

/** Return the stored versions of a key, the latest first: of the window that contains `at`, if one is named. */
export async function versions(state, key, at, options) {
  const found = await getJson(`${keyPath(state, key)}/versions${at ? `?${new URLSearchParams({ at })}` : ""}`, options);
  return found.versions.sort((one, other) => order(other, one));
}

/** Return the path of a key. */
export function keyPath(state, key) {
  return `${statePath(state)}/${encodeURIComponent(key)}`;
}
