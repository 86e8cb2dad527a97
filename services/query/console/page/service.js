// Asks the service that this page came from.

import { Patience } from "./patience.js";
import { askForToken, authorization, forgetToken } from "./token.js";

/** How long an answer may take: a page of keys takes the service well under a second. */
export const ANSWER_MS = 8000;

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

/** The service cannot be reached, or says nothing. */
export class Away extends Error {
  constructor() {
    super("The query service does not answer");
  }
}

/** The response, when all is well. Raises Problem and Away. */
export async function open(path, { signal, headers } = {}) {
  const asked = { signal, headers: { ...authorization(), ...headers }, credentials: "omit" };
  const response = await fetch(path, asked).catch(away);
  if (response.ok) return response;
  const body = await response.json().catch(() => ({}));
  if (response.status === 401) {
    forgetToken();
    askForToken(body.detail ?? "The service answers to those with a token.");
  }
  throw new Problem(response.status, body);
}

/** The answer's JSON. Raises as `open` does, Away also when it takes too long. */
export async function ask(path, { signal, ...options } = {}) {
  const patience = new Patience(ANSWER_MS, () => new Away(), signal);
  try {
    const response = await open(path, { signal: patience.signal, ...options });
    return await response.json().catch(away);
  } finally {
    patience.end();
  }
}

function away(error) {
  throw error.name === "AbortError" ? error : new Away();
}
