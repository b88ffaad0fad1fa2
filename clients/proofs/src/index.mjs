// Checks what an EVM ledger answers to eth_getProof. Nothing of the answer is believed but what the committee signed
// (crates/ledger/src/evm/proof.rs).
import { verifyCertificate } from "./certificate.mjs";
import { ProofError, areEqual, bigEndian, bytesOf, bytesToHex, concatBytes, fixed, quantity, u256, u64 } from "./bytes.mjs";
import { hashParts } from "./hash.mjs";
import { valueHash, verifyGet } from "./tree.mjs";

export { ProofError } from "./bytes.mjs";
export { committeeOf } from "./committee.mjs";
export { verifyGet, valueHash } from "./tree.mjs";

const KECCAK256_EMPTY = "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";

/**
 * What an answer to `eth_getProof(address, slots, block)` shows of the state after `height`: the account, null where there
 * is none, and the value of each slot. Throws a `ProofError` if it does not show that.
 *
 * `height`, `blockHash` and `proposedAtMs` say of which block the answer is. Whoever asks compares them with the block that
 * was named; of `latest`, whose validator may be behind, judges whether that is new enough.
 */
export function verifyProof(committee, { address, slots = [] }, answer) {
  const { height, proposedAtMs, state } = verifyCertificate(
    committee,
    bytesOf(answer.certificate.certificate, "the certificate"),
  );
  const blockHash = fixed(answer.blockHash, 32, "the block's hash");
  const root = fixed(answer.stateRoot, 32, "the root of the state");
  if (!areEqual(hashParts("quorate v1 evm root", [root, blockHash]), state)) {
    throw new ProofError("the proof is of another state than the certificate");
  }
  const of = fixed(address, 20, "the address");
  return {
    height,
    proposedAtMs: Number(proposedAtMs),
    blockHash: `0x${bytesToHex(blockHash)}`,
    account: account(root, of, answer),
    slots: storage(root, of, slots, answer.storageProof),
  };
}

/** An account as it is stored: nonce, balance, hash of the code. */
function account(root, address, { accountProof, nonce, balance, codeHash }) {
  const stated = {
    nonce: quantity(nonce, "the nonce"),
    balance: quantity(balance, "the balance"),
    codeHash: `0x${bytesToHex(fixed(codeHash, 32, "the hash of the code"))}`,
  };
  const encoded = concatBytes(u64(stated.nonce), u256(stated.balance), fixed(codeHash, 32, "the hash of the code"));
  const isEmpty = stated.nonce === 0n && stated.balance === 0n && stated.codeHash === `0x${KECCAK256_EMPTY}`;
  const found = verifyGet(root, address, onlyProof(accountProof));
  if (found === null ? !isEmpty : !areEqual(found, valueHash(encoded))) {
    throw new ProofError("the account is not what its proof shows");
  }
  return found && stated;
}

/** Values of slots in the order in which they were asked for; of one that holds zero there is no entry. */
function storage(root, address, slots, proofs) {
  if (proofs.length !== slots.length) throw new ProofError("the answer is not of the slots that were asked for");
  return slots.map((slot, index) => {
    const value = quantity(proofs[index].value, "the value of a slot");
    const key = concatBytes(address, bigEndian(slot, 32));
    const found = verifyGet(root, key, onlyProof(proofs[index].proof));
    if (found === null ? value !== 0n : !areEqual(found, valueHash(bigEndian(value, 32)))) {
      throw new ProofError("a slot is not what its proof shows");
    }
    return value;
  });
}

/** The tree's own form is one proof, where Ethereum's has a node for each step. */
function onlyProof(proofs) {
  if (proofs.length !== 1) throw new ProofError("a proof of the state tree is one text");
  return bytesOf(proofs[0], "a proof");
}
