// A day in the life of viem.
import assert from "node:assert/strict";
import {
  BaseError, ContractFunctionRevertedError, InsufficientFundsError, NonceTooLowError, createPublicClient, createTestClient, createWalletClient, defineChain,
  http as overHTTP, parseEther, webSocket,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { compile } from "./compile.js";
import { arrival, chainId, http, keys, step, until, ws } from "./setting.js";

const chain = defineChain({
  id: Number(chainId), name: "jamq", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [http], webSocket: [ws] } },
});
const batching = overHTTP(http, { batch: true });
const client = createPublicClient({ chain, transport: batching, pollingInterval: 50, cacheTime: 0 });
const socket = createPublicClient({ chain, transport: webSocket(ws, { reconnect: false, timeout: 600_000 }) });
const account = privateKeyToAccount(keys[1]);
const wallet = createWalletClient({ account, chain, transport: batching, pollingInterval: 50 });
const other = privateKeyToAccount(generatePrivateKey());
const mined = (hash) => arrival("receipt", client.waitForTransactionReceipt({ hash }));

// What a wallet shows first.
const [id, balance, nonce, fees, gas] = await Promise.all([
  client.getChainId(), client.getBalance(account), client.getTransactionCount(account), client.estimateFeesPerGas(),
  client.estimateGas({ account, to: other.address, value: 1n }),
]);
assert.deepEqual([BigInt(id), balance, nonce, gas], [chainId, parseEther("10000"), 0, 21_000n]);
assert(fees.maxFeePerGas > 0n && fees.maxPriorityFeePerGas > 0n);
const history = await client.getFeeHistory({ blockCount: 4, rewardPercentiles: [25, 75] });
assert(history.baseFeePerGas.length > 1);
step("chain id, balance, nonce, fees, estimate, in one batch");

// A transfer, from the pool to finality.
const pending = [], heads = [];
const unwatch = [
  socket.watchPendingTransactions({ onTransactions: (hashes) => pending.push(...hashes) }),
  socket.watchBlocks({ onBlock: (block) => heads.push(block.number) }),
];
await until("subscriptions", async () => (await socket.getChainId()) === chain.id);
const hash = await wallet.sendTransaction({ to: other.address, value: parseEther("2") });
const receipt = await mined(hash);
assert.equal(receipt.status, "success");
assert.equal(receipt.type, "eip1559");
await until("pending transaction by subscription", () => pending.includes(hash));
await until("head by subscription", () => heads.includes(receipt.blockNumber));
unwatch.forEach((stop) => stop());
await until("finality", async () => (await client.getBlock({ blockTag: "finalized" })).number >= receipt.blockNumber);
const block = await client.getBlock({ blockHash: receipt.blockHash, includeTransactions: true });
assert.equal(block.transactions[receipt.transactionIndex].hash, hash);
assert.equal((await client.getTransactionConfirmations({ transactionReceipt: receipt })) >= 1n, true);
step("a transfer, until it is final");

// A token.
const { abi, bytecode } = compile("Token");
const supply = parseEther("1000000");
const { contractAddress: address } = await mined(await wallet.deployContract({ abi, bytecode, args: [supply] }));
const token = { address, abi };
assert.equal(await client.readContract({ ...token, functionName: "symbol" }), "JAR");
const heard = [], polled = [];
const stop = [
  socket.watchContractEvent({ ...token, eventName: "Transfer", onLogs: (logs) => heard.push(...logs) }),
  client.watchContractEvent({ ...token, eventName: "Transfer", onLogs: (logs) => polled.push(...logs), poll: true }),
];
const filter = await client.createContractEventFilter({ ...token, eventName: "Transfer" });
const { request } = await client.simulateContract({ ...token, account, functionName: "transfer", args: [other.address, 42n] });
await mined(await wallet.writeContract(request));
assert.equal(await client.readContract({ ...token, functionName: "balanceOf", args: [other.address] }), 42n);
const isMove = (log) => log.args.from === account.address && log.args.to === other.address && log.args.value === 42n;
await until("event by subscription", () => heard.some(isMove));
await until("event by polling", () => polled.some(isMove));
assert((await client.getFilterChanges({ filter })).some(isMove));
assert.equal(await client.uninstallFilter({ filter }), true);
stop.forEach((end) => end());
const found = await client.getContractEvents({ ...token, eventName: "Transfer", args: { to: other.address }, fromBlock: 0n });
assert.equal(found.length, 1);
step("a token: deployed, read, simulated, transferred, heard and found");

