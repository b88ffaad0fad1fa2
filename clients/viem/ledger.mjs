// The running ledger, taken from the environment, and the clients and contracts that the tests use.
import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { createPublicClient, createWalletClient, defineChain, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { keys, otherRpc, rpc, ws } from "../environment.mjs";

export const RPC = rpc();
export const WS = ws();
export const OTHER = otherRpc();
export const ETHER = 10n ** 18n;
export const GWEI = 10n ** 9n;
export const SUPPLY = 1_000_000n * ETHER;

export const chain = defineChain({
  id: await createPublicClient({ transport: http(RPC) }).getChainId(),
  name: "Quorate",
  nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
  rpcUrls: { default: { http: [RPC], webSocket: [WS] } },
});

export const reader = createPublicClient({ chain, transport: http(RPC), pollingInterval: 50 });
export const [owner, other] = keys(3, 4).map(wallet);

/** A client that signs with one key. */
export function wallet(key) {
  return createWalletClient({ account: privateKeyToAccount(key), chain, transport: http(RPC) });
}

/** The receipt of a transaction whose hash is promised. */
export async function mined(sent) {
  return reader.waitForTransactionReceipt({ hash: await sent, timeout: 120_000 });
}

function artefact(name) {
  const path = new URL(`../../contracts/artifacts/${name}.json`, import.meta.url);
  return JSON.parse(readFileSync(path, "utf8"));
}

/** Deploys a contract by its artefact; gives what calls of it need, and the receipt. */
export async function deploy(name, ...args) {
  const { abi, bytecode, deployedBytecode } = artefact(name);
  const receipt = await mined(owner.deployContract({ abi, bytecode, args }));
  assert.equal(receipt.status, "success");
  const address = receipt.contractAddress;
  assert.equal(await reader.getCode({ address }), deployedBytecode);
  return { abi, address, receipt };
}

export function read({ abi, address }, functionName, ...args) {
  return reader.readContract({ abi, address, functionName, args });
}

/** Sends a call of a contract, with `fields` of the transaction; gives the receipt. */
export async function write(sender, { abi, address }, functionName, args, fields = {}) {
  return mined(sender.writeContract({ abi, address, functionName, args, ...fields }));
}
