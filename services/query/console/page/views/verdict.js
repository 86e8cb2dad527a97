// Whether the loop is healthy, and if not, where and what to do.

import { Kept, arrange } from "../arrange.js";
import { clock } from "../format.js";
import { el, say } from "../node.js";
import { to } from "../route.js";

const WELL = "Every part that was named answers, nothing falls behind, and no API is down.";
const UNWATCHED = "Every part that is watched answers, and nothing falls behind. Of these parts nothing is known:";
const AGAIN = "This page asks again by itself.";
const DENIED = "The other views show what the token may read.";

/** The panel: {node, tell(loop answer), wait(trouble, time of what is shown)}. */
export function verdictPanel() {
  const [sign, title] = [el("span", { class: "sign", "aria-hidden": "true" }), el("span", { role: "status" })];
  const words = el("p", { class: "muted" });
  const list = el("ul", { class: "troubles" });
  const node = el("section", { class: "verdict panel", "aria-label": "How the loop is" }, el("h2", {}, sign, " ", title), words, list);
  const kinds = new Kept();
  const show = (standing, mark, headline, text, troubles = null) => {
    node.dataset.standing = standing;
    sign.hidden = !mark;
    words.hidden = !text;
    list.hidden = !troubles?.length;
    [[sign, mark], [title, headline], [words, text]].forEach(([place, told]) => say(place, told));
    if (!troubles) return; // not known at the moment: what was opened stays open
    const alike = Map.groupBy(troubles, (one) => one.what);
    const made = kinds.of([...alike.keys()], troubleKind);
    [...alike.values()].forEach((those, number) => made[number].show(those));
    arrange(list, made.map((one) => one.node));
  };
  return {
    node,
    tell(now) {
      const { healthy, troubles } = now.verdict;
      const unwatched = now.not_watched.map((one) => ({ ...one, what: `not_watched ${one.do}` }));
      const number = troubles.length;
      if (healthy) show("well", "✓", "Healthy", WELL, []);
      else if (number) show("troubled", "!", number === 1 ? "One trouble" : `${number} troubles`, "", [...troubles, ...unwatched]);
      else show("unwatched", "?", "Not all is watched", UNWATCHED, unwatched);
    },
    wait(trouble, at) {
      const said = trouble ? (trouble.kind === "not_yours" ? DENIED : AGAIN) : "The first figures come in a moment.";
      const headline = trouble ? trouble.message : "Looking…";
      if (at === null) show("unknown", "", headline, said);
      else show("lost", "○", headline, `What is shown is from ${clock(at)}, and may be wrong by now. ${said}`);
    },
  };
}

/** All troubles of a kind: the first one, and the others behind it. */
function troubleKind(what) {
  const [says, does] = [el("strong"), el("span")];
  const link = what === "dead_letters_rising" ? [" ", el("a", { href: to("letters") }, "See them")] : null;
  const [summary, rest] = [el("summary"), el("ul")];
  const more = el("details", { hidden: true }, summary, rest);
  const others = new Kept();
  return {
    node: el("li", { "data-what": what }, says, el("span", { class: "do" }, does, link), more),
    show(those) {
      say(says, those[0].says);
      say(does, those[0].do);
      more.hidden = those.length === 1;
      say(summary, `and ${those.length - 1} more like it`);
      const made = others.of(those.slice(1).map((_, number) => number), () => el("li"));
      made.forEach((one, number) => say(one, those[number + 1].says));
      arrange(rest, made);
    },
  };
}
