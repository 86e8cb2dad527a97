// The keys that the page knows, and what they do.

import { address } from "./applications.js";
import { el, terms } from "./node.js";
import { own } from "./own.js";
import { VIEWS } from "./route.js";
import { nextTheme } from "./theme.js";

const KEYS = [
  ["/", "Find a device by its key"],
  ["↓ ↑", "Through suggestions, and through the rows of a table"],
  ["Enter", "Open what is chosen"],
  ["Esc", "Close what is open; from a device back to its state"],
  [VIEWS.map((_, number) => number + 1).join(" "), VIEWS.map(([, name]) => name).join(", ")],
  ["t", "Other colours: as the system has them, light, dark"],
  ["?", "This help"],
];
let dialog = null;

/** Show the keys, or hide them. */
export function toggleHelp() {
  if (dialog?.open) return dialog.close();
  dialog ??= el(
    "dialog",
    { class: "help", "aria-label": "Keys" },
    el("h2", {}, "Keys"),
    el("dl", {}, terms(KEYS.map(([key, does]) => [key.split(" ").map((one) => el("kbd", {}, one)), does]))),
    el("form", { method: "dialog", class: "actions" }, el("button", { class: "primary" }, "Close")),
  );
  document.body.append(dialog);
  return dialog.showModal();
}

/** Let keys work on the whole page; those typed into a field are the field's. */
export function listenToKeys(focusSearch, goBack) {
  addEventListener("keydown", (event) => {
    const isTyping = event.target.closest?.("input, select, textarea, dialog[open]");
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const known = { "/": focusSearch, "?": toggleHelp, t: nextTheme, Escape: goBack };
    if (own(known, event.key)) {
      event.preventDefault();
      known[event.key]();
    } else if (VIEWS[event.key - 1]) location.hash = address(VIEWS[event.key - 1][0]);
  });
}
