// Proofs of the state tree: the tree with most of it pruned. Their form, and why they show what they show, is in
// crates/ledger/src/map/proof.rs.
import { utf8ToBytes } from "@noble/hashes/utils.js";
import { ProofError, Reader, areEqual, concatBytes, u16, u64 } from "./bytes.mjs";
import { hashKeyed } from "./hash.mjs";

const VALUE = utf8ToBytes("quorate v1 key-value: a value   ");
const LEAF = utf8ToBytes("quorate v1 key-value: a leaf    ");
const ROOT = utf8ToBytes("quorate v1 key-value: the root  ");
/** The position follows it. */
const INNER = utf8ToBytes("quorate v1 key-value: a node, ");

const KEY_BYTES_MAX = 1024;
/** A byte of a key gives nine bits, the first of which says that it is there. */
const BITS_A_BYTE = 9;

/** The hash that stands for a value. */
export function valueHash(value) {
  return hashKeyed(VALUE, value);
}

/**
 * The hash of the value that the tree with this root has under a key; null where it has none. Throws a `ProofError` if the
 * proof does not show it.
 */
export function verifyGet(root, key, proof) {
  const reader = new Reader(proof);
  const count = reader.u64();
  const { hash, found } = count === 0n ? { hash: new Uint8Array(32), found: null } : top(readNodes(reader), key);
  reader.end();
  if (!areEqual(hashKeyed(ROOT, concatBytes(u64(count), hash)), root)) {
    throw new ProofError("the proof is not of the state with this root");
  }
  if (found === undefined) throw new ProofError("the proof does not show the leaf that the key leads to");
  return found;
}

/**
 * The hash of the top node, and what the key's bits lead to below it: a value's hash, null where another key is, undefined
 * where the tree is pruned. From the last node to the first both children come before their parent, the left one last.
 */
function top(nodes, key) {
  const done = [];
  for (const node of nodes.reverse()) {
    if (node.position === undefined) {
      done.push(node.pruned ? { hash: node.pruned, found: undefined } : leaf(node, key));
    } else {
      const [left, right] = [done.pop(), done.pop()];
      const hash = hashKeyed(concatBytes(INNER, u16(node.position)), concatBytes(left.hash, right.hash));
      done.push({ hash, found: (bit(key, node.position) ? right : left).found });
    }
  }
  return done.pop();
}

function leaf({ key: there, value }, key) {
  const hash = hashKeyed(LEAF, concatBytes(u16(there.length), there, value));
  return { hash, found: areEqual(there, key) ? value : null };
}

/** One whole tree, a node before its children. Positions increase downwards, which bounds how many are open. */
function readNodes(reader) {
  const nodes = [];
  const open = [];
  for (let lowest = 0; ; ) {
    const node = readNode(reader);
    nodes.push(node);
    if (node.position !== undefined) {
      if (node.position < lowest || node.position >= BITS_A_BYTE * KEY_BYTES_MAX) {
        throw new ProofError("the positions of the proof do not increase downwards");
      }
      open.push(node.position);
      lowest = node.position + 1;
    } else if (open.length > 0) {
      lowest = open.pop() + 1; // its right child is next
    } else {
      return nodes;
    }
  }
}

function readNode(reader) {
  switch (reader.u8()) {
    case 0:
      return { pruned: reader.take(32) };
    case 1: {
      const length = reader.u16();
      if (length < 1 || length > KEY_BYTES_MAX) throw new ProofError("a key of the proof is empty or too long");
      return { key: reader.take(length), value: reader.take(32) };
    }
    case 2:
      return { position: reader.u16() };
    default:
      throw new ProofError("a node of the proof is of no known kind");
  }
}

function bit(key, position) {
  const byte = key[Math.floor(position / BITS_A_BYTE)];
  const place = position % BITS_A_BYTE;
  if (byte === undefined) return false;
  return place === 0 || ((byte >> (8 - place)) & 1) === 1;
}
