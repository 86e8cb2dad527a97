// The reference tables: reads, writes, and the test of a rule.

import { getJson } from "./service.js";
import { keyPath } from "./states.js";

const JSON_TYPE = { "Content-Type": "application/json" };
const WAIT_S = 3;
const PAUSE_MS = 1000;
const TOO_MANY = 429;

/** Return the tables that the token reads, those with rules of alerts first. */
export async function tables(options) {
  return (await getJson("/v1/tables", options)).tables;
}

/** Write a row in place of this version; null: in place of none. Returns the new version. */
export async function putRow(table, key, row, version, options) {
  return (await getJson(rowPath(table, key), { ...options, method: "PUT", body: JSON.stringify(row), headers: { ...JSON_TYPE, ...onlyIf(version) } })).version;
}

/** Remove a row of this version. */
export async function removeRow(table, key, version, options) {
  await getJson(rowPath(table, key), { ...options, method: "DELETE", headers: onlyIf(version) });
}

/** Return the answer of a row of this version or a later one. Throws Problem for a row that was removed. */
export function readRow(table, key, version, options) {
  return getJson(`${keyPath(table, key)}?${new URLSearchParams({ min_version: version, wait: WAIT_S })}`, options);
}

/** Test a rule; calls `onProgress(results)` with the sums after each page. */
export async function testRule(table, key, row, onProgress, options) {
  const request = { ...options, method: "POST", body: JSON.stringify(row), headers: JSON_TYPE };
  let sums = null;
  let cursor = null;
  do {
    const query = cursor === null ? "" : `?${new URLSearchParams({ cursor })}`;
    const page = await patient(() => getJson(`${rowPath(table, key)}/test${query}`, request), options.signal);
    sums = sums === null ? page.results : sums.map((one, number) => joined(one, page.results[number]));
    cursor = page.cursor;
    onProgress(sums);
  } while (cursor !== null);
}

/** Repeat a request that the rate of the token rejects. */
async function patient(request, signal) {
  for (;;) {
    try {
      return await request();
    } catch (error) {
      if (error.status !== TOO_MANY) throw error;
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      signal.throwIfAborted();
    }
  }
}

function joined(one, other) {
  const found = { ...one, failure: one.failure ?? other.failure };
  for (const name of ["evaluated", "open", "pending", "failed"]) found[name] = one[name] + other[name];
  for (const name of ["opening", "closing"]) {
    found[name] = { count: one[name].count + other[name].count, keys: one[name].keys.length ? one[name].keys : other[name].keys };
  }
  return found;
}

function rowPath(table, key) {
  return `/v1/tables/${encodeURIComponent(table)}/${encodeURIComponent(key)}`;
}

function onlyIf(version) {
  return version === null ? { "If-None-Match": "*" } : { "If-Match": `"${version}"` };
}
