// The snapshots of an application, whose own state has its name.

import { getJson } from "./service.js";

/** Whether a value is a snapshot, and not of a derived state or another topic. */
export const isSnapshot = (value) => Boolean(value?.state && value?.device_id);

/** Return the enrichments of the application whose state this is; none if its graph cannot be read. */
export async function graphOf(state, options) {
  try {
    return (await getJson(`/v1/loop/graph?${new URLSearchParams({ application: state })}`, options)).nodes;
  } catch {
    return []; // the results are shown without it
  }
}
