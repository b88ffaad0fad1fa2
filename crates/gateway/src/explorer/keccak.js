// Keccak-256, which Ethereum names functions, events and addresses' letters by.

const MASK = (1n << 64n) - 1n;
const RATE = 136; // Bytes that a block takes in.
const ROUNDS = 24;

const rotated = (lane, by) => ((lane << by) | (lane >> (64n - by))) & MASK;

/** The constants of the rounds, from the shift register that defines them (FIPS 202, 3.2.5). */
const CONSTANTS = (() => {
  let register = 1;
  const bit = () => {
    const low = register & 1;
    register = (register << 1) ^ ((register >> 7) * 0x171);
    return BigInt(low);
  };
  return Array.from({ length: ROUNDS }, () => [0n, 1n, 3n, 7n, 15n, 31n, 63n].reduce((constant, place) => constant | (bit() << place), 0n));
})();

/** Where each lane goes, and by how much it is rotated on the way (3.2.2 and 3.2.3). */
const MOVES = (() => {
  const moves = [];
  let [x, y] = [1, 0];
  for (let step = 1; step <= 24; step += 1) {
    const from = x + 5 * y;
    [x, y] = [y, (2 * x + 3 * y) % 5];
    moves.push([from, x + 5 * y, BigInt(((step * (step + 1)) / 2) % 64)]);
  }
  return moves;
})();

function permute(lanes) {
  for (const constant of CONSTANTS) {
    const columns = [0, 1, 2, 3, 4].map((x) => lanes[x] ^ lanes[x + 5] ^ lanes[x + 10] ^ lanes[x + 15] ^ lanes[x + 20]);
    const mixed = lanes.map((lane, at) => lane ^ columns[(at + 4) % 5] ^ rotated(columns[(at + 1) % 5], 1n));
    const moved = [...mixed];
    for (const [from, to, by] of MOVES) moved[to] = rotated(mixed[from], by);
    moved.forEach((lane, at) => {
      const row = at - (at % 5);
      lanes[at] = lane ^ (~moved[row + ((at + 1) % 5)] & MASK & moved[row + ((at + 2) % 5)]);
    });
    lanes[0] ^= constant;
  }
}

/** The hash of bytes, in hexadecimal with 0x. */
export function keccak256(input) {
  const padded = new Uint8Array(Math.ceil((input.length + 1) / RATE) * RATE);
  padded.set(input);
  padded[input.length] ^= 0x01;
  padded[padded.length - 1] ^= 0x80;
  const view = new DataView(padded.buffer);
  const lanes = Array(25).fill(0n);
  for (let block = 0; block < padded.length; block += RATE) {
    for (let lane = 0; lane < RATE / 8; lane += 1) lanes[lane] ^= view.getBigUint64(block + 8 * lane, true);
    permute(lanes);
  }
  const swapped = (lane) => lane.toString(16).padStart(16, "0").match(/../g).reverse().join("");
  return `0x${lanes.slice(0, 4).map(swapped).join("")}`;
}

/** The hash of text. */
export const hashOf = (text) => keccak256(new TextEncoder().encode(text));
