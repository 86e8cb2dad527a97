// The header of every view: the name, the links to the views, the search, and the health of the loop.

import { address, applicationTabs } from "./applications.js";
import { clock } from "./format.js";
import { loop } from "./loop.js";
import { el, setText } from "./node.js";
import { own } from "./own.js";
import { VIEWS } from "./route.js";
import { search } from "./search.js";
import { nextTheme, theme } from "./theme.js";

const SHOWN = { device: "states" };

/** The header: {show(view), focusSearch()}. `onHelp` shows the keyboard shortcuts. */
export function header(place, onHelp) {
  const sought = search();
  const links = new Map(VIEWS.map(([view, name]) => [view, el("a", {}, name)]));
  const health = el("a", { class: "health" });
  const tabs = applicationTabs();
  const themeButton = el("button", { class: "icon", onclick: () => (nextTheme(), tellTheme()) });
  const tellTheme = () => {
    const names = { auto: "◐", light: "☀", dark: "☾" };
    setText(themeButton, names[theme()]);
    themeButton.setAttribute("aria-label", `Colours: ${theme()}. Change them`);
    themeButton.title = `Colours: ${theme()}`;
  };
  tellTheme();
  place.append(
    el("a", { class: "brand", href: "#/" }, el("img", { src: "/console/icon.svg", alt: "", width: 26, height: 26 }), el("span", {}, "Stateloop"), el("span", { class: "application muted" })),
    health,
    el("nav", { "aria-label": "Views" }, [...links.values()]),
    sought.node,
    el("div", { class: "tools" }, themeButton, el("button", { class: "icon", "aria-label": "Keyboard shortcuts", title: "Keyboard shortcuts (?)", onclick: onHelp }, "?")),
    tabs.node,
  );
  const name = place.querySelector(".application");
  loop.addEventListener("loop", () => {
    setText(name, loop.latest.application);
    health.title = "";
    tellHealth(health, loop.latest.health);
  });
  loop.addEventListener("away", () => {
    health.dataset.status = loop.at === null ? "unknown" : "stale";
    setText(health, loop.at === null ? (loop.error.title ?? loop.error.message) : `○ stale since ${clock(loop.at)}`);
    health.title = loop.error.message;
  });
  return {
    focusSearch: sought.focus,
    show(view) {
      tabs.show(view);
      if (!loop.latest && !loop.error) {
        setText(name, loop.application ?? "");
        setText(health, "…");
        health.dataset.status = "unknown";
      }
      health.href = address("loop");
      for (const [one, link] of links) {
        link.href = address(one);
        if (one === (own(SHOWN, view) ?? view)) link.setAttribute("aria-current", "page");
        else link.removeAttribute("aria-current");
      }
    },
  };
}

function tellHealth(place, report) {
  const number = report.reasons.length;
  place.dataset.status = report.healthy ? "healthy" : number ? "unhealthy" : "unmonitored";
  setText(place, report.healthy ? "✓ healthy" : number ? `! ${number} ${number === 1 ? "problem" : "problems"}` : "? not all monitored");
}
