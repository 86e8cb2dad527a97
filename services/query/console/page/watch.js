// Watches keys until a signal aborts, and connects again after each interruption: one key by server-sent events, which
// pass each proxy, and many over one WebSocket.

import { clock } from "./format.js";
import { el, setText } from "./node.js";
import { TIMEOUT_MS, Problem, idleTimeout, open } from "./service.js";
import { keyPath } from "./states.js";
import { events } from "./stream.js";
import { subprotocols } from "./token.js";

const FIRST_MS = 500;
const MOST_MS = 15_000;
/** The service sends a mark every 5 s: three marks. */
const SILENCE_MS = 15_000;
const GONE = ["removed", "expired", "left"];

/** Whether a watch is live, or since when it is not: {node, live(), lost(why)}. */
export function watchStatus() {
  const node = el("span", { class: "stream-status", role: "status", "data-status": "waiting" }, "connecting");
  let liveAt = null;
  const show = (status, text) => ((node.dataset.status = status), setText(node, text));
  return {
    node,
    live: () => ((liveAt = Date.now()), show("live", "● live")),
    lost: (why) => show("waiting", liveAt === null ? `○ ${why}` : `○ ${why}, stale since ${clock(liveAt)}`),
  };
}

/** Watch a key: call `on.answer(answer)`, `on.event(name, data)`, `on.live()` and `on.lost(why)`. It resumes after the last event.
 *
 * Of a windowed state it watches the newest window of the key, or the one that contains the time `at`.
 */
export function watch(state, key, at, on, signal) {
  const path = `${keyPath(state, key)}/watch${at ? `?${new URLSearchParams({ window: at })}` : ""}`;
  let last = null;
  return connected(async () => {
    const timeout = idleTimeout(TIMEOUT_MS, signal);
    try {
      const headers = last === null ? {} : { "Last-Event-ID": last };
      const response = await open(path, { signal: timeout.signal, headers });
      const onData = () => (timeout.restart(SILENCE_MS), on.live());
      onData();
      for await (const event of events(response, onData)) {
        last = event.event === "removed" ? null : (event.id ?? last);
        dispatch(on, event);
      }
      return "reconnecting";
    } catch (error) {
      if (!signal.aborted && error instanceof Problem && [403, 404, 410].includes(error.status)) on.event(error.kind, error.body);
      return error instanceof Problem ? error.title : "no answer";
    } finally {
      timeout.clear();
    }
  }, on, signal);
}

/** Watch many keys: call `on.begin()` before the present values of all subscriptions, then `on.answer(id, answer)`,
 * `on.gone(id, state, key)`, `on.current(id)` after the present values, `on.live()`, `on.denied(problem)` and `on.lost(why)`.
 *
 * A subscription is {id, state, prefix, where}.
 */
export function watchMany(subscriptions, on, signal) {
  return connected(async () => {
    const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/v1/watch`, subprotocols());
    const timeout = idleTimeout(SILENCE_MS, signal);
    timeout.signal.addEventListener("abort", () => socket.close());
    socket.addEventListener("open", () => {
      on.begin();
      for (const one of subscriptions) socket.send(JSON.stringify({ type: "subscribe", ...one }));
    });
    socket.addEventListener("message", (event) => {
      timeout.restart();
      if (signal.aborted) return;
      on.live();
      take(JSON.parse(event.data), on, socket);
    });
    await new Promise((resolve) => socket.addEventListener("close", resolve));
    timeout.clear();
    return "reconnecting";
  }, on, signal);
}

/** Repeat `connect`, which returns why its connection has ended: later after each connection that was short. */
async function connected(connect, on, signal) {
  let wait = FIRST_MS;
  while (!signal.aborted) {
    const began = Date.now();
    const why = await connect();
    if (signal.aborted) return;
    on.lost(why);
    if (Date.now() - began > MOST_MS) wait = FIRST_MS;
    await new Promise((resolve) => setTimeout(resolve, wait));
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

function take(message, on, socket) {
  if (message.type === "state") for (const id of message.ids) on.answer(id, message.answer);
  else if (GONE.includes(message.type)) for (const id of message.ids) on.gone(id, message.state, message.key);
  else if (message.type === "current") on.current(message.id);
  else if (message.type === "error") on.denied(message.problem);
  else if (message.type === "reset") socket.close();
}
