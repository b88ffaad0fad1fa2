// What hardhat's chai matchers say of transactions and reverts. Those of balances read them at the block before, and want a
// transaction that is alone in its block.
import { anyValue } from "@nomicfoundation/hardhat-chai-matchers/withArgs.js";
import { PANIC_CODES } from "@nomicfoundation/hardhat-chai-matchers/panic.js";
import { expect } from "chai";
import { ETHER, deploy, ethers, mined, others, owner } from "../ledger.mjs";

/** So much that a transaction is sent without an estimate, which would find what is wrong with it. */
const GAS = 100_000n;

describe("Matchers", () => {
  let faults;
  let coin;

  before(async () => {
    faults = await deploy("Faults");
    coin = await deploy("Coin");
    await mined(coin.mint(owner.address, 10n * ETHER));
  });

  it("revertedWith, of a call and of a transaction", async () => {
    await expect(faults.text()).to.be.revertedWith("Faults: as asked");
    await expect(faults.text.send()).to.be.revertedWith("Faults: as asked");
    await expect(faults.take("", { value: 1n })).not.to.be.reverted;
  });

  it("revertedWithCustomError, with its arguments", async () => {
    await expect(faults.custom(7n)).to.be.revertedWithCustomError(faults, "Refused").withArgs(owner.address, 7n);
    const [other] = others;
    await expect(faults.connect(other).custom.send(8n))
      .to.be.revertedWithCustomError(faults, "Refused")
      .withArgs(other.address, anyValue);
  });

  it("revertedWithPanic and revertedWithoutReason", async () => {
    await expect(faults.quotient(1n, 0n)).to.be.revertedWithPanic(PANIC_CODES.DIVISION_BY_ZERO);
    await expect(faults.silent()).to.be.revertedWithoutReason();
  });

  it("reverted, of a transaction that is in a block", async () => {
    const sent = await faults.custom.send(9n, { gasLimit: GAS });
    await expect(sent).to.be.reverted;
    const { status } = await ethers.provider.getTransactionReceipt(sent.hash);
    expect(status).to.equal(0);
  });

  it("emit, with arguments", async () => {
    await expect(faults.take("tea", { value: 5n }))
      .to.emit(faults, "Taken")
      .withArgs(owner.address, 5n, "tea");
    await expect(coin.transfer(owner.address, 1n)).not.to.emit(faults, "Taken");
  });

  it("changeEtherBalance of who pays, with the fee and without", async () => {
    const [other] = others;
    const fee = await ethers.provider.getFeeData();
    const pay = () => owner.sendTransaction({ to: other.address, value: 3n, gasPrice: fee.gasPrice + 1n });
    await expect(pay).to.changeEtherBalance(owner, -3n);
    const cost = 21_000n * (fee.gasPrice + 1n);
    await expect(pay).to.changeEtherBalance(owner, -3n - cost, { includeFee: true });
    await expect(pay).to.changeEtherBalance(other, 3n);
  });

  it("changeEtherBalances within a contract", async () => {
    const held = await ethers.provider.getBalance(faults.target);
    await expect(faults.take("", { value: 11n })).to.changeEtherBalances([owner, faults], [-11n, 11n]);
    await expect(faults.giveBack()).to.changeEtherBalances([owner, faults], [held + 11n, -held - 11n]);
  });

  it("changeTokenBalances", async () => {
    const [other] = others;
    await expect(coin.transfer(other.address, 4n)).to.changeTokenBalances(coin, [owner, other], [-4n, 4n]);
    await expect(coin.transfer(other.address, 4n)).to.changeTokenBalance(coin, other, 4n);
  });
});
