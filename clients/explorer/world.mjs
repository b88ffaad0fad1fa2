// What the explorer's check has it show: tokens of three standards, a contract that creates and pays inside, and a transaction that
// failed, sent by ethers to the running ledger.

import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { keys, rpc } from "../environment.mjs";

const { Contract, ContractFactory, JsonRpcProvider, Wallet, parseEther, randomBytes, hexlify } = createRequire(new URL("../ethers/package.json", import.meta.url))("ethers");

const PAYMENTS = 30; // More than a page has.

export const artefact = (name) => JSON.parse(readFileSync(new URL(`../../contracts/artifacts/${name}.json`, import.meta.url), "utf8"));

async function deploy(signer, name, ...args) {
  const { abi, bytecode } = artefact(name);
  const contract = await new ContractFactory(abi, bytecode, signer).deploy(...args);
  return contract.waitForDeployment();
}

const done = async (sent) => (await sent).wait();

/** Sends all of it, and says where it is. The accounts are new: what they did is what was done here. */
export async function makeWorld() {
  const provider = new JsonRpcProvider(rpc(), undefined, { cacheTimeout: -1 });
  const [rich] = keys(9).map((key) => new Wallet(key, provider));
  const [owner, friend, maker] = [0, 1, 2].map(() => new Wallet(hexlify(randomBytes(32)), provider));
  await done(rich.sendTransaction({ to: owner.address, value: parseEther("10") }));
  await done(rich.sendTransaction({ to: friend.address, value: parseEther("1") }));

  const token = await deploy(owner, "Token", "Example", "EXM", parseEther("1000"));
  const transfer = await done(token.transfer(friend.address, parseEther("12.5")));
  const failed = await failedTransfer(token.connect(friend), owner.address);
  const collectible = await deploy(owner, "Collectible", "Pictures", "PIC");
  for (const to of [owner, owner, friend]) await done(collectible.mint(to.address));
  const given = await done(collectible.transferFrom(owner.address, friend.address, 1));
  const items = await deploy(owner, "Items");
  await done(items.mintBatch(owner.address, [7, 8], [100, 5]));
  await done(items.safeTransferFrom(owner.address, friend.address, 7, 40, "0x"));
  const workshop = await deploy(owner, "Workshop");
  const made = await done(workshop.make("Prints", "PRT", maker.address, { value: parseEther("0.25") }));
  for (let sent = 0; sent < PAYMENTS; sent += 1) await done(owner.sendTransaction({ to: maker.address, value: parseEther("0.001") }));

  const addresses = await Promise.all([token, collectible, items, workshop].map((contract) => contract.getAddress()));
  const [inner] = made.logs.map(({ address }) => address);
  return { provider, owner, friend, maker, inner, transfer, failed, given, made, ...Object.fromEntries(["token", "collectible", "items", "workshop"].map((name, at) => [name, addresses[at]])) };
}

/** Sends more than there is, with gas of its own: an estimate would say so. */
async function failedTransfer(token, to) {
  const sent = await token.transfer(to, parseEther("5000"), { gasLimit: 100_000 });
  return sent.wait().then(
    () => Promise.reject(new Error("it succeeded")),
    ({ receipt }) => receipt,
  );
}

export const balanceOf = (world, address, account) => new Contract(address, artefact("Token").abi, world.provider).balanceOf(account);
