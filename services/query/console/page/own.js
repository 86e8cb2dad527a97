// Look-ups by names that come from outside: from addresses, records, and the service.

/** What a table has by a name of its own; what every object has (constructor, toString) is nobody's entry. */
export function own(table, name) {
  return Object.hasOwn(table, name) ? table[name] : undefined;
}
