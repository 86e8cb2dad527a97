// The loop's figures, asked for again and again while somebody looks.

import { ask } from "./service.js";
import { onToken } from "./token.js";

const KEPT_MS = 600_000;
const EVERY_MS = 2000;
/** After so long the same figures are old: the service looks at the loop every few seconds. */
const OLD_MS = 15_000;

/** Tells its listeners ("loop", "away") of each look. `latest` is the last answer, `course` its points, `at` when they moved on. */
class Loop extends EventTarget {
  latest = null;
  course = [];
  trouble = null;
  at = null;
  #timer = null;
  #asking = false;

  start() {
    document.addEventListener("visibilitychange", () => this.#look());
    onToken(() => this.#look());
    this.#look();
  }

  async #look() {
    clearTimeout(this.#timer);
    if (document.hidden || this.#asking) return;
    this.#asking = true;
    if (!this.trouble && this.#isOld()) this.#lose(new Error("Asking again"));
    try {
      this.#take(await ask(`/v1/loop?since=${this.course.at(-1)?.at ?? 0}`));
    } catch (error) {
      this.#lose(error);
    } finally {
      this.#asking = false;
      if (this.trouble?.kind !== "not_yours") this.#timer = setTimeout(() => this.#look(), this.latest?.every_ms ?? EVERY_MS);
    }
  }

  #take(answer) {
    const newer = answer.course.filter((point) => point.at > (this.course.at(-1)?.at ?? 0));
    const points = [...this.course, ...newer];
    this.course = points.filter((point) => point.at > (points.at(-1)?.at ?? 0) - KEPT_MS);
    if (answer.at !== this.latest?.at) this.at = Date.now();
    this.latest = answer;
    if (this.#isOld()) return this.#lose(new Error("The query service answers, but looks at the loop no more"));
    this.trouble = null;
    this.dispatchEvent(new Event("loop"));
  }

  #isOld() {
    return this.latest !== null && Date.now() - this.at > OLD_MS;
  }

  #lose(trouble) {
    this.trouble = trouble;
    this.dispatchEvent(new Event("away"));
  }
}

export const loop = new Loop();
