// How long one waits for somebody who says nothing: a service that hangs keeps its connections open.

/** Aborts `signal` with what `why()` gives when nobody has called `heard` for so long, or as soon as `other` is aborted. */
export class Patience {
  #control = new AbortController();
  #timer = null;
  #wait;
  #why;
  #other;

  constructor(milliseconds, why, other) {
    [this.#wait, this.#why, this.#other] = [milliseconds, why, other];
    if (other?.aborted) this.#stopped();
    else other?.addEventListener("abort", this.#stopped);
    this.heard();
  }

  get signal() {
    return this.#control.signal;
  }

  /** Begin to wait anew: from now on for so long, if that is said. */
  heard(milliseconds = this.#wait) {
    clearTimeout(this.#timer);
    this.#wait = milliseconds;
    this.#timer = setTimeout(() => this.#control.abort(this.#why()), milliseconds);
  }

  /** Wait no more. */
  end() {
    clearTimeout(this.#timer);
    this.#other?.removeEventListener("abort", this.#stopped);
  }

  #stopped = () => {
    this.end();
    this.#control.abort(this.#other.reason);
  };
}
