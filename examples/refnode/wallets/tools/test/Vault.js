// A test of a contract that depends on the time, as Hardhat's sample project has it: each test
// starts from a fixture, and several of them let a year go by.
const { expect } = require("chai");
const helpers = require("@nomicfoundation/hardhat-network-helpers");
const year = 365 * 24 * 60 * 60;

describe("Vault", () => {
  async function deploy() {
    const [owner, other] = await ethers.getSigners();
    const opens = (await helpers.time.latest()) + year;
    const vault = await ethers.deployContract("Vault", [opens], { value: 7 });
    return { vault, opens, owner, other };
  }

  it("has a time in the future", async () => {
    const { vault, opens } = await helpers.loadFixture(deploy);
    expect(await vault.opens()).to.equal(opens);
    const vaults = await ethers.getContractFactory("Vault");
    await expect(vaults.deploy(await helpers.time.latest())).to.be.revertedWith("already open");
  });

  for (const run of ["first", "second"]) {
    it(`is closed before, for the ${run} time`, async () => {
      const { vault, opens } = await helpers.loadFixture(deploy);
      await expect(vault.take()).to.be.revertedWithCustomError(vault, "TooEarly").withArgs(opens);
    });

    it(`is closed to others, for the ${run} time`, async () => {
      const { vault, opens, other } = await helpers.loadFixture(deploy);
      await helpers.time.increaseTo(opens);
      const taken = vault.connect(other).take();
      await expect(taken).to.be.revertedWithCustomError(vault, "NotOwner").withArgs(other.address);
    });

    it(`opens, for the ${run} time`, async () => {
      const { vault, opens, owner } = await helpers.loadFixture(deploy);
      await helpers.time.increaseTo(opens - 1);
      await expect(vault.take()).to.emit(vault, "Taken").withArgs(7, opens);
    });

    it(`pays, for the ${run} time`, async () => {
      const { vault, owner } = await helpers.loadFixture(deploy);
      await helpers.mine(5);
      await helpers.time.increase(year);
      await expect(vault.take()).to.changeEtherBalances([owner, vault], [7, -7]);
    });
  }

  it("shows the error of a contract in its text", async () => {
    const { vault } = await helpers.loadFixture(deploy);
    const selector = vault.interface.getError("TooEarly").selector;
    await expect(vault.take()).to.be.rejectedWith(`custom error ${selector}`);
  });
});
