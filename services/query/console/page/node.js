// Makes elements. Values go in as text and attributes, never as HTML: text of devices stays text.

const SVG = "http://www.w3.org/2000/svg";

/** An element of HTML. Attributes that are null or false are left out; those that begin with `on` are listeners. */
export function el(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** An element of SVG. */
export function svg(name, attributes = {}, ...children) {
  return filled(document.createElementNS(SVG, name), attributes, children);
}

/** The terms of a list of definitions, each with its text or element. */
export function terms(entries) {
  return entries.map(([name, value]) => el("div", {}, el("dt", {}, name), el("dd", {}, value)));
}

/** Set the text of an element, if it is another. */
export function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}
