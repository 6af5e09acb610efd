// Where a transaction is. The node is asked by JSON-RPC, as a wallet asks it.

import { byId, setText } from './dom.js';

const form = byId('find'), line = byId('found');
let hash = null; // of the transaction that is shown until it is final
let asking = false;

const places = {
  pending: 'It is in the pool, and can run.',
  queued: 'It is in the pool, and waits for an earlier transaction of its sender.',
  parked: 'It is in the pool, and waits until the base fee falls.',
  locked: 'It is being put into a block.',
  held: 'It waits: its block was undone, and the pool does not take it now.',
  replaced: 'It was replaced by another transaction of its sender.',
};

/** describe puts the answer of the node into words. */
function describe(status) {
  if (!status) return 'The node does not know this transaction.';
  if (status.status === 'included') {
    return `It is number ${Number(status.transactionIndex) + 1} in rollup block ${Number(status.blockNumber)}, which is ${status.bundleStatus} on JAM.`;
  }
  if (status.status === 'dropped') return `It was dropped: ${status.reason}. It may be sent again.`;
  return (places[status.status] ?? `It is ${status.status}.`) + (status.replacedBy ? ` Its hash is ${status.replacedBy}.` : '');
}

function say(text, bad = false) {
  line.classList.toggle('bad', bad);
  setText(line, text);
}

async function ask() {
  if (asking) return;
  asking = true;
  const asked = hash;
  try {
    const answer = await fetch('/', {
      method: 'POST', headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'jam_getTransactionStatus', params: [asked] }),
    });
    const { result, error } = await answer.json();
    if (asked !== hash) return;
    if (error) say(error.message, true);
    else say(describe(result));
    if (error || result?.bundleStatus === 'finalized') hash = null;
  } catch {
    if (asked === hash) say('The node does not answer.', true);
  } finally {
    asking = false;
    if (hash !== null && asked !== hash) ask();
  }
}

form.addEventListener('submit', (e) => {
  e.preventDefault();
  const text = byId('hash').value.trim();
  hash = /^(0x)?[0-9a-f]{64}$/i.test(text) ? '0x' + text.slice(-64) : null;
  if (hash) ask();
  else say('A hash is 0x and 64 hexadecimal digits.', true);
});

/** drawFound asks again about the transaction that is shown, because the blocks have moved on. */
export function drawFound() {
  if (hash) ask();
}
