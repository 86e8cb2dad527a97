// Brings children up to date without touching those that stay: they keep the focus, what is marked, and what is open.

/** Make these the children of a place, in this order. */
export function arrange(place, nodes) {
  const wanted = new Set(nodes);
  for (const child of [...place.children]) if (!wanted.has(child)) child.remove();
  let at = place.firstElementChild;
  for (const node of nodes) {
    if (node === at) at = at.nextElementSibling;
    else place.insertBefore(node, at);
  }
}

/** What was made for each name, by what makes it: made once, forgotten when it is not asked for any more. */
export class Kept {
  #made = new Map();

  /** What belongs to each name, in the order of the names. */
  of(names, make) {
    const before = this.#made;
    this.#made = new Map(names.map((name) => [name, before.get(name) ?? make(name)]));
    return names.map((name) => this.#made.get(name));
  }
}
