// The search for a key, with suggestions: a combobox as WAI-ARIA's patterns have it.

import { el } from "./node.js";
import { go } from "./route.js";
import { page, states } from "./states.js";

const WAIT_MS = 120;
const MOST = 10;
/** Without the values, which may be large. */
const KEY_ALONE = "device_id";

/** The form: {node, focus()}. */
export function search() {
  const list = el("ul", { id: "suggestions", role: "listbox", "aria-label": "Keys", hidden: true });
  const input = el("input", {
    type: "search", id: "search", role: "combobox", placeholder: "Find a device by its key", autocomplete: "off", spellcheck: "false",
    "aria-label": "Find a device by its key", "aria-controls": "suggestions", "aria-expanded": "false", "aria-autocomplete": "list", "aria-keyshortcuts": "/",
  });
  const chosen = el("select", { "aria-label": "State to search in", hidden: true });
  const node = el("form", { class: "search", role: "search", onsubmit: (event) => event.preventDefault() }, chosen, el("div", { class: "box" }, input, el("kbd", { "aria-hidden": "true" }, "/"), list));
  const box = new Suggestions(input, list, chosen);
  input.addEventListener("input", () => box.schedule());
  input.addEventListener("focus", () => (box.fill(), box.schedule()));
  input.addEventListener("keydown", (event) => box.key(event));
  // A click on a suggestion comes first, and a return to the field keeps them.
  input.addEventListener("blur", () => setTimeout(() => document.activeElement === input || box.close(), 150));
  return { node, focus: () => (input.focus(), input.select()) };
}

class Suggestions {
  #input; #list; #chosen;
  #keys = [];
  #at = -1;
  #timer = null;
  #request = null;

  constructor(input, list, chosen) {
    [this.#input, this.#list, this.#chosen] = [input, list, chosen];
  }

  async fill() {
    if (this.#chosen.options.length) return;
    const response = await states().catch(() => []);
    if (this.#chosen.options.length) return;
    this.#chosen.append(...response.map((one) => el("option", { value: one.name }, one.name)));
    this.#chosen.hidden = response.length < 2;
  }

  schedule() {
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => this.#load(), WAIT_MS);
  }

  close() {
    this.#list.hidden = true;
    this.#at = -1;
    this.#input.setAttribute("aria-expanded", "false");
    this.#input.removeAttribute("aria-activedescendant");
  }

  key(event) {
    const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
    if (step && !this.#list.hidden) {
      event.preventDefault();
      this.#move(step);
    } else if (event.key === "Enter") {
      event.preventDefault();
      this.#go(this.#keys[this.#at] ?? this.#input.value.trim());
    } else if (event.key === "Escape") {
      event.preventDefault();
      if (this.#list.hidden) this.#input.blur();
      this.close();
    }
  }

  async #load() {
    this.#request?.abort();
    this.#request = new AbortController();
    await this.fill();
    const state = this.#chosen.value;
    if (!state || document.activeElement !== this.#input) return;
    try {
      const found = await page(state, { prefix: this.#input.value.trim(), limit: MOST, fields: KEY_ALONE }, { signal: this.#request.signal });
      this.#show(found.items.map((one) => one.key));
    } catch (error) {
      if (error.name !== "AbortError") this.#showMessage(error.message);
    }
  }

  #show(keys) {
    if (document.activeElement !== this.#input) return;
    this.#keys = keys;
    this.#at = -1;
    this.#input.removeAttribute("aria-activedescendant");
    if (!keys.length) return this.#showMessage(this.#input.value ? "No key has this prefix. Enter looks it up anyway." : "There are no keys yet.");
    this.#list.replaceChildren(...keys.map((key, number) => el("li", { role: "option", id: `suggestion-${number}`, "aria-selected": "false", onmousedown: () => this.#go(key) }, key)));
    this.#open();
  }

  #showMessage(text) {
    this.#keys = [];
    this.#list.replaceChildren(el("li", { class: "muted", role: "option", "aria-disabled": "true" }, text));
    this.#open();
  }

  #open() {
    this.#list.hidden = false;
    this.#input.setAttribute("aria-expanded", "true");
  }

  #move(step) {
    const number = this.#keys.length;
    if (!number) return;
    this.#at = this.#at < 0 && step < 0 ? number - 1 : (this.#at + step + number) % number;
    [...this.#list.children].forEach((one, at) => one.setAttribute("aria-selected", String(at === this.#at)));
    this.#list.children[this.#at].scrollIntoView({ block: "nearest" });
    this.#input.setAttribute("aria-activedescendant", `suggestion-${this.#at}`);
  }

  #go(key) {
    if (!key) return;
    this.close();
    this.#input.blur();
    go("device", this.#chosen.value, key);
  }
}
