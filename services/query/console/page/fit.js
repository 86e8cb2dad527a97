// Text of SVG in the room that it has: SVG neither breaks nor cuts a line.

const said = new WeakMap();

/** Set the text of an element, shortened with … to so many units. */
export function fit(element, text, width) {
  const asked = `${width} ${text}`;
  if (said.get(element) === asked) return;
  said.set(element, asked);
  element.textContent = text;
  if (element.isConnected) cut(element, text, width);
  else requestAnimationFrame(() => said.get(element) === asked && cut(element, text, width)); // only what is shown has a length
}

function cut(element, text, width) {
  const all = element.getComputedTextLength();
  if (all <= width) return;
  let most = Math.floor((text.length * width) / all);
  do element.textContent = `${text.slice(0, most).trimEnd()}…`;
  while (element.getComputedTextLength() > width && (most -= 1) > 0);
}
