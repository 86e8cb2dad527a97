// Fits text into a width: SVG neither breaks nor truncates a line.

const fitted = new WeakMap();

/** Set the text of an element, truncated with … to this many units. */
export function fit(element, text, width) {
  const wanted = `${width} ${text}`;
  if (fitted.get(element) === wanted) return;
  fitted.set(element, wanted);
  element.textContent = text;
  if (element.isConnected) cut(element, text, width);
  else requestAnimationFrame(() => fitted.get(element) === wanted && cut(element, text, width)); // only an element of the page has a length
}

function cut(element, text, width) {
  const all = element.getComputedTextLength();
  if (all <= width) return;
  let most = Math.floor((text.length * width) / all);
  do element.textContent = `${text.slice(0, most).trimEnd()}…`;
  while (element.getComputedTextLength() > width && (most -= 1) > 0);
}
