// Updates children without touching those that stay: they keep focus, selection and open details.

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

/** A cache of nodes by name: each is created once, and dropped when its name is no longer requested. */
export class Kept {
  #made = new Map();

  /** Return the node of each name, in the order of the names. */
  of(names, make) {
    const before = this.#made;
    this.#made = new Map(names.map((name) => [name, before.get(name) ?? make(name)]));
    return names.map((name) => this.#made.get(name));
  }
}
