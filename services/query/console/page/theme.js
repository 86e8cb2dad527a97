// Light or dark: as the system says, unless told otherwise.

const NAME = "stateloop-theme";
const ORDER = ["auto", "light", "dark"];
const changed = new EventTarget();

/** Take what was chosen before. */
export function startTheme() {
  apply(localStorage.getItem(NAME) ?? "auto");
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => changed.dispatchEvent(new Event("theme")));
}

/** What is chosen: auto, light or dark. */
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

/** Call back when colours have changed; gives what ends that. */
export function onTheme(listener) {
  changed.addEventListener("theme", listener);
  return () => changed.removeEventListener("theme", listener);
}

/** The colour that a custom property has now, as a canvas takes it. */
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
