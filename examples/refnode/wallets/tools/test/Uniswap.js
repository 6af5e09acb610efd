// Uniswap V2 from its published bytecode: pools, swaps for exact amounts, ether through WETH9, a
// permit, and the price over time.
const { expect } = require("chai");
const helpers = require("@nomicfoundation/hardhat-network-helpers");
const factoryBuild = require("@uniswap/v2-core/build/UniswapV2Factory.json");
const pairBuild = require("@uniswap/v2-core/build/UniswapV2Pair.json");
const routerBuild = require("@uniswap/v2-periphery/build/UniswapV2Router02.json");
const tokenBuild = require("@uniswap/v2-periphery/build/ERC20.json");
const { contracts } = require("@uniswap/v2-periphery/build/Combined-Json.json");

const wethBuild = contracts["contracts/test/WETH9.sol:WETH9"];
const supply = ethers.parseEther("1000000");
const forever = ethers.MaxUint256;
const kept = 997n; // of 1000, after the fee

// amountOut is the formula of the pools: a swap keeps the product of the reserves, after the fee.
const amountOut = (amount, reserveIn, reserveOut) =>
  (amount * kept * reserveOut) / (reserveIn * 1000n + amount * kept);

function squareRoot(n) {
  let root = n;
  for (let next = n / 2n + 1n; next < root; next = (root + n / root) / 2n) root = next;
  return root;
}

