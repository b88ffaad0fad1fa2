// Keccak-256 of texts, by which Ethereum names functions and events and writes the letters of addresses. The validator computes
// it (web3_sha3): what is to be shown is learnt before.

const HEXADECIMAL = /"0x([0-9a-f]{40,4096})"/gi; // What is longer is no list of parties.
const LEARNT_MAX = 200; // Addresses of one answer: contracts may return any number.
const ADDRESS = 40; // Digits.
const SELECTOR = 8;
const WORD = 64;
// A word that is an address, and no number: those have more zeroes before them.
const ADDRESS_IN_WORD = /^0{24}(?!0{8})/;

const known = new Map();

const bytesOf = (text) => `0x${[...new TextEncoder().encode(text)].map((byte) => byte.toString(16).padStart(2, "0")).join("")}`;

/** Has hashes of these texts computed, as far as they are not known, by what asks the validator. */
export async function learn(texts, ask) {
  const unknown = [...new Set(texts)].filter((text) => !known.has(text));
  await Promise.all(unknown.map(async (text) => known.set(text, await ask("web3_sha3", bytesOf(text)))));
}

/** The addresses among digits: they are one, or words of which some are, with a selector before them or without. */
function addressesIn(digits) {
  if (digits.length === ADDRESS) return [digits];
  const before = digits.length % WORD;
  if (before !== 0 && before !== SELECTOR) return [];
  const words = digits.slice(before).match(/.{64}/g) ?? [];
  return words.filter((word) => ADDRESS_IN_WORD.test(word)).map((word) => word.slice(-ADDRESS));
}

/** Learns what the addresses in a value are written by. One that is not learnt is shown without its letters' case. */
export function learnAddresses(value, ask) {
  const found = [...JSON.stringify(value).matchAll(HEXADECIMAL)].flatMap(([, digits]) => addressesIn(digits.toLowerCase()));
  return learn([...new Set(found)].slice(0, LEARNT_MAX), ask).catch(() => {});
}

/** The hash of a text that was learnt. */
export const hashOf = (text) => known.get(text);