// Errors that viem knows.
const cause = (type, check = () => true) => (error) => {
  const found = error instanceof BaseError && error.walk((e) => e instanceof type);
  assert(found instanceof type, `want ${type.name}, have ${error}`);
  return check(found) ?? true;
};
const tooMuch = { ...token, account, functionName: "transfer", args: [other.address, supply * 2n] };
await assert.rejects(client.simulateContract(tooMuch), cause(ContractFunctionRevertedError, (e) => {
  assert.deepEqual([e.data.errorName, e.data.args], ["TooLittle", [account.address, supply - 42n, supply * 2n]]);
}));
const notMine = { ...token, account, functionName: "transferFrom", args: [other.address, account.address, 1n] };
await assert.rejects(client.simulateContract(notMine), cause(ContractFunctionRevertedError, (e) => {
  assert.equal(e.reason, "allowance is too low");
}));
await assert.rejects(wallet.sendTransaction({ to: other.address, value: 1n, nonce: 0, gas: 21_000n }), cause(NonceTooLowError));
await assert.rejects(wallet.sendTransaction({ to: other.address, value: parseEther("20000"), gas: 21_000n }), cause(InsufficientFundsError));
step("errors: custom, reason, nonce, funds");

// A state that is not there: somebody else's pocket is full.
const rich = privateKeyToAccount(generatePrivateKey()).address;
await client.call({ account: rich, to: other.address, value: 5n, stateOverride: [{ address: rich, balance: parseEther("1") }] });
const { accessList } = await client.createAccessList({ account, to: address, data: "0x18160ddd" });
assert.deepEqual(accessList, []);
const [first, second] = await client.simulateBlocks({
  blocks: [
    { calls: [{ to: address, abi, account, functionName: "transfer", args: [rich, 7n] }] },
    {
      calls: [{ to: address, abi, functionName: "balanceOf", args: [rich] }, { account: rich, to: other.address, value: 5n }],
      stateOverrides: [{ address: rich, balance: 5n }],
    },
  ],
});
assert.equal(first.calls[0].logs.length, 1);
assert.equal(second.number, first.number + 1n);
assert.deepEqual(second.calls.map((call) => [call.status, call.result]), [["success", 7n], ["success", null]]);
step("state overrides, access lists, simulated blocks");

// EIP-7702: the account gets the token's code, and answers as a token.
const authorization = await wallet.signAuthorization({ account, contractAddress: address, executor: "self" });
const delegated = await mined(await wallet.sendTransaction({ to: other.address, authorizationList: [authorization] }));
assert.equal(delegated.type, "eip7702");
assert.equal(await client.getCode(account), `0xef0100${address.slice(2).toLowerCase()}`);
assert.equal(await client.readContract({ address: account.address, abi, functionName: "totalSupply" }), supply);
step("a delegation (EIP-7702)");

// What the pool holds, as viem's test actions ask for it.
const status = await createTestClient({ chain, mode: "anvil", transport: overHTTP(http) }).getTxpoolStatus();
assert.equal(typeof status.pending, "number");
// The receipt comes back from the very call that sends.
const request7966 = await wallet.prepareTransactionRequest({ to: other.address, value: 1n });
const sync = await wallet.sendRawTransactionSync({ serializedTransaction: await wallet.signTransaction(request7966) });
assert.equal(sync.status, "success");
step("the pool, sending and waiting in one call (EIP-7966)");

(await socket.transport.getRpcClient()).close();
