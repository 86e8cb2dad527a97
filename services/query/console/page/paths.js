// Dotted paths of fields.

/** A path without the member that has the fields of a snapshot, or of a derived state. */
export const shortened = (path) => path.replace(/^(state|value)\./, "");

/** The value at a path of a record; undefined where the record lacks it. */
export function valueAt(record, path) {
  return path.split(".").reduce((level, name) => (level !== null && typeof level === "object" ? level[name] : undefined), record);
}
