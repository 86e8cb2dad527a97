// The colour theme: that of the system, unless another is chosen.

const NAME = "stateloop-theme";
const ORDER = ["auto", "light", "dark"];
const changed = new EventTarget();

/** Apply the stored choice. */
export function startTheme() {
  apply(localStorage.getItem(NAME) ?? "auto");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => changed.dispatchEvent(new Event("theme")));
}

/** Return the choice: auto, light or dark. */
export function theme() {
  return document.documentElement.dataset.theme ?? "auto";
}

/** Choose the next one. */
export function nextTheme() {
  const next = ORDER[(ORDER.indexOf(theme()) + 1) % ORDER.length];
  localStorage.setItem(NAME, next);
  apply(next);
  changed.dispatchEvent(new Event("theme"));
}

/** Call the listener after each change; return the function that removes it. */
export function onTheme(listener) {
  changed.addEventListener("theme", listener);
  return () => changed.removeEventListener("theme", listener);
}

/** Return the present colour of a custom property, as a canvas needs it. */
export function colour(property) {
  const probe = document.createElement("i");
  probe.style.color = `var(${property})`;
  document.body.append(probe);
  const found = getComputedStyle(probe).color;
  probe.remove();
  return found;
}

function apply(name) {
  document.documentElement.dataset.theme = ORDER.includes(name) ? name : "auto";
}
