// Dotted paths of fields.

/** The value at a path of a record; undefined where the record lacks it. */
export function valueAt(record, path) {
  return path.split(".").reduce((level, name) => (level !== null && typeof level === "object" ? level[name] : undefined), record);
}
