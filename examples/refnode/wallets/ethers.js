// A day in the life of ethers v6.
import assert from "node:assert/strict";
import { Contract, ContractFactory, JsonRpcProvider, Transaction, Wallet, WebSocketProvider, ZeroAddress, isError, parseEther } from "ethers";
import { compile } from "./compile.js";
import { arrival, chainId, http, keys, step, until, ws } from "./setting.js";

const provider = new JsonRpcProvider(http);
provider.pollingInterval = 50;
const socket = new WebSocketProvider(ws);
const wallet = new Wallet(keys[0], provider);
const other = Wallet.createRandom().address;

// What a wallet shows first.
assert.equal((await provider.getNetwork()).chainId, chainId);
assert.equal(await provider.getBalance(wallet.address), parseEther("10000"));
assert.equal(await provider.getTransactionCount(wallet.address), 0);
const fees = await provider.getFeeData();
assert(fees.gasPrice > 0n && fees.maxFeePerGas > 0n && fees.maxPriorityFeePerGas > 0n);
assert.equal(await provider.estimateGas({ from: wallet.address, to: other, value: 1n }), 21_000n);
step("chain id, balance, nonce, fees, estimate");

// All of these go out together: ethers makes a batch of them.
const [number, block, code, storage] = await Promise.all([
  provider.getBlockNumber(), provider.getBlock("latest"), provider.getCode(other), provider.getStorage(other, 0),
]);
assert(block.number >= 0 && number >= 0);
assert.equal(code, "0x");
assert.equal(BigInt(storage), 0n);
const answers = await (await fetch(http, {
  method: "POST", headers: { "Content-Type": "application/json" },
  body: JSON.stringify([1, 2].map((id) => ({ jsonrpc: "2.0", id, method: "eth_chainId", params: [] }))),
})).json();
assert.deepEqual(answers.map((a) => [a.id, a.result]), [[1, "0x1107"], [2, "0x1107"]]);
step("batches");

// A transfer, from the pool to finality.
const pending = [], heads = [];
await socket.on("pending", (hash) => pending.push(hash));
await socket.on("block", (number) => heads.push(number));
await until("subscriptions", async () => (await socket.send("eth_chainId", [])) === "0x1107");
const sent = await wallet.sendTransaction({ to: other, value: parseEther("1.5") });
assert.equal(sent.type, 2);
const receipt = await arrival("receipt", sent.wait());
assert.equal(receipt.status, 1);
assert.equal(receipt.gasUsed, 21_000n);
await until("pending transaction by subscription", () => pending.includes(sent.hash));
await until("head by subscription", () => heads.includes(receipt.blockNumber));
await socket.removeAllListeners("pending");
await socket.removeAllListeners("block");
assert.equal(await provider.getBalance(other), parseEther("1.5"));
// ethers caches answers for a quarter of a second, also those from before the block.
await until("mined transaction", async () => (await provider.getTransaction(sent.hash)).blockHash === receipt.blockHash);
await until("finality", async () => (await provider.getBlock("finalized")).number >= receipt.blockNumber);
for (const tag of ["safe", "pending", "earliest"]) assert((await provider.getBlock(tag)).number >= 0);
const full = await provider.getBlock(receipt.blockNumber, true);
assert.equal(full.prefetchedTransactions[receipt.index].hash, sent.hash);
assert.equal(Transaction.from(await provider.send("eth_getRawTransactionByHash", [sent.hash])).hash, sent.hash);
step("a transfer, until it is final");

// A token.
const { abi, bytecode } = compile("Token");
const supply = parseEther("1000000");
const token = await new ContractFactory(abi, bytecode, wallet).deploy(supply);
await arrival("deployment", token.waitForDeployment());
assert.equal(await token.name(), "Jam jar");
assert.equal(await token.balanceOf(wallet.address), supply);
const heard = [];
const listening = new Contract(await token.getAddress(), abi, socket);
await listening.on("Transfer", (from, to, value) => heard.push([from, to, value]));
const polled = [];
await token.on(token.filters.Transfer(wallet.address), (event) => polled.push([...event.args]));
const moved = await arrival("token transfer", (await token.transfer(other, 42n)).wait());
assert.equal(await token.balanceOf(other), 42n);
const event = [wallet.address, other, 42n];
await until("event by subscription", () => heard.length > 0);
assert.deepEqual(heard, [event]);
await until("event by polling", () => polled.length > 0);
assert.deepEqual(polled, [event]);
await listening.removeAllListeners();
await token.removeAllListeners();
const found = await token.queryFilter(token.filters.Transfer(null, other), 0, "latest");
assert.deepEqual(found.map((log) => [...log.args]), [event]);
assert.equal(found[0].transactionHash, moved.hash);
step("a token: deployed, read, transferred, heard and found");

// A filter of the node's own.
const address = await token.getAddress();
const filter = await provider.send("eth_newFilter", [{ address }]);
await arrival("approval", (await token.approve(other, 7n)).wait());
const changes = await provider.send("eth_getFilterChanges", [filter]);
assert.equal(changes.length, 1);
assert.equal(token.interface.parseLog(changes[0]).name, "Approval");
assert.deepEqual(await provider.send("eth_getFilterChanges", [filter]), []);
assert.equal(await provider.send("eth_uninstallFilter", [filter]), true);
step("filters");

// Errors that ethers knows.
const code_ = (code) => (error) => isError(error, code) || assert.fail(`want ${code}, have ${error.code}: ${error.message}`);
await assert.rejects(token.transfer.staticCall(other, supply * 2n), (error) => {
  assert(isError(error, "CALL_EXCEPTION"));
  assert.equal(error.revert.name, "TooLittle");
  assert.deepEqual([...error.revert.args], [wallet.address, supply - 42n, supply * 2n]);
  return true;
});
await assert.rejects(token.transfer(ZeroAddress, 1n), (error) => {
  assert(isError(error, "CALL_EXCEPTION"));
  assert.equal(error.reason, "nobody lives at zero");
  return true;
});
await assert.rejects(wallet.sendTransaction({ to: other, value: 1n, nonce: 0, gasLimit: 21_000n }), code_("NONCE_EXPIRED"));
await assert.rejects(wallet.sendTransaction({ to: other, value: parseEther("20000"), gasLimit: 21_000n }), code_("INSUFFICIENT_FUNDS"));
const failed = await wallet.sendTransaction({ to: address, data: token.interface.encodeFunctionData("transfer", [ZeroAddress, 1n]), gasLimit: 100_000n });
await assert.rejects(arrival("failing transaction", failed.wait()), (error) => {
  assert(isError(error, "CALL_EXCEPTION"));
  assert.equal(error.receipt.status, 0);
  return true;
});
step("errors: custom, reason, nonce, funds, failed transaction");

// A trace, as explorers and debuggers ask for it.
const trace = await provider.send("debug_traceTransaction", [moved.hash, { tracer: "callTracer", tracerConfig: { withLog: true } }]);
assert.equal(trace.to, address.toLowerCase());
assert.equal(trace.logs.length, 1);
step("a trace");

provider.destroy();
await socket.destroy();
