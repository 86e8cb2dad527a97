// The page: its header, and the view that the address names.

import { isOfApplication } from "./applications.js";
import { header } from "./header.js";
import { listenToKeys, toggleHelp } from "./help.js";
import { loop } from "./loop.js";
import { el } from "./node.js";
import { own } from "./own.js";
import { go, route } from "./route.js";
import { startTheme } from "./theme.js";
import { onToken } from "./token.js";
import { device } from "./views/device.js";
import { graph } from "./views/graph.js";
import { deadLetters } from "./views/deadletters.js";
import { overview } from "./views/overview.js";
import { rulesView } from "./views/rules.js";
import { statesView } from "./views/states.js";

const VIEWS = {
  loop: () => overview(),
  states: ([state, time]) => statesView(state || null, time || null),
  device: ([state = "", key = "", window]) => device(state, key, window || null),
  rules: ([table]) => rulesView(table || null),
  enrichments: () => graph(),
  dead_letters: () => deadLetters(),
};
const main = document.querySelector("#main");
let current = null;

function show() {
  const { view, parts } = route();
  current?.close();
  if (isOfApplication(view)) loop.select(parts[0] || null);
  current = (own(VIEWS, view) ?? missing)(parts);
  main.replaceChildren(current.node);
  const application = isOfApplication(view) ? loop.application : null;
  document.title = [current.title, application, "Stateloop"].filter((one) => one !== null).join(" · ");
  above.show(view);
  scrollTo(0, 0);
}

function missing() {
  return { node: el("p", { class: "notice" }, "This view does not exist. The links above lead to the existing views."), title: "Not found", close() {} };
}

function back() {
  const { view, parts } = route();
  if (view === "device") go("states", parts[0] ?? "");
}

startTheme();
const above = header(document.querySelector("#header"), toggleHelp);
listenToKeys(above.focusSearch, back);
addEventListener("hashchange", show);
onToken(show);
show();
loop.start();
