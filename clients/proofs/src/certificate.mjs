// Execution certificates: what a height came to, signed by so many members that one at least is honest
// (crates/types/src/executed.rs).
import { ProofError, Reader, concatBytes, u64 } from "./bytes.mjs";
import { weightOf } from "./committee.mjs";
import { hashParts } from "./hash.mjs";

const HEADER_BYTES = 8 + 8 + 3 * 32;
const SIGNATURE_BYTES = 64;

/** What the certificate says, which must be signed by enough of the committee. */
export function verifyCertificate(committee, bytes) {
  const reader = new Reader(bytes);
  const encoded = reader.take(HEADER_BYTES);
  const signed = readSigned(reader, committee.members.length);
  reader.end();
  const header = readHeader(new Reader(encoded));
  const root = hashParts("quorate v1 block root", [encoded]);
  const weight = weightOf(committee, signed, "EXECUTED/", concatBytes(u64(header.height), root));
  if (weight < committee.needed) {
    throw new ProofError(`the signers weigh ${weight}, and ${committee.needed} includes an honest one`);
  }
  return header;
}

function readHeader(reader) {
  const [height, proposedAtMs] = [reader.u64(), reader.u64()];
  return { height, proposedAtMs, state: reader.take(32), sessions: reader.take(32), requests: reader.take(32) };
}

/** Signers as one bit a member, then their signatures one after the other. */
function readSigned(reader, size) {
  const members = reader.u16();
  if (members !== size) throw new ProofError("the certificate is of another committee");
  const bits = reader.take(Math.ceil(members / 8));
  const signers = [...Array(8 * bits.length).keys()].filter((index) => (bits[index >> 3] >> (index & 7)) & 1);
  if (signers.some((index) => index >= members)) throw new ProofError("the certificate names a member that is none");
  const signatures = reader.take(reader.u32());
  if (signatures.length !== signers.length * SIGNATURE_BYTES) {
    throw new ProofError("the certificate has not one signature for each signer");
  }
  return { signers, signatures };
}
