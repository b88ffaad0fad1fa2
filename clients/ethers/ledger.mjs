// The running ledger, taken from the environment, and what ethers 6 has to work with it: as it comes, with no setting of
// its own but the address.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { ContractFactory, JsonRpcProvider, Wallet } from "ethers";
import { keys, rpc } from "../environment.mjs";

export const provider = new JsonRpcProvider(rpc());

export const [sender, idler, ...traders] = keys(5, 8).map((key) => new Wallet(key, provider));

/** Contracts that lie at the same address on every chain, with the transactions that deploy them: nobody has their keys. */
export const keyless = JSON.parse(readFileSync(new URL("keyless.json", import.meta.url), "utf8"));

const { resolve } = createRequire(import.meta.url);
const UNISWAP = {
  UniswapV2Factory: "@uniswap/v2-core/build/UniswapV2Factory.json",
  UniswapV2Pair: "@uniswap/v2-core/build/UniswapV2Pair.json",
  UniswapV2Router02: "@uniswap/v2-periphery/build/UniswapV2Router02.json",
  WETH9: "@uniswap/v2-periphery/build/WETH9.json",
};

/** A contract's interface and code: of this project, or as Uniswap published it. */
export function artefact(name) {
  const published = UNISWAP[name];
  const path = published
    ? resolve(published)
    : new URL(`../../contracts/artifacts/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(path, "utf8"));
}

/** Deploys a contract, and waits as its documentation says. */
export async function deploy(signer, name, ...args) {
  const { abi, bytecode } = artefact(name);
  const contract = await new ContractFactory(abi, bytecode, signer).deploy(...args);
  return contract.waitForDeployment();
}
