// What is above every view: the name, the views, the search, and how the loop is.

import { clock } from "./format.js";
import { loop } from "./loop.js";
import { el, say } from "./node.js";
import { own } from "./own.js";
import { to } from "./route.js";
import { search } from "./search.js";
import { nextTheme, theme } from "./theme.js";

const VIEWS = [
  ["", "Loop"],
  ["states", "States"],
  ["enrichments", "Enrichments"],
  ["letters", "Dead letters"],
];
const SHOWN = { device: "states" };

/** The header: {show(view), focusSearch()}. `onHelp` shows the keys. */
export function header(place, onHelp) {
  const sought = search();
  const links = new Map(VIEWS.map(([view, name]) => [view, el("a", { href: view ? to(view) : "#/" }, name)]));
  const health = el("a", { class: "health", href: "#/", "data-standing": "unknown" }, "…");
  const themeButton = el("button", { class: "icon", onclick: () => (nextTheme(), tellTheme()) });
  const tellTheme = () => {
    const names = { auto: "◐", light: "☀", dark: "☾" };
    say(themeButton, names[theme()]);
    themeButton.setAttribute("aria-label", `Colours: ${theme()}. Change them`);
    themeButton.title = `Colours: ${theme()}`;
  };
  tellTheme();
  place.append(
    el("a", { class: "brand", href: "#/" }, el("img", { src: "/console/icon.svg", alt: "", width: 26, height: 26 }), el("span", {}, "Stateloop"), el("span", { class: "application muted" })),
    health,
    el("nav", { "aria-label": "Views" }, [...links.values()]),
    sought.node,
    el("div", { class: "tools" }, themeButton, el("button", { class: "icon", "aria-label": "Keys that this page knows", title: "Keys (?)", onclick: onHelp }, "?")),
  );
  const name = place.querySelector(".application");
  loop.addEventListener("loop", () => {
    say(name, loop.latest.application);
    health.title = "";
    tellHealth(health, loop.latest.verdict);
  });
  loop.addEventListener("away", () => {
    health.dataset.standing = loop.at === null ? "unknown" : "lost";
    say(health, loop.at === null ? (loop.trouble.title ?? loop.trouble.message) : `○ stale since ${clock(loop.at)}`);
    health.title = loop.trouble.message;
  });
  return {
    focusSearch: sought.focus,
    show(view) {
      for (const [one, link] of links) {
        if (one === (own(SHOWN, view) ?? view)) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
      }
    },
  };
}

function tellHealth(place, verdict) {
  const number = verdict.troubles.length;
  place.dataset.standing = verdict.healthy ? "well" : number ? "troubled" : "unwatched";
  say(place, verdict.healthy ? "✓ healthy" : number ? `! ${number} ${number === 1 ? "trouble" : "troubles"}` : "? not all watched");
}
