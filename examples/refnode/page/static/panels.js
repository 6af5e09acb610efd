// Everything but the timeline: counts, heads, plots, events.

import { byId, calm, el, setText } from './dom.js';

const steps = [
  { key: 'sent', name: 'Users', kind: 'users', note: 'sent so far', hint: 'Transactions that wallets sent since the node started and the pool took.' },
  { key: 'pool', name: 'Pool', kind: 'pool', note: 'wait to run', hint: 'Transactions in the mempool. The best paying are executed first.' },
  { key: 'queue', name: 'Queue', kind: 'queued', note: 'wait for a core', hint: 'Executed into rollup blocks. Each block waits for a free core, and for its package to be built and sent.' },
  { key: 'cores', name: 'Cores', kind: 'submitted', note: 'on JAM\u2019s cores', hint: 'In packages that were sent to JAM: with a guarantor, or reported on the chain and not available yet.' },
  { key: 'accumulated', name: 'Accumulated', kind: 'accumulated', note: 'may be undone', hint: 'JAM has taken them into the rollup\u2019s state. A reorganization of JAM can still take that back.' },
  { key: 'finalized', name: 'Finalized', kind: 'finalized', note: 'for good', hint: 'Final on JAM since the node started: nothing can undo them.' },
];

let flow; // the elements, once made

function makeFlow() {
  flow = steps.map((s) => {
    const count = el('b', {}, '0');
    const note = el('small', {}, s.note);
    const item = el('li', { class: s.kind, 'data-hint': s.hint }, count, el('span', {}, s.name), note);
    item.addEventListener('animationend', () => item.classList.remove('moved'));
    return { item, count, note, shown: 0, value: 0 };
  });
  byId('flow').replaceChildren(...flow.map((f) => f.item));
}

export function drawFlow(now, node) {
  if (!flow) makeFlow();
  steps.forEach((s, i) => {
    const f = flow[i];
    if (now[s.key] > f.value && i > 0) f.item.classList.add('moved');
    if (now[s.key] !== f.value) count(f, now[s.key]);
  });
  setText(flow[5].note, now.rate > 0 ? `for good, ${format(now.rate)}/s` : 'for good');
  const empty = byId('empty');
  empty.hidden = now.sent > 0 || now.finalized > 0 || now.pool + now.queue + now.cores > 0;
  if (!empty.hidden && !empty.childElementCount) {
    empty.replaceChildren('Nothing was sent since the node started. Point a wallet or a script at ', el('code', {}, location.origin), ' (chain id ' + node.chainId + '), and watch it move.');
  }
}

const format = (n) => n.toLocaleString('en', { maximumFractionDigits: 1 });

/** count lets a number run to its new value. */
function count(f, value) {
  const from = f.shown, began = performance.now();
  f.value = value;
  const step = (t) => {
    if (f.value !== value) return; // there is a newer one
    const part = calm.matches ? 1 : Math.min(1, Math.max(0, (t - began) / 240));
    f.shown = Math.round(from + (value - from) * part);
    setText(f.count, format(f.shown));
    if (part < 1) requestAnimationFrame(step);
  };
  step(began + (calm.matches ? 240 : 0));
  requestAnimationFrame(step);
}

const heads = [
  { key: 'pending', kind: 'pending', hint: 'The newest block that the node has executed. Wallets see it at once.' },
  { key: 'latest', kind: 'latest', hint: 'The newest block that JAM has accumulated, with every block before it.' },
  { key: 'safe', kind: 'safe', hint: 'The newest block at JAM\u2019s justified point. JAM as this node sees it has none, so it is finalized.' },
  { key: 'finalized', kind: 'fin', hint: 'The newest block that is final on JAM, with every block before it.' },
];

