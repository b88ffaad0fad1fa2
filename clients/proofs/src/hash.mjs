// Hashes: BLAKE3 for everything of Quorate's (crates/crypto/src/hash.rs).
import { blake3 } from "@noble/hashes/blake3.js";
import { utf8ToBytes } from "@noble/hashes/utils.js";
import { concatBytes, u64 } from "./bytes.mjs";

/** Of parts, each with its length before it, under a domain. */
export function hashParts(domain, parts) {
  const content = parts.flatMap((part) => [u64(part.length), part]);
  return blake3(concatBytes(...content), { context: utf8ToBytes(domain) });
}

/** Under a key of 32 bytes, which says what is hashed. */
export function hashKeyed(key, bytes) {
  return blake3(bytes, { key });
}
