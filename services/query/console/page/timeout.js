// A timeout that restarts when data arrive: a service that hangs keeps its connections open.

/** Aborts `signal` with `why()` when `restart` was not called for this long, or as soon as `other` is aborted. */
export class IdleTimeout {
  #control = new AbortController();
  #timer = null;
  #wait;
  #why;
  #other;

  constructor(milliseconds, why, other) {
    [this.#wait, this.#why, this.#other] = [milliseconds, why, other];
    if (other?.aborted) this.#stopped();
    else other?.addEventListener("abort", this.#stopped);
    this.restart();
  }

  get signal() {
    return this.#control.signal;
  }

  /** Restart the timeout, with a new duration if one is given. */
  restart(milliseconds = this.#wait) {
    clearTimeout(this.#timer);
    this.#wait = milliseconds;
    this.#timer = setTimeout(() => this.#control.abort(this.#why()), milliseconds);
  }

  /** Stop the timeout. */
  clear() {
    clearTimeout(this.#timer);
    this.#other?.removeEventListener("abort", this.#stopped);
  }

  #stopped = () => {
    this.clear();
    this.#control.abort(this.#other.reason);
  };
}
