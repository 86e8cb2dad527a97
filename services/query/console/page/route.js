// The view in the address: the part after #.

/** The views that the header links, with their names. */
export const VIEWS = [
  ["loop", "Loop"],
  ["states", "States"],
  ["rules", "Rules"],
  ["enrichments", "Enrichments"],
  ["dead_letters", "Dead letters"],
];

/** The route as {view, parts}: of #/device/flights/a%2Fb, view "device" and parts ["flights", "a/b"]; "loop" of none. */
export function route() {
  const [view, ...parts] = location.hash.replace(/^#\/?/, "").split("/").map(decoded);
  return { view: view || "loop", parts };
}

/** The address of a view. */
export function to(view, ...parts) {
  return `#/${[view, ...parts].map(encodeURIComponent).join("/")}`;
}

/** Show a view. */
export function go(view, ...parts) {
  location.hash = to(view, ...parts);
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
