// Everything but the timeline: counts, heads, plots, events.

import { byId, el, Keyed, set, setText } from './dom.js';
import { explain, term } from './hints.js';

const steps = [
  { key: 'sent', name: 'Users', kind: 'users', note: 'sent so far', hint: 'Transactions that wallets have sent since the node started, and that the pool took.' },
  { key: 'pool', name: 'Pool', kind: 'pool', note: 'wait to run', hint: 'Transactions in the mempool. The node executes those that pay most first.' },
  { key: 'queue', name: 'Queue', kind: 'queued', note: 'wait for a core', hint: 'Executed into rollup blocks. Each block waits for a free core, and until its package is built and sent.' },
  { key: 'cores', name: 'Cores', kind: 'submitted', note: 'on JAM\u2019s cores', hint: 'In packages that were sent to JAM: with a guarantor, or reported on the chain and not available yet.' },
  { key: 'accumulated', name: 'Accumulated', kind: 'accumulated', note: 'may be undone', hint: 'JAM has applied them to the rollup\u2019s state. A reorganization of JAM can still undo that.' },
  { key: 'finalized', name: 'Finalized', kind: 'finalized', note: 'for good', hint: 'Final on JAM since the node started: nothing can undo them.' },
];

let flow; // the elements, once made

function makeFlow() {
  flow = steps.map((s) => {
    const count = el('b', {}, '0'), note = el('small', {}, s.note);
    const item = explain(el('li', { class: s.kind }, count, term(s.name, s.hint), note), s.hint);
    return { item, count, note };
  });
  byId('flow').replaceChildren(...flow.map((f) => f.item));
}

export function drawFlow(now, node) {
  if (!flow) makeFlow();
  steps.forEach((s, i) => setText(flow[i].count, format(now[s.key])));
  setText(flow[5].note, now.rate > 0 ? `for good, ${format(now.rate)}/s` : 'for good');
  const empty = byId('empty');
  empty.toggleAttribute('hidden', now.sent > 0 || now.finalized > 0 || now.pool + now.queue + now.cores > 0);
  if (!empty.hidden && !empty.childElementCount) {
    empty.replaceChildren('Nothing was sent since the node started. Point a wallet or a script at ', el('code', {}, location.origin), ' (chain id ' + node.chainId + '), and watch it move.');
  }
}

const number = new Intl.NumberFormat('en', { maximumFractionDigits: 1 });
const short = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });
const format = (n) => number.format(n);

const heads = [
  { key: 'pending', kind: 'pending', hint: 'The newest block that the node has executed. Wallets see it at once.' },
  { key: 'latest', kind: 'latest', hint: 'The newest block that JAM has accumulated, with every block before it.' },
  { key: 'safe', kind: 'safe', hint: 'The newest block that cannot be undone unless JAM\u2019s finality fails. Here it is always the same as finalized.' },
  { key: 'finalized', kind: 'fin', hint: 'The newest block that is final on JAM, with every block before it.' },
];

export function drawHeads(now) {
  const list = byId('heads');
  if (!list.childElementCount) {
    list.append(...heads.map((h) => explain(el('div', { class: h.kind },
      el('dt', {}, term(h.key, h.hint)), el('dd', { class: 'bar', 'aria-hidden': 'true' }, el('i')), el('dd', { class: 'behind' }), el('dd', { class: 'number' }, '0')), h.hint)));
  }
  // A bar begins at block 0, so that it is as long as its number says. On a long chain all are full,
  // and the distance to pending is in words.
  heads.forEach((h, i) => {
    const row = list.children[i];
    setText(row.lastElementChild, format(now[h.key]));
    const behind = now.pending - now[h.key];
    setText(row.querySelector('.behind'), behind > 0 ? `${format(behind)} behind` : '');
    const part = now.pending > 0 ? now[h.key] / now.pending : 0;
    const filled = `scaleX(${part.toFixed(3)})`, bar = row.querySelector('i').style;
    if (bar.transform !== filled) bar.transform = filled;
  });
}

const plots = [
  { key: 'base', name: 'Base fee', unit: 'gwei', kind: 'submitted', hint: 'The least that each unit of gas costs in the next block (EIP-1559). It rises by up to an eighth after a full block, and falls after an empty one.' },
  { key: 'floor', name: 'Floor', unit: 'gwei', kind: 'accumulated', hint: 'The least price that the pool takes, whatever the base fee. The base fee is the market here, so this stays at one wei.' },
  { key: 'surge', name: 'Surge', unit: '\u00d7', kind: 'guaranteed', least: 1, hint: 'The factor by which newcomers pay more than the floor while the pool fills up.' },
  { key: 'full', name: 'Pool in use', unit: '%', scale: 100, kind: 'finalized', hint: 'The share of the pool\u2019s room that is taken.' },
];

/** drawPlots shows the newest value of each, and a curve of those that moved. */
export function drawPlots(fees) {
  const box = byId('plots');
  if (!box.childElementCount) {
    box.append(...plots.map((p) => explain(el('figure', { class: p.kind },
      el('figcaption', {}, term(p.name, p.hint), el('b', {}, el('span'), el('small'))),
      el('svg', { viewBox: '0 0 100 40', preserveAspectRatio: 'none', 'aria-hidden': 'true' }, el('path', { class: 'area' }), el('path', { class: 'stroke' }))), p.hint)));
  }
  if (!fees?.length) return;
  plots.forEach((p, i) => {
    const values = fees.map((f) => f[p.key] * (p.scale ?? 1));
    const [value, unit] = readable(values.at(-1), p.unit);
    const figure = box.children[i], svg = figure.lastElementChild;
    setText(figure.querySelector('b span'), short.format(value));
    setText(figure.querySelector('b small'), ' ' + unit);
    const moved = values.some((v) => v !== values[0]);
    svg.toggleAttribute('hidden', !moved);
    if (!moved) return;
    const { area, stroke } = curve(fees.map((f) => f.at), values, p.least ?? 0);
    set(svg.firstElementChild, 'd', area);
    set(svg.lastElementChild, 'd', stroke);
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
  let stroke = '';
  values.forEach((v, i) => {
    const until = times[i + 1] ?? end;
    if (until < begin) return;
    stroke += `${stroke ? 'L' : 'M'}${x(times[i]).toFixed(2)} ${y(v).toFixed(2)}L${x(until).toFixed(2)} ${y(v).toFixed(2)}`;
  });
  const first = stroke.slice(1).split(' ')[0];
  return { stroke, area: `${stroke}L100 40L${first} 40Z` };
}

const clock = new Intl.DateTimeFormat('en', { hour: '2-digit', minute: '2-digit', second: '2-digit', hour12: false });
let lines; // the events that are shown

/** drawEvents adds the events that are new. An event never changes. */
export function drawEvents(events) {
  const list = byId('events');
  lines ??= new Keyed(list);
  lines.begin();
  if (!events.length) {
    lines.put('none', 'li', {}).replaceChildren(el('time', {}, '\u2014'), el('i'), el('span', {}, 'Nothing yet.'));
  }
  for (const e of events.toReversed()) {
    const line = lines.put(e.id, 'li', { class: 'k-' + e.kind });
    if (line.childElementCount) continue;
    line.append(el('time', {}, clock.format(e.at)), el('i'), el('span', {}, e.text), el('small', {}, `slot ${e.slot}`));
    list.prepend(line);
  }
  lines.end();
}
