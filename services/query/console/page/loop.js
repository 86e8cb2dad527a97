// Polls the metrics of one application's loop while the page is visible.

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
  /** The selected application; null for the first of the suite. */
  application = null;
  /** The applications of the suite, with their health. */
  applications = [];
  #timer = null;
  #request = null;

  start() {
    document.addEventListener("visibilitychange", () => this.#look());
    onToken(() => this.#look());
    this.#look();
  }

  /** Show the loop of another application: no metrics of the one before stay. */
  select(application) {
    if (application === this.application) return;
    Object.assign(this, { application, latest: null, history: [], error: null, at: null });
    this.#request?.abort();
    this.#request = null;
    this.#look();
  }

  /** The path of a resource of the selected application's loop. */
  path(path, parameters = {}) {
    const named = this.application === null ? {} : { application: this.application };
    return `${path}?${new URLSearchParams({ ...parameters, ...named })}`;
  }

  async #look() {
    clearTimeout(this.#timer);
    if (document.hidden || this.#request) return;
    const request = (this.#request = new AbortController());
    if (!this.error && this.#isOld()) this.#lose(new Error("Retrying"));
    try {
      this.#take(await getJson(this.path("/v1/loop", { since: this.history.at(-1)?.at ?? 0 }), { signal: request.signal }));
    } catch (problem) {
      if (request.signal.aborted) return;
      this.#lose(problem);
    }
    this.#request = null;
    if (this.error?.kind !== "not_yours") this.#timer = setTimeout(() => this.#look(), this.latest?.every_ms ?? EVERY_MS);
  }

  #take(answer) {
    const newer = answer.history.filter((point) => point.at > (this.history.at(-1)?.at ?? 0));
    const points = [...this.history, ...newer];
    this.history = points.filter((point) => point.at > (points.at(-1)?.at ?? 0) - KEPT_MS);
    if (answer.at !== this.latest?.at) this.at = Date.now();
    [this.latest, this.applications] = [answer, answer.applications];
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
