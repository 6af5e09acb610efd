// Making elements, and the one hint that shows what the thing under the pointer is.

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

/** setText changes a text only if it is different, so that selections survive. */
export function setText(e, text) {
  if (e.textContent !== text) e.textContent = text;
}

const hint = byId('hint');
let at = null; // where the pointer is

function show(text, x, y) {
  if (!text) {
    hint.hidden = true;
    return;
  }
  setText(hint, text);
  hint.hidden = false;
  const box = hint.getBoundingClientRect();
  hint.style.left = Math.max(8, Math.min(x + 14, innerWidth - box.width - 8)) + 'px';
  hint.style.top = (y + 22 + box.height > innerHeight ? Math.max(8, y - box.height - 12) : y + 18) + 'px';
}

/** refreshHint shows what is under the pointer now: the picture may have moved on. */
export function refreshHint() {
  if (!at) return;
  const target = document.elementFromPoint(at.x, at.y)?.closest('[data-hint]');
  show(target?.dataset.hint, at.x, at.y);
}

addEventListener('pointermove', (e) => {
  if (e.pointerType === 'touch') return;
  at = { x: e.clientX, y: e.clientY };
  refreshHint();
});
addEventListener('click', (e) => {
  at = { x: e.clientX, y: e.clientY };
  refreshHint();
});
document.addEventListener('pointerleave', () => { at = null; show(''); });
addEventListener('scroll', () => { at = null; show(''); }, { passive: true });
addEventListener('keydown', (e) => { if (e.key === 'Escape') { at = null; show(''); } });
addEventListener('focusin', (e) => {
  if (!e.target.matches(':focus-visible')) return;
  const target = e.target.closest('[data-hint]');
  const box = e.target.getBoundingClientRect();
  at = null;
  show(target?.dataset.hint, box.left, box.bottom);
});
addEventListener('focusout', () => show(''));
