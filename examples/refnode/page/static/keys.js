// The arrow keys in a picture: from mark to mark, and to the nearest mark of the next row.

import { textOf } from './hints.js';

/** reach lets the arrow keys go through the elements that rows returns, row by row. */
export function reach(group, rows) {
  group.addEventListener('keydown', (e) => {
    const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
    const to = steps[e.key] && next(rows().filter((r) => r.length), document.activeElement, ...steps[e.key]);
    if (!to) return;
    e.preventDefault();
    name(to);
    to.focus();
  });
  group.addEventListener('focusout', (e) => {
    if (e.target === group) return;
    for (const a of ['tabindex', 'role', 'aria-label']) e.target.removeAttribute(a);
  });
}

/** name makes an element one that can have the focus, and that a screen reader reads. */
function name(e) {
  e.setAttribute('tabindex', -1);
  e.setAttribute('role', 'img');
  e.setAttribute('aria-label', textOf(e));
}

/** next returns the element that lies a step from one, or the first of all if that is none of them. */
function next(all, from, down, right) {
  const i = all.findIndex((r) => r.includes(from));
  if (i < 0) return all[0]?.[0];
  if (right) return all[i][all[i].indexOf(from) + right];
  const x = (e) => e.getBoundingClientRect().x, at = x(from);
  return all[i + down]?.reduce((a, b) => (Math.abs(x(b) - at) < Math.abs(x(a) - at) ? b : a));
}
