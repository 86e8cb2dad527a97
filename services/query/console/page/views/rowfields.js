// The fields of a row, from the JSON Schema of its table.

import { duration, value as written } from "../format.js";
import { el } from "../node.js";

const NUMBER = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
const ISO = /^(-)?P(?:(\d+(?:\.\d+)?)D)?(?:T(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?)?$/;
const LONGEST = 40;

/** The fields in their order: {name, kind, options, isRequired, isShort, hint}. */
export function fieldsOf(schema) {
  const required = schema.required ?? [];
  return Object.entries(schema.properties ?? {}).map(([name, members]) => {
    const found = resolved(members, schema);
    const options = found.enum ?? (found.const === undefined ? null : [found.const]);
    const kind = options ? "choice" : found.type === "boolean" ? "choice" : found.format === "duration" ? "duration" : (found.type ?? "json");
    const isShort = !["array", "object", "json"].includes(kind);
    const hints = [found.description, kind === "duration" ? "seconds, or ISO 8601" : null, bounds(found), required.includes(name) || members.default === undefined || members.default === null ? null : `default ${shortText({ kind }, members.default)}`];
    return { name, kind, options: options ?? (kind === "choice" ? [true, false] : null), isRequired: required.includes(name), isShort, hint: hints.filter(Boolean).join("; ") };
  });
}

/** A control for a field: {node, input, value(), textOf(value), set(value), fail(text)}. `value` throws for invalid JSON. */
export function control(field) {
  const id = `field-${field.name}`;
  const input = field.options
    ? el("select", { id }, el("option", { value: "" }, field.isRequired ? "choose…" : "default"), field.options.map((one) => el("option", { value: JSON.stringify(one) }, String(one))))
    : field.isShort
      ? el("input", { id, type: "text", autocomplete: "off", spellcheck: "false", inputmode: ["number", "integer"].includes(field.kind) ? "decimal" : null })
      : el("textarea", { id, rows: 3, spellcheck: "false" });
  const error = el("span", { class: "error", id: `${id}-error`, role: "alert", hidden: true });
  input.setAttribute("aria-describedby", error.id);
  const label = el("label", { for: id }, field.name, field.isRequired ? "" : el("span", { class: "muted" }, " optional"));
  return {
    node: el("div", { class: "field", "data-field": field.name }, label, input, error, field.hint ? el("span", { class: "muted small" }, field.hint) : null),
    input,
    value: () => parsed(field, input.value),
    textOf: (value) => inputText(field, value),
    set: (value) => (input.value = inputText(field, value)),
    fail: (text) => {
      error.hidden = !text;
      error.textContent = text ?? "";
      if (text) input.setAttribute("aria-invalid", "true");
      else input.removeAttribute("aria-invalid");
    },
  };
}

/** The value of a field in a cell of a table. */
export function shortText(field, value) {
  if (field.kind === "duration" && typeof value === "string" && seconds(value) !== null) return seconds(value) === 0 ? "0 s" : duration(1000 * seconds(value));
  const text = written(value);
  return text.length > LONGEST ? `${text.slice(0, LONGEST - 1)}…` : text;
}

function parsed(field, text) {
  if (text.trim() === "") return undefined;
  if (field.options || !field.isShort) return JSON.parse(text);
  const isNumeric = ["number", "integer", "duration"].includes(field.kind) && NUMBER.test(text.trim());
  return isNumeric ? Number(text) : text;
}

function inputText(field, value) {
  if (value === undefined || value === null) return "";
  if (field.options) return JSON.stringify(value);
  if (field.kind === "duration" && typeof value === "string" && seconds(value) !== null) return String(seconds(value));
  return field.isShort ? String(value) : JSON.stringify(value, null, 1);
}

/** The seconds of a duration without years and months; null for any other. */
function seconds(iso) {
  const found = ISO.exec(iso);
  if (!found) return null;
  const [days, hours, minutes, rest] = found.slice(2).map((part) => Number(part ?? 0));
  return (found[1] ? -1 : 1) * (days * 86_400 + hours * 3600 + minutes * 60 + rest);
}

function resolved(members, schema) {
  const choices = (members.anyOf ?? []).filter((one) => one.type !== "null");
  const found = choices.length === 1 ? { ...members, ...choices[0] } : members;
  const name = found.$ref?.match(/^#\/\$defs\/(.+)$/)?.[1];
  return name && schema.$defs?.[name] ? { ...schema.$defs[name], ...found } : found;
}

function bounds(members) {
  const texts = { minimum: "≥", exclusiveMinimum: ">", maximum: "≤", exclusiveMaximum: "<" };
  return Object.entries(texts).filter(([name]) => members[name] !== undefined).map(([name, sign]) => `${sign} ${members[name]}`).join(", ");
}
