// Watches a key: reconnects after each interruption, and resumes after the last event.

import { IdleTimeout } from "./timeout.js";
import { TIMEOUT_MS, Unreachable, Problem, open } from "./service.js";
import { keyPath } from "./states.js";
import { events } from "./stream.js";

const FIRST_MS = 500;
const MOST_MS = 15_000;
/** The service sends a mark every 5 s: three marks. */
const SILENCE_MS = 15_000;

/** Call `on.answer(answer)`, `on.event(name, data)`, `on.live()` and `on.lost(why)` until `signal` aborts.
 *
 * Of a windowed state it watches the newest window of the key, or the one that contains the time `at`.
 */
export async function watch(state, key, at, on, signal) {
  const path = `${keyPath(state, key)}/watch${at ? `?${new URLSearchParams({ window: at })}` : ""}`;
  let wait = FIRST_MS;
  let last = null;
  while (!signal.aborted) {
    const timeout = new IdleTimeout(TIMEOUT_MS, () => new Unreachable(), signal);
    try {
      const headers = last === null ? {} : { "Last-Event-ID": last };
      const response = await open(path, { signal: timeout.signal, headers });
      const onData = () => (timeout.restart(SILENCE_MS), on.live());
      onData();
      for await (const event of events(response, onData)) {
        wait = FIRST_MS;
        last = event.event === "removed" ? null : (event.id ?? last);
        dispatch(on, event);
      }
      on.lost("reconnecting");
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof Problem && [403, 404, 410].includes(error.status)) on.event(error.kind, error.body);
      on.lost(error instanceof Problem ? error.title : "no answer");
    } finally {
      timeout.clear();
    }
    await pause(wait, signal);
    wait = Math.min(2 * wait, MOST_MS);
  }
}

function dispatch(on, event) {
  let data;
  try {
    data = JSON.parse(event.data);
  } catch {
    return;
  }
  if (data !== null && typeof data === "object" && "value" in data && "version" in data) on.answer(data);
  else on.event(event.event, data);
}

function pause(milliseconds, signal) {
  return new Promise((resolve) => {
    const timer = setTimeout(resolve, milliseconds);
    signal.addEventListener("abort", () => (clearTimeout(timer), resolve()), { once: true });
  });
}
