// The applications of the suite: the tabs that select one, and the addresses of its views.

import { listIn } from "./lists.js";
import { loop } from "./loop.js";
import { el, setText } from "./node.js";
import { to } from "./route.js";

const VIEWS = ["loop", "enrichments", "dead_letters"];
const HEALTH = { true: "healthy", false: "unhealthy", null: "not all monitored" };

/** Whether a view shows one application. */
export const isOfApplication = (view) => VIEWS.includes(view);

/** The address of a view: of the selected application, if the view shows one. */
export function address(view) {
  if (isOfApplication(view) && loop.application !== null) return to(view, loop.application);
  return view === "loop" ? "#/" : to(view);
}

/** The tabs: {node, show(view)}. They are hidden in views of the whole suite, and of a single application. */
export function applicationTabs() {
  const node = el("nav", { class: "applications", "aria-label": "Applications", hidden: true });
  const links = listIn(node, (one) => one.name, tab);
  let currentView = null;
  const draw = () => {
    node.hidden = !isOfApplication(currentView) || loop.applications.length < 2;
    links.show(loop.applications, currentView);
  };
  loop.addEventListener("loop", draw);
  return { node, show: (view) => ((currentView = view), draw()) };
}

function tab({ name }) {
  const mark = el("span", { class: "mark bad" });
  const node = el("a", {}, name, mark);
  return {
    node,
    show({ healthy }, view) {
      node.href = to(view, name);
      node.title = HEALTH[healthy];
      setText(mark, healthy === false ? " !" : "");
      if (name === (loop.application ?? loop.applications[0].name)) node.setAttribute("aria-current", "true");
      else node.removeAttribute("aria-current");
    },
  };
}
