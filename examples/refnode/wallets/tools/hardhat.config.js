// Hardhat on the network "localhost", with npm's compiler instead of a download.
require("@nomicfoundation/hardhat-ethers");
require("@nomicfoundation/hardhat-chai-matchers");
const { subtask } = require("hardhat/config");
const names = require("hardhat/builtin-tasks/task-names");
const version = "0.8.30";

subtask(names.TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD, async () => ({
  compilerPath: require.resolve("solc/soljson.js"),
  isSolcJs: true,
  version,
  longVersion: require("solc").version(),
}));

module.exports = {
  solidity: { version, settings: { evmVersion: "prague", optimizer: { enabled: true } } },
  networks: { localhost: { url: process.env.RPC, timeout: 0 } },
  mocha: { timeout: 0 },
};
