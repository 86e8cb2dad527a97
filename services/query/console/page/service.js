// Asks the service that this page came from.

import { askForToken, authorization, forgetToken } from "./token.js";

/** What the service said instead of an answer. `kind` is the problem's type, `body` all of it. */
export class Problem extends Error {
  constructor(status, body) {
    super(body.detail ?? body.title ?? `The service answers with status ${status}`);
    this.status = status;
    this.kind = body.type ?? "unknown";
    this.title = body.title ?? `Status ${status}`;
    this.body = body;
  }
}

/** The service cannot be reached. */
export class Away extends Error {
  constructor() {
    super("The query service does not answer");
  }
}

/** The response, when all is well. Raises Problem and Away. */
export async function open(path, { signal, headers } = {}) {
  let response;
  try {
    response = await fetch(path, { signal, headers: { ...authorization(), ...headers }, credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Away();
  }
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  if (response.status === 401) {
    forgetToken();
    askForToken(body.detail ?? "The service answers to those with a token.");
  }
  throw new Problem(response.status, body);
}

/** The answer's JSON. Raises as `open` does. */
export async function ask(path, options) {
  return (await open(path, options)).json();
}
