// The timeline: one column per JAM slot; blocks, cores, and the rollup's bundles.

import { byId, calm, el } from './dom.js';

const legend = [
  ['queued', 'queued', 'Waits for a free core, or for its package to be built and sent.'],
  ['submitted', 'submitted', 'A guarantor has the package. No block of JAM reports it yet.'],
  ['guaranteed', 'guaranteed', 'A block of JAM reports it: it is on a core, until its data is available.'],
  ['accumulated', 'accumulated', 'JAM has taken it into the rollup\u2019s state. A reorganization can take that back.'],
  ['finalized', 'finalized', 'Final: nothing can undo it.'],
  ['dead', 'dead', 'This package can never be accumulated. Its block gets another version.'],
];

export function drawLegend() {
  byId('legend').replaceChildren(...legend.map(([kind, name, hint]) => el('li', { class: kind, 'data-hint': hint }, name)));
}

// Heights of rows, in pixels.
const axis = 20, lane = 26, core = 19, row = 17, gap = 9, bar = 11;
let lastSlot = 0;
const glide = { began: -1e9, by: 0, time: 450 };

export function drawTimeline({ chain, bundles, node }) {
  const box = byId('timeline');
  const width = Math.floor(box.clientWidth);
  if (width < 100) return;
  const gutter = width < 560 ? 62 : 118;
  const columns = Math.max(8, Math.min(64, Math.floor((width - gutter) / (width < 560 ? 15 : 26))));
  const step = (width - gutter) / columns;
  const first = chain.slot - columns + 1;
  const p = { x: (slot) => gutter + (slot - first) * step, step, first, last: chain.slot, gutter, narrow: width < 560, node };

  const moving = el('g'), labels = el('g');
  let y = axis;
  y = drawBlocks(p, chain, y, moving, labels);
  y = drawCores(p, chain, y + gap, moving, labels);
  const below = y + gap;
  const height = drawBundles(p, bundles, below, moving, labels);
  const svg = el('svg', { width, height, viewBox: `0 0 ${width} ${height}`, role: 'img', 'aria-label': `JAM slot ${chain.slot}, best block in slot ${chain.best}, final block in slot ${chain.final}; ${bundles.rows.length} bundles` });
  drawAxis(p, svg, height);
  const view = el('svg', { x: gutter, y: 0, width: width - gutter, height, viewBox: `${gutter} 0 ${width - gutter} ${height}` }, moving);
  svg.append(el('line', { class: 'grid', x1: 0, x2: width, y1: below - gap / 2, y2: below - gap / 2 }), view, labels);
  slide(moving, chain.slot, step, node);
  box.replaceChildren(svg);
}

/** slide lets the picture glide when slots are slow enough to see it. */
function slide(moving, slot, step, node) {
  const by = slot - lastSlot, now = performance.now();
  if (lastSlot && by > 0 && by < 4 && node.slotMillis >= 1000) Object.assign(glide, { began: now, by });
  lastSlot = slot;
  const since = now - glide.began; // drawn anew while it glides, it goes on gliding
  if (since >= glide.time || calm.matches) return;
  moving.classList.add('slide');
  moving.style.setProperty('--by', glide.by * step + 'px');
  moving.style.animationDelay = -since + 'ms';
}

function drawAxis(p, svg, height) {
  const every = p.narrow ? 5 : 10;
  for (let back = 0; p.last - back >= p.first; back += every) {
    const x = p.x(p.last - back) + p.step / 2;
    svg.append(el('text', { x: back ? x : x + p.step / 2, y: 11, 'text-anchor': back ? 'middle' : 'end' }, back ? `\u2212${back}` : 'now'));
    if (back) svg.append(el('line', { class: 'grid', x1: x, x2: x, y1: axis - 3, y2: height }));
  }
  svg.append(el('rect', { class: 'stripe', x: p.x(p.last), y: axis - 3, width: p.step, height: height - axis + 3, rx: 3 }));
  svg.append(el('text', { x: 0, y: 11 }, 'slot'));
}

