// The user's token: stored for this tab, and requested when the service requires one.

import { el } from "./node.js";

const NAME = "stateloop-token";
const changed = new EventTarget();
let dialog = null;

/** The header that shows the token; nothing without one. */
export function authorization() {
  const token = sessionStorage.getItem(NAME);
  return token ? { Authorization: `Bearer ${token}` } : {};
}

/** The subprotocols of a WebSocket, whose headers a page cannot set: with the token, if there is one. */
export function subprotocols() {
  const token = sessionStorage.getItem(NAME);
  if (!token) return ["stateloop.v1"];
  const bytes = String.fromCharCode(...new TextEncoder().encode(token));
  return ["stateloop.v1", `stateloop.bearer.${btoa(bytes).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "")}`];
}

/** Call back whenever another token was entered. */
export function onToken(listener) {
  changed.addEventListener("token", listener);
}

/** Show the dialog for a token. `why` is the message of the service. */
export function requestToken(why) {
  if (dialog?.open) return;
  const input = el("input", { type: "password", id: "token", autocomplete: "off", required: true, spellcheck: "false" });
  const form = el(
    "form",
    { method: "dialog", onsubmit: () => enter(input.value.trim()) },
    el("h2", {}, "A token is needed"),
    el("p", { class: "muted" }, why),
    el("label", { for: "token" }, "Token"),
    input,
    el("p", { class: "muted small" }, "The token is stored in this tab until you close it."),
    el("div", { class: "actions" }, el("button", { class: "primary" }, "Use it")),
  );
  dialog?.remove();
  dialog = el("dialog", { "aria-label": "Token" }, form);
  document.body.append(dialog);
  dialog.showModal();
}

/** Forget the token. */
export function forgetToken() {
  sessionStorage.removeItem(NAME);
}

function enter(token) {
  if (!token) return;
  sessionStorage.setItem(NAME, token);
  changed.dispatchEvent(new Event("token"));
}
