// Bytes as they come and as they are encoded: borsh, whose numbers are little-endian.
import { bytesToHex, concatBytes, hexToBytes, utf8ToBytes } from "@noble/hashes/utils.js";

export { bytesToHex, concatBytes };

/** Reason for which something is not shown. */
export class ProofError extends Error {
  name = "ProofError";
}

/** The bytes of a text in hexadecimal, with `0x` before it or not. */
export function bytesOf(text, what) {
  try {
    return hexToBytes(text.replace(/^0x/, ""));
  } catch {
    throw new ProofError(`${what} is not in hexadecimal`);
  }
}

/** Bytes of which there must be so many. */
export function fixed(text, length, what) {
  const bytes = bytesOf(text, what);
  if (bytes.length !== length) throw new ProofError(`${what} has ${bytes.length} bytes, not ${length}`);
  return bytes;
}

/** A whole number as JSON-RPC has it: hexadecimal without sign. */
export function quantity(text, what) {
  if (!/^0x[0-9a-f]+$/i.test(text)) throw new ProofError(`${what} is not a number`);
  return BigInt(text);
}

export const u16 = (value) => littleEndian(BigInt(value), 2);
export const u32 = (value) => littleEndian(BigInt(value), 4);
export const u64 = (value) => littleEndian(BigInt(value), 8);
export const u256 = (value) => littleEndian(BigInt(value), 32);

/** A number of so many bytes, the first of them the most significant. */
export function bigEndian(value, length) {
  return littleEndian(BigInt(value), length).reverse();
}

/** A text with its length before it. */
export function string(text) {
  const bytes = utf8ToBytes(text);
  return concatBytes(u32(bytes.length), bytes);
}

/** Encodings of a list, with their number before them. */
export function list(items) {
  return concatBytes(u32(items.length), ...items);
}

export function areEqual(a, b) {
  return a.length === b.length && a.every((byte, index) => byte === b[index]);
}

function littleEndian(value, length) {
  const bytes = new Uint8Array(length);
  let rest = value;
  for (let index = 0; index < length; index += 1) {
    bytes[index] = Number(rest & 0xffn);
    rest >>= 8n;
  }
  if (rest !== 0n) throw new ProofError(`${value} has no place in ${length} bytes`);
  return bytes;
}

/** Reads what was encoded, from the first byte to the last. */
export class Reader {
  #bytes;
  #at = 0;

  constructor(bytes) {
    this.#bytes = bytes;
  }

  take(length) {
    if (this.#at + length > this.#bytes.length) throw new ProofError("what should be read ends early");
    this.#at += length;
    return this.#bytes.subarray(this.#at - length, this.#at);
  }

  u8 = () => this.take(1)[0];
  u16 = () => Number(this.#number(2));
  u32 = () => Number(this.#number(4));
  u64 = () => this.#number(8);

  /** Nothing may follow. */
  end() {
    if (this.#at !== this.#bytes.length) throw new ProofError("something follows what should be read");
  }

  #number(length) {
    return this.take(length).reduceRight((value, byte) => (value << 8n) | BigInt(byte), 0n);
  }
}
