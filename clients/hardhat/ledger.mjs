// The running ledger as a hardhat project has it: its signers, of whom the first pays for the others, who are new each time.
import hre from "hardhat";

export const { ethers } = hre;
export const ETHER = ethers.parseEther("1");
export const [owner, ...others] = await ethers.getSigners();
const miner = others.pop();

/** The receipt of a promised transaction, which was carried out. */
export async function mined(sent) {
  return (await sent).wait();
}

export async function deploy(name, ...args) {
  const contract = await ethers.deployContract(name, args);
  return contract.waitForDeployment();
}

export const newestBlock = () => ethers.provider.getBlock("latest");

/** Makes blocks until the newest one is as asked: nobody moves this ledger's clock or its height. */
export async function blocksUntil(asked) {
  while (!asked(await newestBlock())) await mined(miner.sendTransaction({ to: miner.address }));
}

for (const { address } of [miner, ...others]) await mined(owner.sendTransaction({ to: address, value: ETHER }));
