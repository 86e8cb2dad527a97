// The rows of a reference table with author and time of each change; rules of alerts also with their alerts.

import { count, time, when } from "../format.js";
import { head, listIn } from "../lists.js";
import { el, setText } from "../node.js";
import { to } from "../route.js";
import { tables } from "../tables.js";
import { watchMany, watchStatus } from "../watch.js";
import { openAlerts } from "./openalerts.js";
import { fieldsOf, shortText } from "./rowfields.js";
import { ruleForm } from "./ruleform.js";

const ROW = "row ";
const ALERTS = "alerts ";
const DRAW_MS = 100;
const AGE_MS = 5000;

/** The view: {node, title, close()}. `chosen` is the name of a table; null for the first. */
export function rulesView(chosen) {
  const stopping = new AbortController();
  const list = el("ul", { class: "states tables", hidden: true });
  const notice = el("p", { class: "muted", role: "status" }, "Loading…");
  const place = el("div");
  const node = el("div", { class: "rules" }, el("h1", {}, "Rules"), list, notice, place);
  let panels = null;
  tables({ signal: stopping.signal }).then(
    (found) => {
      const table = chosen === null ? found[0] : found.find((one) => one.name === chosen);
      setText(notice, table ? "" : found.length ? `There is no table ${chosen}.` : "The application declares no reference tables, or the token reads none. Rules of alerts appear here.");
      notice.hidden = Boolean(table);
      list.hidden = found.length < 2 && Boolean(table);
      list.append(...found.map((one) => card(one, one === table)));
      if (!table) return;
      panels = tablePanels(table, stopping.signal);
      place.append(panels.node);
    },
    (error) => stopping.signal.aborted || setText(notice, error.message),
  );
  return { node, title: "Rules", close: () => (stopping.abort(), panels?.close()) };
}

function card(table, isChosen) {
  const what = table.alerts.length ? `rules of ${table.alerts.join(", ")}` : "rows";
  return el("li", {}, el("a", { class: "panel state", href: to("rules", table.name), "aria-current": isChosen ? "true" : null }, el("strong", {}, table.name), el("span", { class: "muted small" }, `${table.application}: ${what}`)));
}

function tablePanels(table, signal) {
  const isRules = table.alerts.length > 0;
  const [noun, status] = [isRules ? "rule" : "row", watchStatus()];
  const add = el("button", { class: "primary add", hidden: !table.writes }, `Add a ${noun}`);
  const notice = el("p", { class: "muted" });
  const body = el("tbody");
  const columns = fieldsOf(table.schema).filter((field) => field.isShort);
  const heads = [isRules ? "rule" : "key", ...columns.map((field) => field.name), ...(isRules ? ["open"] : []), "changed", "by", ""];
  const grid = el("table", { class: "keys" }, head(heads), body);
  const readOnly = el("p", { class: "muted small", hidden: table.writes }, `Read-only: this token has no right to write ${table.name}.`);
  const formPlace = el("div");
  const panel = el("section", { class: "panel", "aria-label": "Rules" }, el("div", { class: "bar" }, el("h2", {}, table.name), status.node, add), readOnly, notice, el("div", { class: "scroll" }, grid));
  const alerts = isRules ? openAlerts(table, signal) : null;
  const node = el("div", { class: isRules ? "columns" : "" }, el("div", {}, formPlace, panel), alerts?.node);
  const rows = new Map();
  const listed = listIn(body, (answer) => answer.key, (answer) => ruleRow(answer.key, columns, table, edit, isRules));
  let [form, timer, isCurrent] = [null, null, false];

  const edit = (key) => {
    form?.close();
    form = ruleForm(table, key === null ? null : rows.get(key), () => ((form = null), formPlace.replaceChildren()), signal);
    formPlace.replaceChildren(form.node);
    form.focus();
  };
  add.addEventListener("click", () => edit(null));
  const draw = () => {
    timer = null;
    listed.show([...rows.keys()].sort().map((key) => rows.get(key)), alerts);
    grid.hidden = !rows.size;
    setText(notice, !rows.size && isCurrent ? `There are no ${noun}s yet.` : "");
  };
  const soon = () => (timer ??= setTimeout(draw, DRAW_MS));
  const on = {
    ...status,
    begin: () => ((isCurrent = false), rows.clear(), alerts?.clear()),
    answer: (id, answer) => {
      if (id.startsWith(ROW)) (rows.set(answer.key, answer), form?.changed(answer.key, answer));
      else alerts.put(answer);
      soon();
    },
    gone: (id, state, key) => {
      if (id.startsWith(ROW)) (rows.delete(key), form?.changed(key, null));
      else alerts.remove(state, key);
      soon();
    },
    current: (id) => {
      if (id.startsWith(ROW)) isCurrent = true;
      else alerts.current();
      soon();
    },
    denied: (problem) => setText(notice, problem.detail ?? problem.title),
  };
  watchMany(subscriptions(table), on, signal);
  const aging = setInterval(draw, AGE_MS);
  return { node, close: () => (clearInterval(aging), clearTimeout(timer), form?.close()) };
}

/** Of each prefix of keys that the token reads: the rows, and the open alerts. */
function subscriptions(table) {
  return table.prefixes.flatMap((prefix, number) => [
    { id: `${ROW}${number}`, state: table.name, prefix },
    ...table.alerts.map((state) => ({ id: `${ALERTS}${number} ${state}`, state, prefix, where: { status: "open" } })),
  ]);
}

function ruleRow(key, columns, table, edit, isRules) {
  const cells = columns.map((field) => el("td", { class: "number" }));
  const [open, changed, author] = [el("td", { class: "number" }), el("td", { class: "muted" }), el("td")];
  const button = el("button", { class: "fold", onclick: () => edit(key), "aria-label": `Edit ${key}` }, table.writes ? "Edit" : "Show");
  const node = el("tr", { "data-key": key }, el("th", { scope: "row" }, el("a", { href: to("device", table.name, key), title: key }, key)), cells, isRules ? open : null, changed, author, el("td", {}, button));
  let version = null;
  return {
    node,
    show(answer, alerts) {
      const opened = alerts?.openOf(key);
      columns.forEach((field, number) => setText(cells[number], shortText(field, answer.value.value?.[field.name])));
      setText(open, count(opened ?? 0));
      open.classList.toggle("bad", Boolean(opened));
      setText(changed, when(answer.event_time));
      changed.title = `${time(answer.event_time)}, version ${answer.version}`;
      setText(author, answer.value.author ?? "–");
      if (version !== null && version !== answer.version) {
        node.classList.remove("flash");
        requestAnimationFrame(() => node.classList.add("flash"));
      }
      version = answer.version;
    },
  };
}
