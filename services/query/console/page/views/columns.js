// The columns of a table of keys: the fields of their state that are short.

import { stateOf } from "./device.js";
import { value as written } from "../format.js";

const LONGEST = 24;
const WIDEST_CELL = 28;
const LONG_TIME = /^\d{4}-\d\d-\d\dT/;

/** The fields that are one short value: those that most keys have. */
export function chosenColumns(answers, most) {
  const seen = new Map();
  for (const one of answers) {
    for (const [name, value] of Object.entries(stateOf(one.value) ?? {})) {
      const isShort = (typeof value === "string" && value.length <= LONGEST && !LONG_TIME.test(value)) || typeof value === "number" || typeof value === "boolean";
      if (isShort) seen.set(name, (seen.get(name) ?? 0) + 1);
    }
  }
  return [...seen].filter(([, number]) => 2 * number >= answers.length).slice(0, most).map(([name]) => name);
}

/** The text of a value in a table. */
export function cell(value) {
  const text = written(value);
  return text.length > WIDEST_CELL ? `${text.slice(0, WIDEST_CELL - 1)}…` : text;
}
