// Sends requests to the service that served this page.

import { IdleTimeout } from "./timeout.js";
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
export class Unreachable extends Error {
  constructor() {
    super("The query service does not answer");
  }
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
  const timeout = new IdleTimeout(TIMEOUT_MS, () => new Unreachable(), signal);
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
