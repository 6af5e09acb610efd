// The timeline: one column per JAM slot; blocks, cores, and the rollup's bundles.
//
// A mark stands at its slot in a picture that is as wide as time is long. From slot to slot the
// picture moves left as a whole, and only marks that are new or that ended are drawn. What goes on is
// drawn far beyond the right edge, which cuts it off.
//
// The marks have a picture of their own, so that the browser can move it without a layout and
// without painting. Both pictures are higher than the panel, which cuts them off: if the height of a
// picture changed with its rows, the browser would lay out every text in it again.

import { byId, calm, el, Keyed, set } from './dom.js';
import { explain, term } from './hints.js';
import { reach } from './keys.js';

const legend = [
  ['queued', 'queued', 'Waits for a free core, or until its package is built and sent.'],
  ['submitted', 'submitted', 'A guarantor has the package. No block of JAM reports it yet.'],
  ['guaranteed', 'guaranteed', 'A block of JAM reports it: it is on a core, until its data is available.'],
  ['accumulated', 'accumulated', 'JAM has applied it to the rollup\u2019s state. A reorganization can undo that.'],
  ['finalized', 'finalized', 'Final: nothing can undo it.'],
  ['dead', 'dead', 'This package can never be accumulated. Its block gets another version.'],
  ['digit', 'packages in a JAM block', 'The number in a JAM block says how many packages it accumulates, of any rollup.'],
];

export function drawLegend() {
  byId('legend').replaceChildren(...legend.map(([kind, name, hint]) => explain(el('li', { class: kind }, term(name, hint)), hint)));
}

// Heights of rows, and a length beyond every edge, in pixels.
const axis = 20, lane = 26, core = 19, row = 17, gap = 9, bar = 11, beyond = 4000;

// Slots that a picture lasts: coordinates far from zero are inexact.
const kept = 2000;

const panel = byId('timeline');
reach(panel, () => (picture ? rowsOf(picture) : []));

let picture; // the elements, made for a width
let width = 0; // of the panel; to ask for it in a drawing would cost a layout

/** watchWidth calls draw when the width of the timeline has changed. */
export function watchWidth(draw) {
  new ResizeObserver(([box]) => {
    const now = Math.floor(box.contentRect.width);
    if (now === width) return; // the height changed
    width = now;
    draw();
  }).observe(panel);
}

/** Row is a line of the picture: its label does not move with time, its marks do. */
class Row {
  constructor(labels, moving) {
    this.head = el('g');
    this.line = el('g');
    labels.append(this.head);
    moving.append(this.line);
    this.texts = new Keyed(this.head);
    this.marks = new Keyed(this.line);
  }

  /** draw draws the row at a height, anew if its content is not that of the last time. */
  draw(y, content, drawing) {
    if (this.y !== y) {
      this.y = y;
      for (const g of [this.head, this.line]) g.setAttribute('transform', `translate(0 ${y})`);
    }
    const now = JSON.stringify(content);
    if (this.content === now) return;
    this.content = now;
    this.texts.begin();
    this.marks.begin();
    drawing(this);
    this.texts.end();
    this.marks.end();
  }

  label(p, height, text, hint, strong) {
    const at = { class: 'hit', x: 0, y: 0, width: p.gutter - 4, height };
    explain(this.texts.put('label', 'rect', at), hint);
    if (text) this.texts.put('text', 'text', { class: strong ? 'strong' : 'soft', x: 0, y: height / 2 + 4 }, text);
  }

  remove() {
    this.head.remove();
    this.line.remove();
  }
}

export function drawTimeline(chain, bundles, node) {
  if (width < 100) return;
  if (picture?.width !== width || Math.abs(chain.slot - picture.base) > kept) picture = makePicture(width, chain.slot);
  const p = picture;
  p.last = chain.slot;
  p.first = chain.slot - p.columns + 1;
  p.shown = new Set();
  let y = axis;
  y = drawBlocks(p, chain, y);
  y = drawCores(p, chain, y + gap);
  set(p.divider, 'transform', `translate(0 ${y + gap / 2})`);
  const seen = { ...bundles, rows: bundles.rows.filter((b) => isSeen(p, b)) };
  y = drawBundles(p, seen, y + gap);
  for (const [key, r] of p.rows) {
    if (p.shown.has(key)) continue;
    r.remove();
    p.rows.delete(key);
  }
  if (p.height !== y) {
    p.height = y;
    panel.style.height = y + 'px';
  }
  set(panel, 'aria-label', `JAM slot ${chain.slot}, best block in slot ${chain.best}, final block in slot ${chain.final}; ${seen.rows.length} bundles`);
  move(p, node);
}

