// Making and changing elements. A drawing changes only what is different from the one before, so
// that the browser lays out and paints only that, and focus and selections stay.

export const calm = matchMedia('(prefers-reduced-motion: reduce)');

const svgNames = new Set(['svg', 'g', 'rect', 'circle', 'line', 'path', 'text']);

/** el makes an element. Attributes that are null are left out; children may be text. */
export function el(name, attributes = {}, ...children) {
  const e = svgNames.has(name) ? document.createElementNS('http://www.w3.org/2000/svg', name) : document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value !== null && value !== undefined) e.setAttribute(key, value);
  }
  e.append(...children);
  return e;
}

export const byId = (id) => document.getElementById(id);

/** setText changes a text if it is different. */
export function setText(e, text) {
  const is = String(text), node = e.firstChild;
  if (e.textContent === is) return;
  if (node?.nodeType === Node.TEXT_NODE && !node.nextSibling) node.data = is;
  else e.textContent = is;
}

/** set changes an attribute if it is different. */
export function set(e, name, value) {
  if (e.getAttribute(name) !== String(value)) e.setAttribute(name, value);
}

/**
 * Keyed keeps the children of an element by key. put makes or changes one; those that were not put
 * between begin and end are removed.
 */
export class Keyed {
  constructor(parent) {
    this.parent = parent;
    this.kept = new Map();
    this.round = 0;
  }

  begin() { this.round++; }

  /** put returns the child with a key, with the given attributes and, unless it is null, text. */
  put(key, name, attributes, text = null) {
    let child = this.kept.get(key);
    if (!child) {
      child = { e: el(name, attributes), attributes, text: null };
      this.kept.set(key, child);
      this.parent.append(child.e);
    } else {
      for (const a in attributes) {
        if (child.attributes[a] !== attributes[a]) child.e.setAttribute(a, attributes[a]);
      }
      child.attributes = attributes;
    }
    if (text !== null && text !== child.text) setText(child.e, child.text = text);
    child.round = this.round;
    return child.e;
  }

  end() {
    for (const [key, child] of this.kept) {
      if (child.round === this.round) continue;
      child.e.remove();
      this.kept.delete(key);
    }
  }
}
