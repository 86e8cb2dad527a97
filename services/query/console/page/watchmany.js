// Watches many keys over one WebSocket: reconnects after each interruption, and reads the present values again.

import { IdleTimeout } from "./timeout.js";
import { subprotocols } from "./token.js";
import { Unreachable } from "./service.js";

const FIRST_MS = 500;
const MOST_MS = 15_000;
/** The service sends a mark every 5 s: three marks. */
const SILENCE_MS = 15_000;
const GONE = ["removed", "expired", "left"];

/** Call `on.begin()` before the present values of all subscriptions, then `on.answer(id, answer)`, `on.gone(id, state, key)`,
 * `on.current(id)` after the present values, `on.live()`, `on.denied(problem)` and `on.lost(why)`, until `signal` aborts.
 *
 * A subscription is {id, state, prefix, where}.
 */
export async function watchMany(subscriptions, on, signal) {
  let wait = FIRST_MS;
  while (!signal.aborted) {
    const began = Date.now();
    await connection(subscriptions, on, signal);
    if (signal.aborted) return;
    on.lost("reconnecting");
    wait = Date.now() - began > MOST_MS ? FIRST_MS : wait;
    await new Promise((resolve) => setTimeout(resolve, wait));
    wait = Math.min(2 * wait, MOST_MS);
  }
}

/** Resolves when the connection has ended. */
function connection(subscriptions, on, signal) {
  const socket = new WebSocket(`${location.origin.replace(/^http/, "ws")}/v1/watch`, subprotocols());
  const timeout = new IdleTimeout(SILENCE_MS, () => new Unreachable(), signal);
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
  return new Promise((resolve) => socket.addEventListener("close", () => (timeout.clear(), resolve())));
}

function take(message, on, socket) {
  if (message.type === "state") for (const id of message.ids) on.answer(id, message.answer);
  else if (GONE.includes(message.type)) for (const id of message.ids) on.gone(id, message.state, message.key);
  else if (message.type === "current") on.current(message.id);
  else if (message.type === "error") on.denied(message.problem);
  else if (message.type === "reset") socket.close();
}
