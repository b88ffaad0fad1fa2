// Tokens: what contracts say of themselves by the standards (EIP-20, EIP-721, EIP-1155), asked for once.

import { Malformed, decode, encodeCall } from "./abi.js";
import { standard } from "./known.js";
import { Refused, ask } from "./rpc.js";

const GAS = "0x7a120"; // 500,000: a contract may go on for as long as it is let.
const NAME_MAX = 40; // Characters of a name that are shown.
const KINDS = [["ERC-721", "0x80ac58cd"], ["ERC-1155", "0xd9b67a26"]]; // By the interfaces that they say they have.

const tokens = new Map();

/** What a contract answers to a function of a standard; null where it does not. */
async function told(address, name, ...values) {
  const entry = standard(name);
  try {
    return decode(entry.outputs, await ask("eth_call", { to: address, data: encodeCall(entry, values), gas: GAS }, "latest"))[0];
  } catch (failure) {
    if (failure instanceof Refused || failure instanceof Malformed) return null;
    throw failure;
  }
}

/** Of a contract's text only letters, digits and a few signs are believed. */
const plain = (text) => (text ?? "").replace(/[^\p{L}\p{N} ._$&()+-]/gu, "").slice(0, NAME_MAX);

async function load(address) {
  const [name, symbol, decimals, supply, ...has] = await Promise.all([
    ...["name", "symbol", "decimals", "totalSupply"].map((each) => told(address, each)),
    ...KINDS.map(([, id]) => told(address, "supportsInterface", id)),
  ]);
  const kind = KINDS.find((_, at) => has[at])?.[0] ?? (supply !== null && (decimals !== null || symbol !== null) ? "ERC-20" : null);
  if (!kind) return null;
  const isCounted = kind === "ERC-20" && decimals !== null && decimals < 80n;
  return { address, kind, name: plain(name), symbol: plain(symbol), decimals: isCounted ? Number(decimals) : 0, supply };
}

/** A token, or null of a contract that is none. */
export function tokenOf(address) {
  const name = address.toLowerCase();
  if (!tokens.has(name)) {
    const loading = load(address);
    tokens.set(name, loading);
    loading.catch(() => tokens.delete(name));
  }
  return tokens.get(name);
}

/** The same, asked for anew: what it says may have changed. */
export function tokenNow(address) {
  tokens.delete(address.toLowerCase());
  return tokenOf(address);
}
