// A day in the life of web3.js 4: accounts of the node and of a key, transfers, a contract, its
// events by subscription and by range, and reverts.
const assert = require("node:assert/strict");
const { readFileSync } = require("node:fs");
const { join } = require("node:path");
const solc = require("solc");
const { Web3, WebSocketProvider } = require("web3");

const http = process.env.RPC;
const step = (text) => console.log(`ok: ${text}`);

// until asks until something is true. The Go test ends a script that hangs, and shows its output.
async function until(what, ask) {
  console.log(`waiting: ${what}`);
  while (!ask()) await new Promise((wake) => setTimeout(wake, 20));
}

function compile(name) {
  const content = readFileSync(join(__dirname, "contracts", `${name}.sol`), "utf8");
  const outputSelection = { "*": { "*": ["abi", "evm.bytecode.object"] } };
  const input = {
    language: "Solidity", sources: { [name]: { content } },
    settings: { evmVersion: "prague", outputSelection },
  };
  const { contracts } = JSON.parse(solc.compile(JSON.stringify(input)));
  const { abi, evm } = contracts[name][name];
  return { abi, data: `0x${evm.bytecode.object}` };
}

async function main() {
  const web3 = new Web3(http);
  const socket = new Web3(new WebSocketProvider(http.replace("http", "ws")));
  const { eth } = web3;

  const [issuer, alice] = await eth.getAccounts();
  assert.equal(await eth.getChainId(), 4359n);
  assert.equal(await eth.net.isListening(), true);
  const mine = eth.accounts.wallet.add(eth.accounts.create()).get(0);
  const value = BigInt(web3.utils.toWei(2, "ether"));
  const sent = await eth.sendTransaction({ from: issuer, to: mine.address, value });
  assert.equal(sent.status, 1n);
  assert.equal(sent.type, 2n);
  // The wallet signs what its account sends.
  const back = await eth.sendTransaction({ from: mine.address, to: alice, value: 7n });
  assert.equal((await eth.getTransaction(back.transactionHash)).from, mine.address.toLowerCase());
  const fee = back.gasUsed * back.effectiveGasPrice;
  assert.equal(await eth.getBalance(mine.address), value - 7n - fee);
  assert.equal(await eth.getTransactionCount(mine.address), 1n);
  step("transfers of an account of the node, and of a key");

  const signature = await eth.sign(web3.utils.utf8ToHex("hello"), issuer);
  assert.equal(eth.accounts.recover("hello", signature), issuer);
  step("a signature of the node");

  const { abi, data } = compile("Coin");
  const coin = await new eth.Contract(abi).deploy({ data }).send({ from: issuer });
  assert.equal(await coin.methods.balanceOf(issuer).call(), 1000n);
  assert.equal(await coin.methods.issuer().call(), issuer);
  step("a contract: deployed and called");

  const heads = await socket.eth.subscribe("newHeads");
  const seen = [];
  heads.on("data", (head) => seen.push(head.number));
  const heard = [];
  const there = new socket.eth.Contract(abi, coin.options.address);
  const events = there.events.Paid({ filter: { to: alice } });
  events.on("data", (log) => heard.push(log));
  events.on("error", (error) => { throw error; });
  await new Promise((done) => events.on("connected", done));
  const paid = await coin.methods.pay(alice, 5).send({ from: issuer });
  assert.equal(paid.events.Paid.returnValues.amount, 5n);
  await coin.methods.pay(mine.address, 6).send({ from: issuer }); // another receiver
  await coin.methods.pay(issuer, 6).send({ from: mine.address });
  await coin.methods.pay(alice, 8).send({ from: issuer });
  await until("two events", () => heard.length >= 2);
  await until("the head", () => seen.includes(paid.blockNumber));
  assert.deepEqual(heard.map((log) => log.returnValues.amount), [5n, 8n]);
  assert.equal(heard[0].transactionHash, paid.transactionHash);
  await events.unsubscribe();
  await heads.unsubscribe();
  step("events by subscription");

  const range = { fromBlock: "earliest", toBlock: "latest" };
  const past = await coin.getPastEvents("Paid", { filter: { from: issuer }, ...range });
  assert.deepEqual(past.map((log) => log.returnValues.amount), [5n, 6n, 8n]);
  const logs = await eth.getPastLogs({ address: coin.options.address, ...range });
  assert.equal(logs.length, 4);
  step("events by range");

  const refused = (error) => /too little/.test(error.reason ?? error.cause.message);
  const tooMuch = coin.methods.pay(alice, 9999);
  await assert.rejects(tooMuch.call({ from: issuer }), refused);
  await assert.rejects(tooMuch.estimateGas({ from: issuer }), refused);
  await assert.rejects(tooMuch.send({ from: issuer }), refused);
  coin.handleRevert = true; // asks for the reason when the transaction has failed in a block
  await assert.rejects(tooMuch.send({ from: issuer, gas: 200_000n }), refused);
  step("a revert, with its reason");

  const batch = new web3.BatchRequest();
  const methods = ["eth_blockNumber", "eth_gasPrice"];
  const answers = methods.map((method) => batch.add({ method, params: [] }));
  await batch.execute();
  for (const answer of await Promise.all(answers)) assert.match(answer, /^0x/);
  step("a batch");

  socket.provider.disconnect();
}

main();
