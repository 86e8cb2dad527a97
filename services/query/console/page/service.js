// Sends requests to the service that served this page.

import { requestToken, authorization, forgetToken } from "./token.js";

/** The timeout of a request: a page of keys takes the service well under a second. */
export const TIMEOUT_MS = 8000;

/** An error response (RFC 9457). `kind` is the problem's type, `body` all of it. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? body.title ?? `The service answers with status ${status}`);
    this.status = status;
    this.kind = body.type ?? "unknown";
    this.title = body.title ?? `Status ${status}`;
    this.body = body;
  }
}

/** The service cannot be reached, or does not answer in time. */
class Unreachable extends Error {
  constructor() {
    super("The query service does not answer");
  }
}

/** A timeout that restarts when data arrive, as a service that hangs keeps its connections open: {signal, restart(), clear()}.
 *
 * `signal` is aborted when `restart` was not called for this long, or as soon as `other` is aborted.
 */
export function idleTimeout(milliseconds, other) {
  const control = new AbortController();
  let timer = null;
  const clear = () => clearTimeout(timer);
  const restart = (after = milliseconds) => (clear(), (timer = setTimeout(() => control.abort(new Unreachable()), after)));
  restart();
  return { signal: other ? AbortSignal.any([control.signal, other]) : control.signal, restart, clear };
}

/** Return the response. Throws Problem and Unreachable. */
export async function open(path, { signal, headers, method, body } = {}) {
  const options = { signal, headers: { ...authorization(), ...headers }, method, body, credentials: "omit" };
  const response = await fetch(path, options).catch(unreachable);
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  if (response.status === 401) {
    forgetToken();
    requestToken(problem.detail ?? "The service requires a token.");
  }
  throw new Problem(response.status, problem);
}

/** Return the JSON of the response. Throws as `open`, and Unreachable after the timeout. */
export async function getJson(path, { signal, ...options } = {}) {
  const timeout = idleTimeout(TIMEOUT_MS, signal);
  try {
    const response = await open(path, { signal: timeout.signal, ...options });
    return await response.json().catch(unreachable);
  } finally {
    timeout.clear();
  }
}

function unreachable(error) {
  throw error.name === "AbortError" ? error : new Unreachable();
}
