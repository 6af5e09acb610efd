// The control bar: it breaks the embedded chain.

import { byId, el, set, setText } from './dom.js';

const knobs = [
  { id: 'loss', of: (lab) => 100 * lab.loss, value: (n) => n / 100, show: (n) => n + ' %' },
  { id: 'skip', of: (lab) => 100 * lab.skip, value: (n) => n / 100, show: (n) => n + ' %' },
  { id: 'latency', of: (lab) => lab.latency, value: (n) => n, show: (n) => (n === 1 ? '1 slot' : n + ' slots') },
];

let made = false;
let holding = null; // the knob that somebody moves: what the node says does not move it then
let lab;

/** post asks the node for a fault, and says on a line of the page what it answered. */
export async function post(name, value, said, line = byId('lab-said')) {
  try {
    const answer = await fetch('/lab/' + name, { method: 'POST', headers: { 'Content-Type': 'application/json' }, body: JSON.stringify({ value }) });
    const text = answer.ok ? said : (await answer.text()).trim();
    line.classList.toggle('bad', !answer.ok);
    setText(line, text);
  } catch {
    line.classList.add('bad');
    setText(line, 'the node does not answer');
  }
}

function make() {
  made = true;
  for (const k of knobs) {
    const input = byId(k.id);
    input.addEventListener('input', () => {
      holding = k.id;
      setText(byId(k.id + '-now'), k.show(input.valueAsNumber));
    });
    input.addEventListener('change', async () => {
      await post(k.id, k.value(input.valueAsNumber), '');
      holding = null;
    });
  }
  for (let depth = 1; depth <= lab.maxDepth; depth++) {
    byId('depth').append(el('option', { value: depth }, depth === 1 ? '1 block' : depth + ' blocks'));
  }
  byId('depth').value = Math.min(3, lab.maxDepth);
  byId('reorg').addEventListener('click', () => post('reorg', Number(byId('depth').value), 'A branch grows. Watch the blocks.'));
  byId('stop').addEventListener('click', () => post('stop', !lab.finalityStopped, ''));
  byId('kill').addEventListener('click', () => post('kill', 0, 'It will die. Watch for its next version.'));
  byId('repair').addEventListener('click', async () => {
    for (const [name, value] of [['loss', 0], ['skip', 0], ['latency', 1], ['stop', false]]) await post(name, value, 'All is well again.');
  });
}

export function drawLab(now) {
  byId('lab').hidden = !now;
  if (!now) return;
  lab = now;
  if (!made) make();
  for (const k of knobs) {
    if (holding === k.id) continue;
    const n = Math.round(k.of(lab));
    if (byId(k.id).valueAsNumber !== n) byId(k.id).value = n;
    setText(byId(k.id + '-now'), k.show(n));
  }
  const stop = byId('stop');
  set(stop, 'aria-pressed', lab.finalityStopped);
  setText(stop, lab.finalityStopped ? 'Finality stopped' : 'Stop finality');
}
