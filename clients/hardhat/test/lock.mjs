// Hardhat's sample project beyond its own test: what that does after it has moved the clock, when the time has come, and its
// deployment by Ignition.
import { randomUUID } from "node:crypto";
import { anyValue } from "@nomicfoundation/hardhat-chai-matchers/withArgs.js";
import lockModule from "hardhat/sample-projects/javascript/ignition/modules/Lock.js";
import { expect } from "chai";
import hre from "hardhat";
import { blocksUntil, ethers, newestBlock, others, owner } from "../ledger.mjs";

/** Ignition's own. */
const CONFIRMATIONS = 5;
/** Enough, and given because an estimate would refuse a lock that is too short. */
const GAS = 1_000_000n;
const LOCKED = 1_000_000_000n;
const YEAR = 365 * 24 * 60 * 60;

/** A lock that opens soon, yet later than it is deployed, however slow that is. */
async function shortLock(seconds = 2) {
  const { timestamp } = await newestBlock();
  const lock = await ethers.deployContract("Lock", [timestamp + seconds], { value: LOCKED, gasLimit: GAS });
  try {
    return await lock.waitForDeployment();
  } catch (error) {
    if (error.code !== "CALL_EXCEPTION") throw error;
    return shortLock(2 * seconds);
  }
}

describe("Lock, in its time", () => {
  it("opens for its owner alone", async () => {
    const lock = await shortLock();
    const opens = await lock.unlockTime();
    await blocksUntil(({ timestamp }) => timestamp >= opens);
    const [other] = others;
    await expect(lock.connect(other).withdraw()).to.be.revertedWith("You aren't the owner");
    const withdrawal = await lock.withdraw();
    await expect(withdrawal).to.emit(lock, "Withdrawal").withArgs(LOCKED, anyValue);
    await expect(withdrawal).to.changeEtherBalances([owner, lock], [LOCKED, -LOCKED]);
  });

  it("is deployed by Ignition, which waits for confirmations", async () => {
    // It wants the signer's last transaction to have as many, too.
    const { number: sent, timestamp } = await newestBlock();
    await blocksUntil(({ number }) => number >= sent + CONFIRMATIONS);
    const unlockTime = timestamp + YEAR;
    const options = { deploymentId: `lock-${randomUUID()}`, parameters: { LockModule: { unlockTime } } };
    const { lock } = await hre.ignition.deploy(lockModule, options);
    expect(await lock.unlockTime()).to.equal(unlockTime);
    expect(await lock.owner()).to.equal(owner.address);
    expect(await ethers.provider.getBalance(lock.target)).to.equal(LOCKED);
    const again = await hre.ignition.deploy(lockModule, options);
    expect(again.lock.target).to.equal(lock.target);
  });
});
