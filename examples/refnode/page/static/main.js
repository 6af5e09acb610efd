// The connection to the node, and when to draw.

import { byId, el, refreshHint, setText } from './dom.js';
import { drawEvents, drawFlow, drawHeads, drawPlots } from './panels.js';
import { drawLegend, drawTimeline } from './timeline.js';
import { drawLab } from './lab.js';

let state = {};
let due = false;

function draw() {
  due = false;
  if (!state.node) return;
  drawFacts(state.node);
  drawLab(state.lab);
  drawFlow(state.flow, state.node);
  drawTimeline(state);
  drawHeads(state.heads);
  drawPlots(state.fees);
  drawEvents(state.events);
  refreshHint();
}

function drawSoon() {
  if (due) return;
  due = true;
  requestAnimationFrame(draw);
}

function drawFacts(node) {
  const facts = [`chain id ${node.chainId}`, `JAM: ${node.jam}`, `${node.cores} cores`, `slots of ${node.slotMillis / 1000} s`];
  if (byId('facts').textContent !== facts.join('')) byId('facts').replaceChildren(...facts.map((f) => el('span', {}, f)));
}

function say(kind, text) {
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

drawLegend();
say('waiting', 'connecting');
connect();
addEventListener('resize', drawSoon);