export function drawHeads(now) {
  const list = byId('heads');
  if (!list.childElementCount) {
    list.append(...heads.map((h) => el('div', { class: h.kind, 'data-hint': h.hint },
      el('dt', {}, h.key), el('dd', { class: 'bar' }, el('i')), el('dd', { class: 'number' }, '0'))));
  }
  // The bars show the last blocks only: what is final is the same for all.
  const base = Math.max(0, now.finalized - Math.max(4, Math.round((now.pending - now.finalized) / 3)));
  heads.forEach((h, i) => {
    const row = list.children[i];
    setText(row.lastElementChild, format(now[h.key]));
    row.querySelector('i').style.width = now.pending > base ? (100 * (now[h.key] - base)) / (now.pending - base) + '%' : '0';
  });
}

const plots = [
  { key: 'base', name: 'Base fee', unit: 'gwei', kind: 'submitted', hint: 'What each unit of gas costs at least in the next block (EIP-1559). It rises by an eighth after a full block, and falls after an empty one.' },
  { key: 'floor', name: 'Floor', unit: 'gwei', kind: 'accumulated', hint: 'The least price that the pool takes, whatever the base fee. The base fee is the market here, so this stays at one wei.' },
  { key: 'surge', name: 'Surge', unit: '\u00d7', kind: 'guaranteed', least: 1, hint: 'By which factor newcomers pay more than the floor while the pool fills up.' },
  { key: 'full', name: 'Pool in use', unit: '%', scale: 100, kind: 'finalized', hint: 'How much of the pool\u2019s room is taken.' },
];

export function drawPlots(fees) {
  const box = byId('plots');
  if (!box.childElementCount) {
    box.append(...plots.map((p) => el('figure', { class: p.kind, 'data-hint': p.hint },
      el('figcaption', {}, p.name, el('b', {}, el('span'), el('small', {}, ' ' + p.unit))), el('svg', { viewBox: '0 0 100 40', preserveAspectRatio: 'none', 'aria-hidden': 'true' }))));
  }
  if (!fees?.length) return;
  plots.forEach((p, i) => {
    const values = fees.map((f) => f[p.key] * (p.scale ?? 1));
    const [value, unit] = readable(values.at(-1), p.unit);
    setText(box.children[i].querySelector('b span'), value.toLocaleString('en', { maximumSignificantDigits: 3 }));
    setText(box.children[i].querySelector('b small'), ' ' + unit);
    box.children[i].querySelector('svg').replaceChildren(...curve(fees.map((f) => f.at), values, p.least ?? 0));
  });
}

/** readable gives a price that is a tiny part of a gwei in wei. */
const readable = (value, unit) => (unit === 'gwei' && value > 0 && value < 1e-4 ? [value * 1e9, 'wei'] : [value, unit]);

/** curve draws values that hold until the next, over the last three minutes, or since there are any. */
function curve(times, values, least) {
  const end = Math.max(Date.now(), times.at(-1)), begin = Math.max(end - 180_000, Math.min(times[0], end - 20_000)), span = end - begin;
  const top = Math.max(...values, least + 1e-9), low = Math.min(least, ...values);
  const x = (t) => 100 * Math.max(0, (t - begin) / span);
  const y = (v) => 37 - 33 * ((v - low) / (top - low || 1));
  let d = '';
  values.forEach((v, i) => {
    const until = times[i + 1] ?? end;
    if (until < begin) return;
    d += `${d ? 'L' : 'M'}${x(times[i]).toFixed(2)} ${y(v).toFixed(2)}L${x(until).toFixed(2)} ${y(v).toFixed(2)}`;
  });
  const first = d.slice(1).split(' ')[0];
  return [el('path', { class: 'area', d: `${d}L100 40L${first} 40Z` }), el('path', { class: 'stroke', d })];
}

let newest = -1;

export function drawEvents(events) {
  const list = byId('events');
  if (!events.length) {
    newest = -1;
    list.replaceChildren(el('li', {}, el('time', {}, '\u2014'), el('i'), el('span', {}, 'Nothing yet.')));
    return;
  }
  if (events[0].id === newest && list.childElementCount === events.length) return;
  newest = events[0].id;
  list.replaceChildren(...events.map((e) => el('li', { class: 'k-' + e.kind, 'data-hint': `in JAM slot ${e.slot}` },
    el('time', {}, new Date(e.at).toLocaleTimeString('en', { hour12: false })), el('i'), el('span', {}, e.text))));
}