/** isSeen reports whether a bundle has a mark within the picture: the older final ones have left it. */
const isSeen = (p, b) => b.state !== 'finalized' || (b.versions.at(-1)?.marks.at(-1)?.at ?? p.last) >= p.first;

function makePicture(width, base) {
  const narrow = width < 560, gutter = narrow ? 66 : 126;
  const columns = Math.max(8, Math.min(64, Math.floor((width - gutter) / (narrow ? 15 : 26))));
  const step = Math.round((100 * (width - gutter)) / columns) / 100;
  const p = { width, base, narrow, gutter, columns, step, rows: new Map(), x: (slot) => Math.round(100 * (slot - base) * step) / 100 };
  p.moving = el('svg', { class: 'moving', height: beyond });
  p.labels = el('g');
  p.stack = { labels: el('g'), moving: el('g') };
  p.labels.append(p.stack.labels);
  p.moving.append(p.stack.moving);
  p.divider = el('line', { class: 'grid', x1: 0, x2: width, y1: 0, y2: 0 });
  p.view = el('div', { class: 'view' }, p.moving);
  p.view.style.left = gutter + 'px';
  panel.replaceChildren(el('svg', { width, height: beyond }, ...makeAxis(p), p.divider, p.labels), p.view);
  return p;
}

/** rowsOf returns the explained elements for the keyboard, row by row and from left to right. */
function rowsOf(p) {
  const at = (e) => e.getBoundingClientRect().x, { left, right } = p.view.getBoundingClientRect();
  return [...p.rows.values()].sort((a, b) => a.top - b.top).map((r) => {
    const seen = [...r.line.querySelectorAll('.mark')].filter((e) => at(e) + e.getBoundingClientRect().width > left && at(e) < right);
    return [...r.head.querySelectorAll('.hit'), ...seen.sort((a, b) => at(a) - at(b))];
  });
}

function makeAxis(p) {
  const all = [];
  for (let back = 0; back < p.columns; back += p.narrow ? 5 : 10) {
    const left = p.gutter + (p.columns - 1 - back) * p.step, x = left + (back ? p.step / 2 : p.step);
    all.push(el('text', { x, y: 11, 'text-anchor': back ? 'middle' : 'end' }, back ? `\u2212${back}` : 'now'));
    if (back) all.push(el('line', { class: 'grid', x1: x, x2: x, y1: axis - 3, y2: beyond }));
    else all.push(el('rect', { class: 'stripe', x: left, y: axis - 3, width: p.step, height: beyond, rx: 3 }));
  }
  all.push(el('text', { x: 0, y: 11 }, 'slot'));
  return all;
}

/** move puts the picture at its slot. It glides there if slots are slow enough to see it. */
function move(p, node) {
  if (p.at === p.last) return; // it may still glide there
  const glides = node.slotMillis >= 1000 && p.last - p.at > 0 && p.last - p.at < 4 && !calm.matches;
  p.moving.style.transition = glides ? 'transform .45s ease-out' : 'none';
  p.moving.style.transform = `translateX(${-p.x(p.first)}px)`;
  p.at = p.last;
}

/** rowOf returns the row with a key, whose place is for the keyboard. */
function rowOf(p, key, top, { labels, moving } = p) {
  p.shown.add(key);
  if (!p.rows.has(key)) p.rows.set(key, new Row(labels, moving));
  const r = p.rows.get(key);
  r.top = top;
  return r;
}

function drawBlocks(p, chain, top) {
  const places = new Map();
  let lanes = 1;
  for (const b of chain.blocks) {
    const laneOf = Math.min(b.lane, 3);
    if (b.slot >= p.first) lanes = Math.max(lanes, laneOf + 1);
    places.set(b.id, { x: p.x(b.slot) + p.step / 2, y: lane * laneOf + lane / 2, off: b.lane > 0 });
  }
  rowOf(p, 'blocks', top).draw(top, [chain.blocks, chain.slot], (r) => {
    r.label(p, lane, p.narrow ? 'blocks' : 'JAM blocks', 'The JAM chain. A green block is final; a blue one can still be replaced; a dashed red one is on a branch that is not the best. The number says how many packages it accumulates, of any rollup.');
    const shown = chain.blocks.filter((b) => b.slot >= p.first);
    for (const b of shown) drawLink(p, r.marks, b, places.get(b.parent), places.get(b.id));
    drawSkipped(p, r.marks, chain);
    for (const b of shown) drawBlock(p, r.marks, b, places.get(b.id));
  });
  return top + lane * lanes;
}

function drawLink(p, marks, b, from, to) {
  if (!from) return;
  const bend = from.y === to.y ? `L${to.x} ${to.y}` : `C${from.x + p.step * 0.7} ${from.y} ${to.x - p.step * 0.7} ${to.y} ${to.x} ${to.y}`;
  marks.put('link ' + b.id, 'path', { class: 'link-line' + (to.off ? ' off' : ''), d: `M${from.x} ${from.y}${bend}` });
}

