// The connection to the node, and when to draw.

import { byId, el, setText } from './dom.js';
import { refreshHint } from './hints.js';
import { drawEvents, drawFlow, drawHeads, drawPlots } from './panels.js';
import { drawFound } from './find.js';
import { drawLegend, drawTimeline, watchWidth } from './timeline.js';
import { drawLab } from './lab.js';
import { drawCluster } from './cluster.js';

let state = {}, drawn = {};
let due = false;

// What is drawn from which parts of the state. The parts that did not change are the same objects.
const drawings = [
  [['node'], drawFacts],
  [['lab'], drawLab],
  [['cluster'], drawCluster],
  [['flow', 'node'], drawFlow],
  [['chain', 'bundles', 'node'], drawTimeline],
  [['heads'], drawHeads],
  [['heads'], drawFound],
  [['fees'], drawPlots],
  [['events'], drawEvents],
];

function draw() {
  due = false;
  last = performance.now();
  if (!state.node) return;
  for (const [parts, drawing] of drawings) {
    if (parts.some((part) => state[part] !== drawn[part])) drawing(...parts.map((part) => state[part]));
  }
  drawn = state;
  refreshHint();
}

// Milliseconds from one drawing to the next, at least. A drawing costs the browser a whole frame
// however little has changed, and nobody reads numbers that change four times a second.
const pause = 500;
let last = -pause;

function drawSoon() {
  if (due) return;
  due = true;
  setTimeout(() => requestAnimationFrame(draw), last + pause - performance.now());
}

function drawFacts(node) {
  const facts = [`chain id ${node.chainId}`, `JAM: ${node.jam}`, `${node.cores} cores`, `slots of ${node.slotMillis / 1000} s`];
  byId('facts').replaceChildren(...facts.map((f) => el('span', {}, f)));
}

let said = '';

function say(kind, text) {
  if (said === kind) return;
  said = kind;
  byId('link').className = 'link ' + kind;
  setText(byId('link').lastElementChild, text);
  document.body.classList.toggle('stale', kind === 'lost');
}

// The stream says every ten seconds that it lives. One that does not is dead, whatever the browser thinks.
const patience = 25_000;
let watchdog;

function connect() {
  const source = new EventSource('/live');
  let fresh = true;
  const again = () => {
    source.close();
    say('lost', 'disconnected, trying again');
    setTimeout(connect, 1000);
  };
  const alive = () => {
    clearTimeout(watchdog);
    watchdog = setTimeout(again, patience);
  };
  source.onmessage = (e) => {
    const change = JSON.parse(e.data);
    state = fresh ? change : { ...state, ...change };
    fresh = false;
    say('live', 'live');
    alive();
    drawSoon();
  };
  source.addEventListener('alive', alive);
  source.onerror = () => {
    clearTimeout(watchdog);
    again();
  };
}

// The explanation of the page is open until a reader closes it, and on a phone, whose screen it would
// fill, closed until a reader opens it. A browser may keep nothing.
const about = byId('about');
about.open = !matchMedia('(max-width: 40rem)').matches;
try {
  const before = localStorage.getItem('about');
  if (before) about.open = before === 'open';
  about.firstElementChild.addEventListener('click', () => localStorage.setItem('about', about.open ? 'closed' : 'open')); // what it becomes
} catch { /* it is as at first the next time */ }

drawLegend();
say('waiting', 'connecting');
connect();
watchWidth(() => {
  drawn = {};
  requestAnimationFrame(draw);
});
