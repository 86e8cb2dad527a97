// Polls the metrics of the loop while the page is visible.

import { getJson } from "./service.js";
import { onToken } from "./token.js";

const KEPT_MS = 600_000;
const EVERY_MS = 2000;
/** Metrics that have not changed for this long are stale: the service scrapes every few seconds. */
const OLD_MS = 15_000;

/** Dispatches "loop" or "away" after each poll. `latest` is the last response, `history` its points, `at` when they last advanced. */
class Loop extends EventTarget {
  latest = null;
  history = [];
  error = null;
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
    if (!this.error && this.#isOld()) this.#lose(new Error("Retrying"));
    try {
      this.#take(await getJson(`/v1/loop?since=${this.history.at(-1)?.at ?? 0}`));
    } catch (problem) {
      this.#lose(problem);
    } finally {
      this.#asking = false;
      if (this.error?.kind !== "not_yours") this.#timer = setTimeout(() => this.#look(), this.latest?.every_ms ?? EVERY_MS);
    }
  }

  #take(answer) {
    const newer = answer.history.filter((point) => point.at > (this.history.at(-1)?.at ?? 0));
    const points = [...this.history, ...newer];
    this.history = points.filter((point) => point.at > (points.at(-1)?.at ?? 0) - KEPT_MS);
    if (answer.at !== this.latest?.at) this.at = Date.now();
    this.latest = answer;
    if (this.#isOld()) return this.#lose(new Error("The query service answers, but no longer scrapes the loop"));
    this.error = null;
    this.dispatchEvent(new Event("loop"));
  }

  #isOld() {
    return this.latest !== null && Date.now() - this.at > OLD_MS;
  }

  #lose(error) {
    this.error = error;
    this.dispatchEvent(new Event("away"));
  }
}

export const loop = new Loop();
