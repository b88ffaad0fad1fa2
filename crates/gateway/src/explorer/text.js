// Numbers, amounts and names as text.

import { grouped } from "./base.js";
import { hashOf } from "./hashes.js";

const ETHER = 18; // Decimals.

export const isHash = (text) => /^0x[0-9a-f]{64}$/i.test(text);
export const isAddress = (text) => /^0x[0-9a-f]{40}$/i.test(text);
export const isNumber = (text) => /^\d{1,15}$/.test(text);
export const hex = (number) => "0x" + number.toString(16);
export const byteCount = (bytes) => (bytes.length - 2) / 2;

/** The 32-byte words of bytes; the last may be shorter. */
export const words = (data) => (data.slice(2).match(/.{1,64}/g) ?? []).map((word) => "0x" + word);

/** An amount in its smallest unit, as a decimal number. */
export function decimal(quantity, decimals) {
  const unit = 10n ** BigInt(decimals);
  const fraction = (BigInt(quantity) % unit).toString().padStart(decimals, "0").replace(/0+$/, "");
  return grouped(BigInt(quantity) / unit) + (decimals && fraction ? `.${fraction}` : "");
}

/** The same with six decimals, for tables. */
export function rounded(quantity, decimals) {
  const [whole, fraction = ""] = decimal(quantity, decimals).split(".");
  const kept = fraction.slice(0, 6).replace(/0+$/, "");
  if (fraction && !kept && whole === "0") return "<0.000001";
  return kept ? `${whole}.${kept}` : whole;
}

export const ether = (wei) => `${decimal(wei, ETHER)} ether`;
export const roundedEther = (wei) => rounded(wei, ETHER);
export const gasPrice = (wei) => (BigInt(wei) === 0n ? "0" : `${decimal(wei, 9)} gwei`);

/** An address with the letters of EIP-55, where its hash is known. */
export function checksummed(address) {
  const digits = address.slice(2).toLowerCase();
  const hash = hashOf(digits)?.slice(2) ?? "";
  return `0x${[...digits].map((letter, at) => (hash[at] >= "8" ? letter.toUpperCase() : letter)).join("")}`;
}

export const sameAddress = (one, other) => one?.toLowerCase() === other?.toLowerCase();
