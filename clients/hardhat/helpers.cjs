// hardhat-network-helpers as far as a ledger can have them that nobody turns back and whose clock nobody moves. Each test
// sets its fixture up anew, and waits for it: on hardhat's own network a contract is there as soon as it is sent. A test that
// would move the clock is left out, and reported as pending.
let running;

exports.hooks = {
  beforeEach() {
    running = this.currentTest;
  },
};

exports.loadFixture = async (fixture) => {
  const made = await fixture();
  await Promise.all(Object.values(made).map((one) => one.waitForDeployment?.()));
  return made;
};

exports.time = {
  async latest() {
    const { ethers } = require("hardhat");
    const { timestamp } = await ethers.provider.getBlock("latest");
    return timestamp;
  },
  async increaseTo() {
    running.skip();
  },
};
