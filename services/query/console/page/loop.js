// The loop's figures, asked for again and again while somebody looks.

import { ask } from "./service.js";
import { onToken } from "./token.js";

const KEPT_MS = 600_000;
const EVERY_MS = 2000;

/** Tells its listeners ("loop", "away") of each look. `latest` is the last answer, `course` its points. */
class Loop extends EventTarget {
  latest = null;
  course = [];
  trouble = null;
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
    try {
      this.#take(await ask(`/v1/loop?since=${this.course.at(-1)?.at ?? 0}`));
    } catch (error) {
      this.trouble = error;
      this.dispatchEvent(new Event("away"));
    } finally {
      this.#asking = false;
      this.#timer = setTimeout(() => this.#look(), this.latest?.every_ms ?? EVERY_MS);
    }
  }

  #take(answer) {
    const newer = answer.course.filter((point) => point.at > (this.course.at(-1)?.at ?? 0));
    const points = [...this.course, ...newer];
    this.course = points.filter((point) => point.at > (points.at(-1)?.at ?? 0) - KEPT_MS);
    this.latest = answer;
    this.trouble = null;
    this.dispatchEvent(new Event("loop"));
  }
}

export const loop = new Loop();
