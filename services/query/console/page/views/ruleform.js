// The form of one row: its fields, the test of a rule, and conflicts with changes of another user.

import { time } from "../format.js";
import { el, setText } from "../node.js";
import { putRow, readRow, removeRow } from "../tables.js";
import { control, fieldsOf } from "./rowfields.js";
import { ruleTest } from "./ruletest.js";

const CONFLICT = 412;
const REJECTED = 400;

/** The form: {node, focus(), changed(key, answer or null), close()}. `answer` is the row to edit; null for a new one. */
export function ruleForm(table, answer, close, signal) {
  const stopping = new AbortController();
  const options = { signal: AbortSignal.any([signal, stopping.signal]) };
  const isRule = table.alerts.length > 0;
  const base = { key: answer?.key ?? null, version: answer?.version ?? null };
  const name = el("input", { id: "row-key", type: "text", autocomplete: "off", spellcheck: "false", required: true });
  const nameError = el("span", { class: "error", role: "alert", hidden: true });
  const controls = new Map(fieldsOf(table.schema).map((field) => [field.name, control(field)]));
  const notice = el("p", { class: "notice", role: "alert", hidden: true });
  const conflict = el("div", { class: "notice conflict", role: "alert", hidden: true });
  const test = isRule ? ruleTest(table, options) : null;
  const buttons = {
    save: el("button", { class: "primary", type: "submit" }, "Save"),
    test: el("button", { type: "button", class: "test" }, "Test"),
    remove: el("button", { type: "button", class: "danger" }, "Remove"),
    close: el("button", { type: "button" }, "Close"),
  };
  const title = base.key === null ? `New ${isRule ? "rule" : "row"}` : base.key;
  const form = el(
    "form",
    { class: "row-form", novalidate: true },
    base.key === null ? el("div", { class: "field", "data-field": "" }, el("label", { for: name.id }, "name"), name, nameError, el("span", { class: "muted small" }, `the key in ${table.name}`)) : null,
    [...controls.values()].map((one) => one.node),
  );
  const actions = el("div", { class: "actions" }, base.key === null ? null : buttons.remove, el("span", { class: "space" }), buttons.close, isRule ? buttons.test : null, buttons.save);
  form.append(notice, conflict, actions);
  const node = el("section", { class: "panel editing", "aria-label": title }, el("h2", {}, title), form, test?.node);

  const fill = (row) => {
    for (const [field, one] of controls) (one.set(row?.[field]), one.fail(null));
  };
  const value = () => {
    const row = {};
    let isWhole = true;
    for (const [field, one] of controls) {
      one.fail(null);
      try {
        const found = one.value();
        if (found !== undefined) row[field] = found;
      } catch (error) {
        one.fail(error.message);
        isWhole = false;
      }
    }
    return isWhole ? row : null;
  };
  const key = () => base.key ?? name.value;
  const showNotice = (text) => (setText(notice, text ?? ""), (notice.hidden = !text));
  const begin = () => {
    showNotice(null);
    nameError.hidden = true;
    if (key() !== "") return true;
    nameError.hidden = false;
    setText(nameError, "A name is required");
    return false;
  };
  const settle = () => {
    conflict.hidden = true;
    setText(buttons.remove, "Remove");
  };
  const failed = async (error) => {
    if (options.signal.aborted) return;
    if (error.status === CONFLICT) return showConflict(await present(error.body.version));
    const fields = error.status === REJECTED ? (error.body.fields ?? []) : [];
    const controlOf = (one) => controls.get(one.field.split(".")[0]);
    for (const one of fields) controlOf(one)?.fail(one.detail);
    const others = fields.filter((one) => !controlOf(one));
    if (!fields.length || others.length) showNotice(others.map((one) => [one.field, one.detail].filter(Boolean).join(": ")).join("; ") || error.message);
    form.querySelector("[aria-invalid]")?.focus();
  };
  const present = (version) => (version === null ? null : readRow(table.name, key(), version, options).catch(() => null));
  const showConflict = (other) => {
    const author = other?.value.author ?? "another user";
    const what = other === null ? `${key()} was removed meanwhile.` : `${author} changed ${key()} at ${time(other.event_time)}, after you opened it.`;
    const differ = other === null ? [] : [...controls].filter(([field, one]) => one.input.value.trim() !== "" && one.input.value.trim() !== one.textOf(other.value.value[field]));
    conflict.replaceChildren(
      el("p", {}, el("strong", {}, base.version === null && other ? `There is a row ${key()} already, by ${author}.` : what)),
      el("ul", { class: "differences" }, differ.map(([field, one]) => el("li", {}, el("code", {}, field), " ", `theirs ${one.textOf(other.value.value[field]) || "empty"}, yours ${one.input.value}`))),
      el("div", { class: "actions" }, other === null ? null : el("button", { type: "button", onclick: () => take(other, true) }, "Load their version"), el("button", { type: "button", onclick: () => take(other, false) }, "Keep mine")),
    );
    conflict.hidden = false;
  };
  const take = (other, isLoaded) => {
    base.version = other?.version ?? null;
    if (isLoaded) (fill(other.value.value), test?.clear());
    settle();
    buttons.save.focus();
  };
  const busy = async (action) => {
    for (const one of Object.values(buttons)) one.disabled = one !== buttons.close;
    try {
      await action();
    } catch (error) {
      await failed(error);
    } finally {
      for (const one of Object.values(buttons)) one.disabled = false;
    }
  };

  fill(answer?.value.value);
  if (!table.writes) for (const one of [buttons.save, buttons.test, buttons.remove]) one.hidden = true;
  if (!table.writes) for (const one of controls.values()) one.input.disabled = true;
  form.addEventListener("input", () => (test?.clear(), showNotice(null)));
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    const row = begin() ? value() : null;
    if (row === null || !table.writes) return;
    busy(async () => {
      base.version = await putRow(table.name, key(), row, base.version, options);
      end();
    });
  });
  buttons.test.addEventListener("click", () => {
    const row = begin() ? value() : null;
    if (row !== null) busy(() => test.run(key(), row));
  });
  buttons.remove.addEventListener("click", () => {
    if (buttons.remove.textContent === "Remove") return setText(buttons.remove, "Remove it?");
    return busy(async () => {
      await removeRow(table.name, base.key, base.version, options);
      end();
    });
  });
  buttons.close.addEventListener("click", () => end());
  const end = () => (stopping.abort(), close());
  return {
    node,
    focus: () => (base.key === null ? name : [...controls.values()][0]?.input)?.focus(),
    changed: (changedKey, other) => {
      const isNewer = other === null ? base.version !== null : other.version > (base.version ?? Infinity);
      if (changedKey === base.key && isNewer && !buttons.save.disabled) showConflict(other);
    },
    close: () => stopping.abort(),
  };
}
