// Explanations. A hint opens beside the thing that it explains: under the pointer, when the keyboard
// reaches it, and when it is pressed. Escape closes it. Screen readers read it with the thing.

import { byId, el, setText } from './dom.js';

const hint = byId('hint');
const texts = new WeakMap(); // element: its text, or a function that returns it

/** explain gives an element a hint. A function is called when the hint opens. */
export function explain(e, text) {
  texts.set(e, text);
  return e;
}

/** term makes a word whose explanation the keyboard reaches. */
export const term = (name, text) => explain(el('button', { type: 'button', class: 'term', 'aria-expanded': 'false', 'aria-description': text }, name), text);

/** explained returns the next element, from e outwards, that has a hint. */
function explained(e) {
  while (e && !texts.has(e)) e = e.parentElement;
  return e;
}

/** textOf returns the hint of an element. */
export function textOf(e) {
  const text = texts.get(e);
  return typeof text === 'function' ? text() : text;
}

// What is shown: owner has the hint. It was reached by the pointer, which is at x and y, or by the
// keyboard, and then pointer is null.
let owner = null, pointer = null, pressed = false;

function show(e, at) {
  const text = e && textOf(e);
  if (!text) return hide();
  if (e !== owner) {
    expand(false);
    pressed = false;
  }
  owner = e;
  pointer = at;
  expand(true);
  setText(hint, text);
  hint.hidden = false;
  const of = e.getBoundingClientRect(), box = hint.getBoundingClientRect();
  const x = at ? at.x + 14 : of.left, low = at ? at.y + 18 : of.bottom + 8, high = (at ? at.y : of.top) - 12;
  hint.style.left = Math.max(8, Math.min(x, innerWidth - box.width - 8)) + 'px';
  hint.style.top = (low + box.height > innerHeight ? Math.max(8, high - box.height) : low) + 'px';
}

function hide() {
  expand(false);
  owner = pointer = null;
  pressed = false;
  hint.hidden = true;
}

function expand(open) {
  const control = owner?.matches('.term') ? owner : owner?.querySelector(':scope > .term');
  control?.setAttribute('aria-expanded', open);
}

/** refreshHint keeps the open hint right after a drawing: the picture may have moved on. */
export function refreshHint() {
  if (!owner) return;
  if (pointer) show(explained(document.elementFromPoint(pointer.x, pointer.y)), pointer);
  else if (owner.isConnected) show(owner, null);
  else hide();
}

addEventListener('pointermove', (e) => {
  if (e.pointerType === 'touch') return;
  const over = explained(e.target);
  if (over || (pointer && !pressed)) show(over, { x: e.clientX, y: e.clientY });
});
addEventListener('click', (e) => {
  const on = explained(e.target), byKeyboard = e.detail === 0;
  if (pressed && on === owner) return hide();
  show(on, byKeyboard ? null : { x: e.clientX, y: e.clientY });
  pressed = !hint.hidden;
});
addEventListener('focusin', (e) => { if (e.target.matches(':focus-visible')) show(explained(e.target), null); });
addEventListener('focusout', () => { if (!pointer) hide(); });
document.addEventListener('pointerleave', () => { if (pointer) hide(); });
addEventListener('scroll', () => { if (pointer) hide(); }, { passive: true });
addEventListener('keydown', (e) => { if (e.key === 'Escape') hide(); });

// The explanations in the page's HTML. A control reads that of its label too.
for (const e of document.querySelectorAll('[data-hint]')) {
  explain(e, e.dataset.hint);
  const control = e.matches('button') ? e : e.querySelector('button, input');
  control.setAttribute('aria-description', e.dataset.hint);
  if (control.matches('.term')) control.setAttribute('aria-expanded', 'false');
}
