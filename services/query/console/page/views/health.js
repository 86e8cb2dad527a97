// The health report: whether the loop is healthy, and the reasons and actions if not.

import { address } from "../applications.js";
import { clock } from "../format.js";
import { listIn } from "../lists.js";
import { el, setText } from "../node.js";

const WELL = "Every process of the loop answers, no lag grows, and no API is down.";
const UNMONITORED = "Every monitored component answers, and no lag grows. The health of these components is unknown:";
const AGAIN = "The page retries automatically.";
const DENIED = "The other views show what the token may read.";

/** The panel: {node, show(loop response), showError(error, time of the last metrics)}. */
export function healthPanel() {
  const [sign, title] = [el("span", { class: "sign", "aria-hidden": "true" }), el("span", { role: "status" })];
  const words = el("p", { class: "muted" });
  const list = el("ul", { class: "problems" });
  const node = el("section", { class: "health-report panel", "aria-label": "Health" }, el("h2", {}, sign, " ", title), words, list);
  const kinds = listIn(list, ([kind]) => kind, ([kind]) => reasonGroup(kind));
  const draw = (status, mark, headline, text, reasons = null) => {
    node.dataset.status = status;
    sign.hidden = !mark;
    words.hidden = !text;
    list.hidden = !reasons?.length;
    [[sign, mark], [title, headline], [words, text]].forEach(([place, text]) => setText(place, text));
    if (!reasons) return; // the reasons are unknown now: opened details stay open
    kinds.show([...Map.groupBy(reasons, (one) => one.kind)]);
  };
  return {
    node,
    show(now) {
      const { healthy, reasons } = now.health;
      const unmonitored = now.unmonitored.map((one) => ({ ...one, kind: `unmonitored ${one.action}` }));
      const number = reasons.length;
      if (healthy) draw("healthy", "✓", "Healthy", WELL, []);
      else if (number) draw("unhealthy", "!", number === 1 ? "One problem" : `${number} problems`, "", [...reasons, ...unmonitored]);
      else draw("unmonitored", "?", "Some components are not monitored", UNMONITORED, unmonitored);
    },
    showError(error, at) {
      const advice = error ? (error.kind === "not_yours" ? DENIED : AGAIN) : "The first metrics arrive in a moment.";
      const headline = error ? error.message : "Loading…";
      if (at === null) draw("unknown", "", headline, advice);
      else draw("stale", "○", headline, `The metrics shown are from ${clock(at)} and may be outdated. ${advice}`);
    },
  };
}

function otherReason() {
  const node = el("li");
  return { node, show: (one) => setText(node, one.message) };
}

/** All reasons of one kind: the first one, and the others in a fold. */
function reasonGroup(kind) {
  const [message, action] = [el("strong"), el("span")];
  const link = kind === "dead_letters_increasing" ? [" ", el("a", { href: address("dead_letters") }, "See them")] : null;
  const [summary, rest] = [el("summary"), el("ul")];
  const more = el("details", { hidden: true }, summary, rest);
  const others = listIn(rest, (_, number) => number, otherReason);
  return {
    node: el("li", { "data-kind": kind }, message, el("span", { class: "action" }, action, link), more),
    show([, those]) {
      setText(message, those[0].message);
      setText(action, those[0].action);
      more.hidden = those.length === 1;
      setText(summary, `and ${those.length - 1} more of this kind`);
      others.show(those.slice(1));
    },
  };
}