function drawBlocks(p, chain, top, moving, labels) {
  const places = new Map(), slots = new Set();
  let lanes = 1;
  for (const b of chain.blocks) {
    const laneOf = Math.min(b.lane, 3);
    if (b.slot >= p.first) lanes = Math.max(lanes, laneOf + 1);
    places.set(b.id, { x: p.x(b.slot) + p.step / 2, y: top + lane * laneOf + lane / 2, lane: b.lane });
    slots.add(b.slot);
  }
  const size = Math.min(15, p.step - 4);
  for (const b of chain.blocks) {
    const from = places.get(b.parent), to = places.get(b.id);
    if (!from || b.slot < p.first) continue;
    const off = to.lane > 0 ? ' off' : '';
    const bend = from.y === to.y ? `L${to.x} ${to.y}` : `C${from.x + p.step * 0.7} ${from.y} ${to.x - p.step * 0.7} ${to.y} ${to.x} ${to.y}`;
    moving.append(el('path', { class: 'link-line' + off, d: `M${from.x} ${from.y}${bend}` }));
  }
  const oldest = chain.blocks.length ? chain.blocks[0].slot : p.last;
  for (let s = Math.max(p.first, oldest); s <= p.last; s++) {
    if (slots.has(s)) continue;
    const hint = s === p.last ? `Slot ${s} has begun, and has no block yet.` : `Slot ${s} was skipped: it has no block.`;
    moving.append(el('g', { 'data-hint': hint }, el('rect', { x: p.x(s), y: top, width: p.step, height: lane, fill: 'transparent' }), el('circle', { class: 'skipped', cx: p.x(s) + p.step / 2, cy: top + lane / 2, r: 2.5 })));
  }
  for (const b of chain.blocks) if (b.slot >= p.first) moving.append(blockMark(b, places.get(b.id), size));
  label(labels, p, top + lane / 2, p.narrow ? 'blocks' : 'JAM blocks', 'The JAM chain. A green block is final; a blue one can still be replaced; a dashed red one is on a branch that is not the best. The number says how many packages it accumulates, of any rollup.');
  return top + lane * lanes;
}

function blockMark(b, at, size) {
  const where = b.lane > 0 ? 'on a branch that is not the best' : b.final ? 'final' : 'on the best branch, not final yet';
  const holds = [`${b.reports} reported`, `${b.accumulated} accumulated`];
  if (b.verdicts) holds.push(`${b.verdicts} cleared by verdict`);
  const kind = b.lane > 0 ? ' off' : b.final ? ' final' : '';
  const g = el('g', { 'data-hint': `JAM block ${b.id}, slot ${b.slot}, ${where}.\nPackages: ${holds.join(', ')}.` },
    el('rect', { class: 'block' + kind, x: at.x - size / 2, y: at.y - size / 2, width: size, height: size, rx: 4 }));
  if (b.accumulated) g.append(el('text', { class: 'count', x: at.x, y: at.y + 3.2 }, b.accumulated > 99 ? '99' : b.accumulated));
  return g;
}

function label(to, p, y, text, hint, strong) {
  to.append(el('g', { 'data-hint': hint }, el('rect', { x: 0, y: y - 9, width: p.gutter - 4, height: 18, fill: 'transparent' }),
    el('text', { x: 0, y: y + 4, class: strong ? 'strong' : null }, text)));
}

const ends = { available: 'its data is available', verdict: 'a verdict took it', timeout: 'its data was not available in time', '': 'it is there' };

function drawCores(p, chain, top, moving, labels) {
  let y = top;
  for (const c of chain.cores) {
    label(labels, p, y + core / 2, `core ${c.core}`, 'What is on this core of JAM, along the best branch: from a package\u2019s report until its data is available.');
    for (const r of c.reports) {
      const to = r.to || p.last + 1;
      if (to < p.first) continue;
      const x = Math.max(p.gutter, p.x(r.from) + 1), w = Math.max(3, p.x(to) - x - 2);
      const lost = r.end === 'verdict' || r.end === 'timeout';
      const name = r.n ? `Block ${r.n}, package v${r.v}` : 'A package of another rollup';
      const g = el('g', { 'data-hint': `${name}, on core ${c.core} since slot ${r.from}: ${ends[r.end]}${r.to ? ', slot ' + r.to : ''}.` },
        el('rect', { class: (r.n ? 'guaranteed' : 'foreign') + (lost ? ' lost' : ''), x, y: y + 2, width: w, height: core - 5, rx: 3 }));
      if (r.n && w > 7 * String(r.n).length + 2) g.append(el('text', { class: 'in', x: x + w / 2, y: y + core / 2 + 3.2 }, r.n));
      if (lost) g.append(...cross(p.x(to), y + core / 2));
      moving.append(g);
    }
    y += core;
  }
  return y;
}

