// The running ledger that suites and pages are checked against, as the environment names it.
import { readFileSync } from "node:fs";

function setting(name, meaning) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: ${meaning}`);
  return value;
}

export const rpc = () => setting("QUORATE_RPC", "the HTTP URL of the ledger's JSON-RPC");
export const otherRpc = () => setting("QUORATE_RPC_OTHER", "the URL of another member's JSON-RPC");
export const ws = () => setting("QUORATE_WS", "its WebSocket URL");

/** The keys of the accounts that one suite has for itself, from the `first` of all to the `last`: nobody else sends with their nonces. */
export function keys(first, last = first) {
  const all = setting("QUORATE_KEYS", "private keys of funded accounts, 0x and hexadecimal, separated by commas").split(",");
  if (all.length < last) throw new Error(`QUORATE_KEYS holds ${all.length} keys; this suite uses those up to number ${last}`);
  return all.slice(first - 1, last);
}

/** MiB of memory that the validator takes whose process $VALIDATOR names; not a number without it. */
export function memory() {
  if (!process.env.VALIDATOR) return NaN;
  const status = readFileSync(`/proc/${process.env.VALIDATOR}/status`, "utf8");
  return Math.round(Number(/VmRSS:\s+(\d+)/.exec(status)[1]) / 1024);
}

export const nap = (milliseconds) => new Promise((resolve) => setTimeout(resolve, milliseconds));
