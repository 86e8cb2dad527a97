// Does something again and again while somebody looks, each time only when the last is done.

/** Call `does` at once, and again so long after its end, until `signal` says stop. `does` raises nothing. */
export function repeat(does, milliseconds, signal) {
  let timer = null;
  const again = async () => {
    if (!document.hidden) await does();
    if (!signal.aborted) timer = setTimeout(again, milliseconds);
  };
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  again();
}