function cross(x, y) {
  const d = 3.4;
  return [el('line', { class: 'cross', x1: x - d, y1: y - d, x2: x + d, y2: y + d }), el('line', { class: 'cross', x1: x - d, y1: y + d, x2: x + d, y2: y - d })];
}

function drawBundles(p, bundles, top, moving, labels) {
  let y = top + 4;
  if (bundles.more) {
    label(labels, p, y + row / 2, p.narrow ? `+${bundles.more}` : `+ ${bundles.more} newer`, `${bundles.more} newer blocks wait in the queue.`);
    y += row;
  }
  for (const b of bundles.rows) {
    const dead = b.versions.filter((v) => v.dead).length;
    const hint = `Rollup block ${b.n}: ${b.txs} transaction${b.txs === 1 ? '' : 's'}, ${b.state}.` + (dead ? `\n${dead} of its packages ${dead === 1 ? 'is' : 'are'} dead.` : '');
    const versions = b.versions.length ? b.versions : [{ v: 1, marks: [{ s: 'queued', at: p.last }] }];
    label(labels, p, y + row / 2, `#${b.n}`, hint, true);
    if (!p.narrow) labels.append(el('text', { x: p.gutter - 10, y: y + row / 2 + 4, 'text-anchor': 'end', 'data-hint': hint }, `${b.txs} tx`));
    for (const v of versions) {
      drawVersion(p, b, v, y, moving);
      y += row;
    }
    y += versions.length > 1 ? 3 : 0;
  }
  if (!bundles.rows.length) {
    labels.append(el('text', { class: 'over', x: p.gutter + 8, y: y + 13 }, 'No rollup block is on its way.'));
    y += row;
  }
  return y + 4;
}

const shownAs = { reserved: 'queued', building: 'queued', sending: 'queued', failed: 'dead' };

/** spans turns marks into stretches of time. Marks in one slot share its width. */
function spans(marks, now) {
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
    m.to = merged[i + 1]?.from ?? (m.kind === 'finalized' ? m.from + Math.min(1, 1 / within.get(m.slot)) : now + 1);
    m.to = Math.max(m.to, m.from + 0.12);
  });
  return merged;
}

function drawVersion(p, b, v, y, moving) {
  const all = spans(v.marks, p.last);
  const about = `Block ${b.n}, package v${v.v}${v.pkg ? ' (' + v.pkg + ')' : ''}${v.sends ? `, sent ${v.sends === 1 ? 'once' : v.sends + ' times'} to core ${v.core}` : ''}`;
  const mid = y + row / 2;
  for (const s of all) {
    if (s.to <= p.first) continue;
    if (s.kind === 'dead') {
      const x = p.x(s.from) + 5;
      if (x < p.gutter) continue;
      moving.append(el('g', { 'data-hint': `${about}.\nDead since slot ${s.slot}. ${v.dead ?? ''}` }, el('rect', { x: x - 7, y, width: 14, height: row, fill: 'transparent' }), ...cross(x, mid)));
      if (!p.narrow && p.last - s.from > 1) moving.append(el('text', { x: x + 9, y: mid + 4 }, `v${v.v} dead${v.dead ? ', ' + v.dead.split(':')[0] : ''}`));
      continue;
    }
    const x = Math.max(p.gutter, p.x(s.from)), w = Math.max(2, p.x(s.to) - x - 1);
    const until = s.to > p.last ? 'so far' : `for ${Math.max(1, Math.round(s.to - s.from))} slot${Math.round(s.to - s.from) > 1 ? 's' : ''}`;
    moving.append(el('rect', { class: s.kind + (v.dead ? ' lost' : ''), x, y: mid - bar / 2, width: w, height: bar, rx: 2.5, 'data-hint': `${about}.\n${s.kind[0].toUpperCase() + s.kind.slice(1)} since slot ${s.slot}, ${until}.` }));
  }
}
