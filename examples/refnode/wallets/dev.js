// Developer mode: ethers and viem send without a key, and decide when blocks are made.
import assert from "node:assert/strict";
import { JsonRpcProvider, TypedDataEncoder, ZeroAddress, parseEther, verifyMessage, verifyTypedData } from "ethers";
import { createTestClient, defineChain, http as overHTTP, publicActions, toHex, walletActions } from "viem";
import { arrival, chainId, http, step, until } from "./setting.js";

const provider = new JsonRpcProvider(http);
provider.pollingInterval = 50;
assert.match(await provider.send("web3_clientVersion", []), /^anvil\//); // Hardhat's helpers require it
const signers = await provider.listAccounts();
assert.equal(signers.length, 10);
const [alice, bob] = signers;
const sent = await alice.sendTransaction({ to: bob.address, value: 1n });
const receipt = await arrival("receipt", sent.wait());
assert.equal(receipt.status, 1);
step("ethers sends from an account of the node");

let confirmed;
sent.wait(3).then((receipt) => (confirmed = receipt));
await until("three confirmations", async () => confirmed || (await provider.send("evm_mine", [])) === "");
assert.equal(confirmed.hash, sent.hash);
step("an idle node confirms");

assert.equal(verifyMessage("hello", await alice.signMessage("hello")), alice.address);
const order = [
  { name: "shop", chainId, verifyingContract: ZeroAddress }, { Order: [{ name: "amount", type: "uint256" }] }, { amount: 7n },
];
const signature = await alice.signTypedData(...order);
assert.equal(verifyTypedData(...order, signature), alice.address);
assert.equal(TypedDataEncoder.hash(...order).length, 66);
step("ethers signs messages and typed data");

const chain = defineChain({
  id: Number(chainId), name: "jamq", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [http] } },
});
for (const mode of ["hardhat", "anvil"]) {
  const client = createTestClient({ mode, chain, transport: overHTTP(http), pollingInterval: 50, cacheTime: 0 })
    .extend(publicActions).extend(walletActions);
  const [account] = await client.getAddresses();
  const target = `0x${(mode === "anvil" ? "a" : "b").repeat(40)}`;
  const before = await client.getBlockNumber();
  await client.mine({ blocks: 2 });
  assert.equal(await client.getBlockNumber(), before + 2n);
  await client.setBalance({ address: target, value: parseEther("3") });
  assert.equal(await client.getBalance({ address: target }), parseEther("3"));
  await client.setNonce({ address: target, nonce: 4 });
  assert.equal(await client.getTransactionCount({ address: target }), 4);
  await client.setCode({ address: target, bytecode: "0x60075460005260206000f3" }); // returns the slot 7
  await client.setStorageAt({ address: target, index: 7, value: toHex(42, { size: 32 }) });
  assert.equal(BigInt((await client.call({ to: target })).data), 42n);
  await client.impersonateAccount({ address: target }); // a contract
  const whale = await client.sendTransaction({ account: target, to: account, value: 1n });
  assert.equal((await client.getTransactionReceipt({ hash: whale })).from, target);
  const signer = await provider.getSigner(target);
  assert.equal((await arrival("receipt", (await signer.sendTransaction({ to: account, value: 1n })).wait())).from.toLowerCase(), target);
  await client.stopImpersonatingAccount({ address: target });
  await assert.rejects(client.sendTransaction({ account: target, to: account, value: 1n }), /unknown account/);
  const { timestamp } = await client.getBlock();
  await client.setNextBlockTimestamp({ timestamp: timestamp + 1000n });
  await client.mine({ blocks: 1 });
  assert.equal((await client.getBlock()).timestamp, timestamp + 1000n);
  await client.increaseTime({ seconds: 3600 });
  await client.mine({ blocks: 1 });
  assert((await client.getBlock()).timestamp >= timestamp + 4600n);

  await client.setAutomine(false);
  const hash = await client.sendTransaction({ account, to: target, value: 0n, gas: 100_000n });
  await assert.rejects(client.getTransactionReceipt({ hash }));
  await client.mine({ blocks: 1 });
  assert.equal((await client.getTransactionReceipt({ hash })).status, "success");
  await client.setAutomine(true);

  const id = await client.snapshot();
  const send = () => client.sendTransaction({ account, to: target, value: 5n, gas: 100_000n, maxFeePerGas: 10n ** 11n, maxPriorityFeePerGas: 10n ** 9n });
  const first = await send(), rich = await client.getBalance({ address: target });
  await client.revert({ id });
  assert.equal(await client.getBalance({ address: target }), rich - 5n);
  assert.equal(await send(), first); // the same transaction, a second time
  assert.equal(await client.getBalance({ address: target }), rich);
  step(`viem's test client in the mode of ${mode}`);
}
