// The differences between two values of a state.

const DEEPEST = 3;

/** The leaves of a value by their dotted paths, in order. A deeper object is one leaf. */
export function leaves(value, path = "", depth = 0, found = new Map()) {
  const nested = value !== null && typeof value === "object" && !Array.isArray(value) && depth < DEEPEST;
  if (!nested || Object.keys(value).length === 0) return path ? found.set(path, value) : found;
  for (const [name, inner] of Object.entries(value)) leaves(inner, path ? `${path}.${name}` : name, depth + 1, found);
  return found;
}

/** The paths at which two values differ: [{path, before, after}]; undefined is for an absent value. */
export function changes(before, after) {
  const [old, now] = [leaves(before), leaves(after)];
  const paths = new Set([...old.keys(), ...now.keys()]);
  return [...paths]
    .filter((path) => JSON.stringify(old.get(path)) !== JSON.stringify(now.get(path)))
    .map((path) => ({ path, before: old.get(path), after: now.get(path) }));
}
