// Hardhat 2 with the running ledger for its network. Solidity's compiler is npm's: hardhat's own come from a server of theirs.
const { TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD } = require("hardhat/builtin-tasks/task-names");
const { subtask } = require("hardhat/config");
const { randomBytes } = require("node:crypto");
const solc = require("solc/package.json");
const { keys, rpc } = require("../environment.mjs");
const { hooks, ...helpers } = require("./helpers.cjs");

require("@nomicfoundation/hardhat-chai-matchers");
require("@nomicfoundation/hardhat-ignition-ethers");

// What hardhat's sample project requires for hardhat's own network.
const theirs = require.resolve("@nomicfoundation/hardhat-toolbox/network-helpers");
require.cache[theirs] = Object.assign(new module.constructor(theirs), { exports: helpers, loaded: true });

subtask(TASK_COMPILE_SOLIDITY_GET_SOLC_BUILD, async ({ solcVersion }) => ({
  version: solcVersion,
  longVersion: solcVersion,
  compilerPath: require.resolve("solc/soljson.js"),
  isSolcJs: true,
}));

const fresh = () => `0x${randomBytes(32).toString("hex")}`;
const built = "../../target/clients/hardhat";

module.exports = {
  solidity: { version: solc.version, settings: { evmVersion: "cancun", optimizer: { enabled: true, runs: 200 } } },
  defaultNetwork: "quorate",
  networks: { quorate: { url: rpc(), accounts: [...keys(9), fresh(), fresh(), fresh(), fresh()] } },
  paths: { artifacts: `${built}/artifacts`, cache: `${built}/cache`, ignition: `${built}/ignition` },
  mocha: { timeout: 300_000, rootHooks: hooks },
};
