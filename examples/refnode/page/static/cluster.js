// The replicas: who leads, who follows, and a button that kills one.

import { byId, el } from './dom.js';
import { post } from './lab.js';

let drawn = '';

export function drawCluster(now) {
  byId('cluster').hidden = !now;
  const text = JSON.stringify(now);
  if (!now || text === drawn) return; // a button that is drawn again loses the focus
  drawn = text;
  byId('replicas').replaceChildren(...now.replicas.map((r) => row(r, now)));
}

function row(replica, cluster) {
  const name = replica.self ? el('b', {}, replica.address) : el('a', { href: replica.address }, replica.address);
  const item = el('li', { class: condition(replica) }, name, el('span', {}, words(replica, cluster.epoch)));
  if (cluster.kill && !replica.away) {
    const kill = el('button', { type: 'button', 'aria-label': 'Kill ' + replica.address }, 'Kill');
    kill.addEventListener('click', () => post('replica', replica.address, 'It dies. Watch who leads next.', byId('cluster-said')));
    item.append(kill);
  }
  return item;
}

const condition = (replica) => (replica.leads ? 'leads' : replica.away ? 'away' : 'follows');

function words(replica, epoch) {
  const self = replica.self ? ' (this page)' : '';
  if (replica.leads) return `leads, epoch ${epoch}${self}`;
  if (replica.away) return 'does not answer' + self;
  return (replica.lag > 0 ? `follows, ${replica.lag} writes behind` : 'follows') + self;
}
