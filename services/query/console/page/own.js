// Look-ups by untrusted names: from addresses, records, and the service.

/** Return an own property of a table, never an inherited one such as constructor or toString. */
export function own(table, name) {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