function drawSkipped(p, marks, chain) {
  const slots = new Set(chain.blocks.map((b) => b.slot));
  const oldest = chain.blocks.length ? chain.blocks[0].slot : p.last;
  for (let s = Math.max(p.first, oldest); s <= p.last; s++) {
    if (slots.has(s)) continue;
    marks.put('dot ' + s, 'circle', { class: 'skipped', cx: p.x(s) + p.step / 2, cy: lane / 2, r: 2.5 });
    explain(marks.put('skipped ' + s, 'rect', { class: 'mark hit', x: p.x(s), y: 0, width: p.step, height: lane }),
      () => (s === picture.last ? `Slot ${s} has begun, and has no block yet.` : `Slot ${s} was skipped: it has no block.`));
  }
}

function drawBlock(p, marks, b, at) {
  const size = Math.min(15, p.step - 4);
  const kind = b.lane > 0 ? ' off' : b.final ? ' final' : '';
  const box = marks.put(b.id, 'rect', { class: 'mark block' + kind, x: at.x - size / 2, y: at.y - size / 2, width: size, height: size, rx: 4 });
  explain(box, () => {
    const where = b.lane > 0 ? 'on a branch that is not the best' : b.final ? 'final' : 'on the best branch, not final yet';
    const holds = [`${b.reports} reported`, `${b.accumulated} accumulated`];
    if (b.verdicts) holds.push(`${b.verdicts} cleared by verdict`);
    return `JAM block ${b.id}, slot ${b.slot}, ${where}.\nPackages: ${holds.join(', ')}.`;
  });
  if (b.accumulated) marks.put('count ' + b.id, 'text', { class: 'count' + kind, x: at.x, y: at.y + 3.2 }, b.accumulated > 99 ? '99' : b.accumulated);
}

const ends = { available: 'its data is available', verdict: 'a verdict took it', timeout: 'its data was not available in time', '': 'it is there' };

function drawCores(p, chain, top) {
  let y = top;
  for (const c of chain.cores) {
    const reports = c.reports.filter((r) => !r.to || r.to >= p.first);
    rowOf(p, 'core ' + c.core, y).draw(y, reports, (r) => {
      r.label(p, core, `core ${c.core}`, 'What is on this core of JAM, along the best branch: from a package\u2019s report until its data is available.');
      for (const report of reports) drawReport(p, r.marks, c.core, report);
    });
    y += core;
  }
  return y;
}

function drawReport(p, marks, on, r) {
  const x = p.x(r.from) + 1, w = r.to ? Math.max(3, p.x(r.to) - x - 2) : beyond;
  const lost = r.end === 'verdict' || r.end === 'timeout';
  const box = marks.put(r.from, 'rect', { class: 'mark ' + (r.n ? 'guaranteed' : 'foreign') + (lost ? ' lost' : ''), x, y: 2, width: w, height: core - 5, rx: 3 });
  explain(box, () => {
    const name = r.n ? `Block ${r.n}, package v${r.v}` : 'A package of another rollup';
    return `${name}, on core ${on} since slot ${r.from}: ${ends[r.end]}${r.to ? ', slot ' + r.to : ''}.`;
  });
  if (r.n && w > 7 * String(r.n).length + 2) {
    const middle = r.to ? x + w / 2 : x + p.step / 2;
    marks.put('number ' + r.from, 'text', { class: 'in', x: middle, y: core / 2 + 3.2 }, r.n);
  }
  if (lost) cross(marks, 'cross ' + r.from, p.x(r.to), core / 2);
}

/** cross draws a cross, and returns its element. */
function cross(marks, key, x, y) {
  const d = 3.4, at = (dx, dy) => `${x + dx} ${y + dy}`;
  return marks.put(key, 'path', { class: 'cross', d: `M${at(-d, -d)}L${at(d, d)}M${at(-d, d)}L${at(d, -d)}` });
}

function drawBundles(p, bundles, top) {
  let y = top + 4;
  if (bundles.more) {
    rowOf(p, 'more', y).draw(y, bundles.more, (r) => r.label(p, row, p.narrow ? `+${bundles.more}` : `+ ${bundles.more} newer`, `${bundles.more} newer blocks wait in the queue.`));
    y += row;
  }
  if (!bundles.rows.length) {
    rowOf(p, 'none', y).draw(y, p.width, (r) => r.texts.put('none', 'text', { class: 'over', x: p.gutter + 8, y: 13 }, 'No rollup block is on its way.'));
    return y + row + 4;
  }
  return drawStack(p, bundles.rows, y) + 4;
}

