// Repeats an action while the page is visible, each time after the last has finished.

/** Call `does` now, and again this long after it has finished, until `signal` aborts. `does` must not throw. */
export function repeat(does, milliseconds, signal) {
  let timer = null;
  const again = async () => {
    if (!document.hidden) await does();
    if (!signal.aborted) timer = setTimeout(again, milliseconds);
  };
  signal.addEventListener("abort", () => clearTimeout(timer), { once: true });
  again();
}