describe("Uniswap V2", () => {
  async function deploy() {
    const [owner, trader] = await ethers.getSigners();
    const make = async ({ abi, bytecode }, ...args) =>
      (await ethers.getContractFactory(abi, bytecode, owner)).deploy(...args);
    const factory = await make(factoryBuild, owner);
    const weth = await make(wethBuild);
    const router = await make(routerBuild, factory, weth);
    const tokens = [await make(tokenBuild, supply), await make(tokenBuild, supply)];
    for (const token of tokens) {
      await token.approve(router, forever);
      await token.transfer(trader, supply / 10n);
      await token.connect(trader).approve(router, forever);
    }
    return { factory, weth, router, tokens, owner, trader };
  }

  // pool adds a pool with reserves of 5,000 and 20,000 tokens.
  async function pool() {
    const all = await deploy();
    const { factory, router, tokens, owner } = all;
    const reserves = [ethers.parseEther("5000"), ethers.parseEther("20000")];
    await router.addLiquidity(...tokens, ...reserves, 0, 0, owner, forever);
    const pair = new ethers.Contract(await factory.getPair(...tokens), pairBuild.abi, owner);
    // have returns the reserves in the order of the tokens.
    const have = async () => {
      const [first, second] = await pair.getReserves();
      return (await pair.token0()) === tokens[0].target ? [first, second] : [second, first];
    };
    return { ...all, pair, reserves, have };
  }

  it("makes a pair at the address that the library computes", async () => {
    const { factory, tokens, pair, reserves, have, owner } = await helpers.loadFixture(pool);
    const sorted = [await pair.token0(), await pair.token1()];
    expect(BigInt(sorted[0])).to.be.below(BigInt(sorted[1]));
    const salt = ethers.solidityPackedKeccak256(["address", "address"], sorted);
    const code = ethers.keccak256(`0x${pairBuild.bytecode}`);
    expect(pair.target).to.equal(ethers.getCreate2Address(factory.target, salt, code));
    expect(await have()).to.deep.equal(reserves);
    expect(await pair.balanceOf(owner)).to.equal(squareRoot(reserves[0] * reserves[1]) - 1000n);
  });

  it("swaps an exact amount of tokens", async () => {
    const { router, tokens, pair, reserves, have, trader } = await helpers.loadFixture(pool);
    const amount = ethers.parseEther("30");
    const out = amountOut(amount, ...reserves);
    const path = tokens.map((token) => token.target);
    const swap = router.connect(trader).swapExactTokensForTokens;
    expect(await router.getAmountsOut(amount, path)).to.deep.equal([amount, out]);
    const args = [amount, out, path, trader, forever];
    expect(await swap.staticCall(...args)).to.deep.equal([amount, out]);
    const estimate = await swap.estimateGas(...args);
    const sent = await swap(...args);
    await expect(sent).to.changeTokenBalances(tokens[0], [trader, pair], [-amount, amount]);
    await expect(sent).to.changeTokenBalances(tokens[1], [trader, pair], [out, -out]);
    await expect(sent).to.emit(pair, "Swap");
    expect((await sent.wait()).gasUsed).to.be.at.most(estimate);
    expect(await have()).to.deep.equal([reserves[0] + amount, reserves[1] - out]);
  });

  it("swaps for an exact amount of tokens", async () => {
    const { router, tokens, reserves, have, trader } = await helpers.loadFixture(pool);
    const out = ethers.parseEther("7");
    const amount = (reserves[1] * out * 1000n) / ((reserves[0] - out) * kept) + 1n;
    const path = tokens.map((token) => token.target).reverse();
    await router.connect(trader).swapTokensForExactTokens(out, amount, path, trader, forever);
    expect(await have()).to.deep.equal([reserves[0] - out, reserves[1] + amount]);
  });

  it("swaps ether on a path of two pools", async () => {
    const { router, weth, tokens, reserves, owner, trader } = await helpers.loadFixture(pool);
    const ether = ethers.parseEther("40");
    await router.addLiquidityETH(tokens[0], reserves[0], 0, 0, owner, forever, { value: ether });
    const value = ethers.parseEther("2");
    const out = amountOut(amountOut(value, ether, reserves[0]), ...reserves);
    const path = [weth.target, tokens[0].target, tokens[1].target];
    const sent = await router.connect(trader)
      .swapExactETHForTokens(out, path, trader, forever, { value });
    await expect(sent).to.changeTokenBalance(tokens[1], trader, out);
    await expect(sent).to.changeEtherBalance(trader, -value);
    expect(await weth.totalSupply()).to.equal(ether + value);
  });

  it("refuses what is too little or too late", async () => {
    const { router, tokens, reserves, trader } = await helpers.loadFixture(pool);
    const swap = router.connect(trader).swapExactTokensForTokens;
    const path = tokens.map((token) => token.target);
    const tooMuch = amountOut(1000n, ...reserves) + 1n;
    await expect(swap(1000n, tooMuch, path, trader, forever))
      .to.be.revertedWith("UniswapV2Router: INSUFFICIENT_OUTPUT_AMOUNT");
    await expect(swap(1000n, 0, path, trader, (await helpers.time.latest()) - 1))
      .to.be.revertedWith("UniswapV2Router: EXPIRED");
  });

  it("gives liquidity back by permit", async () => {
    const { router, tokens, pair, reserves, owner } = await helpers.loadFixture(pool);
    const { chainId } = await ethers.provider.getNetwork();
    const value = await pair.balanceOf(owner);
    const { v, r, s } = ethers.Signature.from(await owner.signTypedData(
      { name: "Uniswap V2", version: "1", chainId, verifyingContract: pair.target },
      {
        Permit: [
          { name: "owner", type: "address" }, { name: "spender", type: "address" },
          { name: "value", type: "uint256" }, { name: "nonce", type: "uint256" },
          { name: "deadline", type: "uint256" },
        ],
      },
      { owner: owner.address, spender: router.target, value, nonce: 0, deadline: forever },
    ));
    const all = value + 1000n; // the pool keeps the first 1000
    const signed = [forever, false, v, r, s];
    await expect(router.removeLiquidityWithPermit(...tokens, value, 0, 0, owner, ...signed))
      .to.changeTokenBalances(tokens[0], [owner], [(reserves[0] * value) / all]);
  });

  it("adds up the price over time", async () => {
    const { pair } = await helpers.loadFixture(pool);
    const [reserve0, reserve1, began] = await pair.getReserves();
    const sum = await pair.price0CumulativeLast();
    await helpers.time.increase(1000);
    await pair.sync();
    const seconds = (await pair.getReserves())[2] - began;
    expect(seconds).to.be.at.least(1000n);
    const price = (reserve1 << 112n) / reserve0;
    expect(await pair.price0CumulativeLast()).to.equal(sum + price * seconds);
  });
});
