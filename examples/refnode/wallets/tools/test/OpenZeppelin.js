// Contracts of OpenZeppelin: a token with permits and votes, tickets with roles, and a proxy that
// is upgraded.
const { expect } = require("chai");
const helpers = require("@nomicfoundation/hardhat-network-helpers");

const forever = ethers.MaxUint256;

describe("ERC-20 with permits and votes", () => {
  async function deploy() {
    const [owner, spender, friend] = await ethers.getSigners();
    return { share: await ethers.deployContract("Share"), owner, spender, friend };
  }

  // permit returns a signed permit to spend a value.
  async function permit(share, owner, spender, value, deadline) {
    const { name, version, chainId, verifyingContract } = await share.eip712Domain();
    const domain = { name, version, chainId, verifyingContract };
    const Permit = [
      { name: "owner", type: "address" }, { name: "spender", type: "address" },
      { name: "value", type: "uint256" }, { name: "nonce", type: "uint256" },
      { name: "deadline", type: "uint256" },
    ];
    const nonce = await share.nonces(owner);
    const message = { owner: owner.address, spender: spender.address, value, nonce, deadline };
    const signature = await owner.signTypedData(domain, { Permit }, message);
    const { v, r, s } = ethers.Signature.from(signature);
    return [owner, spender, value, deadline, v, r, s];
  }

  it("lets an account spend by a permit, once", async () => {
    const { share, owner, spender, friend } = await helpers.loadFixture(deploy);
    const signed = await permit(share, owner, spender, 70, forever);
    await expect(share.connect(friend).permit(...signed))
      .to.emit(share, "Approval").withArgs(owner.address, spender.address, 70);
    await expect(share.connect(spender).transferFrom(owner, friend, 70))
      .to.changeTokenBalances(share, [owner, friend], [-70, 70]);
    await expect(share.permit(...signed))
      .to.be.revertedWithCustomError(share, "ERC2612InvalidSigner");
  });

  it("refuses a permit that is too old", async () => {
    const { share, owner, spender } = await helpers.loadFixture(deploy);
    const deadline = (await helpers.time.latest()) + 1000;
    const signed = await permit(share, owner, spender, 70, deadline);
    await helpers.time.increaseTo(deadline + 1);
    await expect(share.permit(...signed))
      .to.be.revertedWithCustomError(share, "ERC2612ExpiredSignature").withArgs(deadline);
  });

  it("refuses a transfer with the amounts", async () => {
    const { share, owner, friend } = await helpers.loadFixture(deploy);
    await expect(share.connect(friend).transfer(owner, 1))
      .to.be.revertedWithCustomError(share, "ERC20InsufficientBalance")
      .withArgs(friend.address, 0, 1);
  });

  it("remembers the votes of earlier blocks", async () => {
    const { share, owner, friend } = await helpers.loadFixture(deploy);
    const blocks = [];
    await share.delegate(owner);
    for (const votes of [1000n, 900n, 800n, 700n]) { // each transfer follows in the next block
      expect(await share.getVotes(owner)).to.equal(votes);
      blocks.push([await helpers.time.latestBlock(), votes]);
      await share.transfer(friend, 100);
    }
    for (const [block, votes] of blocks) {
      expect(await share.getPastVotes(owner, block)).to.equal(votes);
    }
  });
});

describe("ERC-721 with roles", () => {
  async function deploy() {
    const [, issuer, guest] = await ethers.getSigners();
    const ticket = await ethers.deployContract("Ticket");
    await ticket.grantRole(await ticket.ISSUER(), issuer);
    return { ticket, issuer, guest };
  }

  it("issues and transfers", async () => {
    const { ticket, issuer, guest } = await helpers.loadFixture(deploy);
    await expect(ticket.connect(issuer).issue(guest))
      .to.emit(ticket, "Transfer").withArgs(ethers.ZeroAddress, guest.address, 1);
    const booth = await ethers.deployContract("Booth");
    await ticket.connect(guest)["safeTransferFrom(address,address,uint256)"](guest, booth, 1);
    expect(await ticket.ownerOf(1)).to.equal(booth.target);
    expect(await booth.last()).to.equal(1n);
    const found = await ticket.queryFilter(ticket.filters.Transfer(null, booth));
    expect(found.map((log) => log.args.tokenId)).to.deep.equal([1n]);
    await expect(ticket.connect(issuer).issue(ticket))
      .to.be.revertedWithCustomError(ticket, "ERC721InvalidReceiver").withArgs(ticket.target);
  });

  it("refuses an account without the role", async () => {
    const { ticket, issuer, guest } = await helpers.loadFixture(deploy);
    const role = await ticket.ISSUER();
    const refused = (account) => expect(ticket.connect(account).issue(guest))
      .to.be.revertedWithCustomError(ticket, "AccessControlUnauthorizedAccount")
      .withArgs(account.address, role);
    await refused(guest);
    await ticket.revokeRole(role, issuer);
    await refused(issuer);
    expect(await ticket.supportsInterface("0x80ac58cd")).to.equal(true); // ERC-721
  });
});

describe("UUPS proxy", () => {
  async function deploy() {
    const [owner, stranger] = await ethers.getSigners();
    const first = await ethers.deployContract("Counter");
    const start = first.interface.encodeFunctionData("initialize", [owner.address]);
    const proxy = await ethers.deployContract("ERC1967Proxy", [first, start]);
    return { first, counter: await ethers.getContractAt("Counter", proxy.target), owner, stranger };
  }

  it("keeps its state in an upgrade", async () => {
    const { first, counter } = await helpers.loadFixture(deploy);
    await counter.add();
    const next = await ethers.deployContract("CounterOfTens");
    await expect(counter.upgradeToAndCall(next, counter.interface.encodeFunctionData("add")))
      .to.emit(counter, "Upgraded").withArgs(next.target);
    await counter.add();
    expect(await counter.count()).to.equal(21n);
    expect(await first.count()).to.equal(0n);
    const slot = BigInt(ethers.id("eip1967.proxy.implementation")) - 1n; // EIP-1967
    expect(BigInt(await helpers.getStorageAt(counter.target, slot))).to.equal(BigInt(next.target));
  });

  it("is upgraded by its owner only, and started once", async () => {
    const { counter, stranger } = await helpers.loadFixture(deploy);
    const next = await ethers.deployContract("CounterOfTens");
    await expect(counter.connect(stranger).upgradeToAndCall(next, "0x"))
      .to.be.revertedWithCustomError(counter, "OwnableUnauthorizedAccount")
      .withArgs(stranger.address);
    const coin = await ethers.deployContract("Coin");
    await expect(counter.upgradeToAndCall(coin, "0x"))
      .to.be.revertedWithCustomError(counter, "ERC1967InvalidImplementation").withArgs(coin.target);
    await expect(counter.initialize(stranger))
      .to.be.revertedWithCustomError(counter, "InvalidInitialization");
  });
});
