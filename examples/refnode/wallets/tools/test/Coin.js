// A usual test of a contract: signers of the node, a fixture that is a snapshot, matchers of
// balances, events and reverts, and helpers that change the chain.
const { expect } = require("chai");
const helpers = require("@nomicfoundation/hardhat-network-helpers");

describe("Coin", () => {
  async function deploy() {
    const [issuer, alice, bob] = await ethers.getSigners();
    const coin = await ethers.deployContract("Coin");
    return { coin, issuer, alice, bob };
  }

  it("belongs to its issuer", async () => {
    const { coin, issuer } = await helpers.loadFixture(deploy);
    expect(await coin.issuer()).to.equal(issuer.address);
  });

  it("is the issuer's at first", async () => {
    const { coin, issuer } = await helpers.loadFixture(deploy);
    expect(await coin.balanceOf(issuer)).to.equal(await coin.issued());
  });

  it("moves", async () => {
    const { coin, issuer, alice, bob } = await helpers.loadFixture(deploy);
    await expect(coin.pay(alice, 50)).to.changeTokenBalances(coin, [issuer, alice], [-50, 50]);
    await expect(coin.connect(alice).pay(bob, 50)).to.changeTokenBalances(coin, [alice, bob], [-50, 50]);
  });

  it("emits an event", async () => {
    const { coin, issuer, alice } = await helpers.loadFixture(deploy);
    await expect(coin.pay(alice, 5)).to.emit(coin, "Paid").withArgs(issuer.address, alice.address, 5);
  });

  it("refuses a payment that is too high", async () => {
    const { coin, issuer, alice } = await helpers.loadFixture(deploy);
    await expect(coin.connect(alice).pay(issuer, 1)).to.be.revertedWith("too little");
    expect(await coin.balanceOf(issuer)).to.equal(1000n);
  });
});

describe("Chain", () => {
  it("moves ether", async () => {
    const [from, to] = await ethers.getSigners();
    await expect(from.sendTransaction({ to, value: 9 })).to.changeEtherBalances([from, to], [-9, 9]);
  });

  it("lets a stranger pay", async () => {
    const [, to] = await ethers.getSigners();
    const stranger = "0x00000000000000000000000000000000000000ab";
    await helpers.setBalance(stranger, ethers.parseEther("1"));
    const signer = await ethers.getImpersonatedSigner(stranger);
    await expect(signer.sendTransaction({ to, value: 9 })).to.changeEtherBalances([signer, to], [-9, 9]);
    await helpers.stopImpersonatingAccount(stranger);
    await expect(signer.sendTransaction({ to, value: 9 })).to.be.rejectedWith("unknown account");
  });

  it("obeys the helpers", async () => {
    const account = "0x00000000000000000000000000000000000000aa";
    const height = await helpers.time.latestBlock();
    await helpers.mine(3);
    expect(await helpers.time.latestBlock()).to.be.at.least(height + 3);
    const before = await helpers.time.latest();
    await helpers.time.increase(100);
    expect(await helpers.time.latest()).to.be.at.least(before + 100);
    await helpers.setBalance(account, 7n);
    expect(await ethers.provider.getBalance(account)).to.equal(7n);
  });
});