/** drawStack draws the bundles. A new one on top moves the stack as a whole, and no row within it. */
function drawStack(p, bundles, top) {
  const all = bundles.flatMap((b) => {
    const versions = b.versions.length ? b.versions : [{ v: 1, marks: [{ s: 'queued', at: p.last }] }];
    return versions.map((v, i) => ({ b, v, first: i === 0, named: versions.length > 1, key: `bundle ${b.n} ${v.v}`, height: row + (versions.length > 1 && i === versions.length - 1 ? 3 : 0) }));
  });
  const height = all.reduce((sum, each) => sum + each.height, 0);
  // y is a place in the stack, whose lowest row stays at its place; low is the same in the picture.
  const lowest = all.at(-1);
  let y = (p.rows.get(lowest.key)?.y ?? 0) + lowest.height, low = top + height;
  for (const { b, v, first, named, key, height } of all.reverse()) {
    y -= height;
    low -= height;
    rowOf(p, key, low, p.stack).draw(y, [b.n, b.txs, b.state, v, first, named], (r) => {
      drawNames(p, r, b, v, first, named);
      drawVersion(p, r.marks, b, v);
    });
  }
  for (const g of [p.stack.labels, p.stack.moving]) set(g, 'transform', `translate(0 ${top - y})`);
  return top + height;
}

/** drawNames draws the labels of a version: block, version with the rule by which it died, and size. */
function drawNames(p, r, b, v, first, named) {
  const dead = b.versions.filter((each) => each.dead).length;
  const hint = `Rollup block ${b.n}: ${b.txs} transaction${b.txs === 1 ? '' : 's'}, ${b.state}.` + (dead ? `\n${dead} of its packages ${dead === 1 ? 'is' : 'are'} dead.` : '');
  r.label(p, row, first ? `#${b.n}` : '', hint, true);
  const y = row / 2 + 4, right = p.gutter - 8;
  if (first && !p.narrow) r.texts.put('txs', 'text', { class: 'soft', x: right, y, 'text-anchor': 'end' }, `${b.txs} tx`);
  if (!named) return;
  const rule = v.dead && !p.narrow ? ' ' + v.dead.split(':')[0] : '';
  r.texts.put('version', 'text', { class: v.dead ? 'rule' : 'soft', x: p.narrow ? right : right - 36, y, 'text-anchor': 'end' }, `v${v.v}${rule}`);
}

const shownAs = { reserved: 'queued', building: 'queued', sending: 'queued', failed: 'dead' };

/** spans turns marks into stretches of time. Marks in one slot share its width. The last one goes on. */
function spans(marks) {
  const merged = [];
  for (const m of marks) {
    const kind = shownAs[m.s] ?? m.s;
    if (merged.at(-1)?.kind !== kind) merged.push({ kind, slot: m.at });
  }
  const within = new Map();
  for (const m of merged) within.set(m.slot, (within.get(m.slot) ?? 0) + 1);
  const used = new Map();
  for (const m of merged) {
    const n = used.get(m.slot) ?? 0;
    used.set(m.slot, n + 1);
    m.from = m.slot + n / within.get(m.slot);
  }
  merged.forEach((m, i) => {
    m.to = merged[i + 1]?.from ?? (m.kind === 'finalized' ? m.from + Math.min(1, 1 / within.get(m.slot)) : null);
    if (m.to !== null) m.to = Math.max(m.to, m.from + 0.12);
  });
  return merged;
}

function drawVersion(p, marks, b, v) {
  const about = `Block ${b.n}, package v${v.v}${v.pkg ? ' (' + v.pkg + ')' : ''}${v.sends ? `, sent ${v.sends === 1 ? 'once' : v.sends + ' times'} to core ${v.core}` : ''}`;
  spans(v.marks).forEach((s, i) => {
    const x = p.x(s.from);
    if (s.kind === 'dead') {
      cross(marks, 'cross ' + i, x + 5, row / 2);
      explain(marks.put(i, 'rect', { class: 'mark hit', x: x - 2, y: 0, width: 14, height: row }), `${about}.\nDead since slot ${s.slot}. ${v.dead ?? ''}`);
      return;
    }
    const w = s.to === null ? beyond : Math.max(2, p.x(s.to) - x - 1);
    const box = marks.put(i, 'rect', { class: `mark ${s.kind}${v.dead ? ' lost' : ''}`, x, y: (row - bar) / 2, width: w, height: bar, rx: 2.5 });
    explain(box, () => {
      const slots = Math.max(1, Math.round(s.to - s.from));
      const until = s.to === null ? 'so far' : `for ${slots} slot${slots > 1 ? 's' : ''}`;
      return `${about}.\n${s.kind[0].toUpperCase() + s.kind.slice(1)} since slot ${s.slot}, ${until}.`;
    });
  });
}
