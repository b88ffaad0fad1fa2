// The committee: what a verifier trusts. Encodings are those of crates/types/src/committee.rs.
import { ed25519 } from "@noble/curves/ed25519.js";
import { utf8ToBytes } from "@noble/hashes/utils.js";
import { ProofError, bigEndian, concatBytes, fixed, list, string, u64 } from "./bytes.mjs";
import { hashParts } from "./hash.mjs";

/** The settings in their order, at their defaults: what differs from them is hashed. A default never changes. */
const SETTINGS = {
  service: "ordered-log",
  genesis_digest: "",
  execution_version: 1,
  clients: "open",
  protocol: "jolteon",
  leader_reputation: true,
  leader_tenure: 1,
  inline_bodies: false,
  availability: "stored",
  execution_certificates: false,
  snapshot_every: 1024,
  heartbeat_ms: 0,
  clock_drift_max_ms: 5000,
  trusting_period_days: 180,
  proposal_key: "identity",
  truncation: "ids",
};

/**
 * The committee of a file that founds a network, as a reader of TOML or JSON gives it. Its keys are those that the members'
 * operators gave each other: this file has to come from one of them, and not from the validator that is asked.
 */
export function committeeOf(file) {
  if (file.network !== undefined) {
    throw new ProofError("the committee file is of a later epoch: proofs are checked in a network's first one");
  }
  if (file.scheme !== "ed25519") {
    throw new ProofError(`the committee votes with ${file.scheme}: certificates by ed25519 are checked here`);
  }
  const members = file.members.map((member) => ({
    voting: votingKey(member),
    weight: member.weight ?? 1,
  }));
  const network = networkId(file);
  return { network, epoch: firstEpoch(network, file.epoch), members, needed: weak(members, file.redundancy ?? 0) };
}

function votingKey({ voting }) {
  const key = fixed(voting, 32, "a member's voting key");
  const point = ed25519.Point.fromBytes(key);
  if (point.is0() || !point.isTorsionFree()) throw new ProofError("a member's voting key is none");
  return key;
}

/** The hash of everything that decides who may sign, for what, and by which settings. */
function networkId(file) {
  const groups = Uint8Array.of(0); // none, of a committee without threshold keys
  const members = file.members.map(({ identity, voting, possession = "", weight = 1 }) =>
    concatBytes(string(identity), string(voting), string(possession), u64(weight)),
  );
  const content = concatBytes(
    string(file.name),
    u64(file.epoch),
    string(file.scheme),
    u64(file.redundancy ?? 0),
    groups,
    list(members),
  );
  const parts = [content];
  const differing = departures(file.settings ?? {});
  if (differing.length > 0 || file.from_state) parts.push(list(differing));
  if (file.from_state) parts.push(formerState(file.from_state));
  return hashParts("quorate v1 network id", parts);
}

/** Names and values of the settings that are not at their defaults. */
function departures(settings) {
  const stranger = Object.keys(settings).find((name) => !(name in SETTINGS));
  if (stranger) throw new ProofError(`the committee has a setting that is not known here: ${stranger}`);
  return Object.entries(SETTINGS)
    .map(([name, usual]) => [name, String(usual), String(settings[name] ?? usual)])
    .filter(([, usual, own]) => own !== usual)
    .map(([name, , own]) => concatBytes(string(name), string(own)));
}

function formerState({ network, height, root, snapshot }) {
  const [of, at, as] = [network, root, snapshot].map((text) => fixed(text, 32, "a hash of [from_state]"));
  return concatBytes(of, u64(height), at, as);
}

/** In the place of a hand-over stands one of no height, block and state, with the network's id for the next file. */
function firstEpoch(network, epoch) {
  const handOver = concatBytes(u64(0), new Uint8Array(64), network);
  return hashParts("quorate v1 epoch id", [network, bigEndian(epoch, 8), handOver]);
}

/** The smallest weight that is certain to include an honest member (crates/types/src/weights.rs). */
function weak(members, redundancy) {
  const [each] = members.map(({ weight }) => weight);
  const total = members.reduce((sum, { weight }) => sum + weight, 0);
  const areEqual = members.every(({ weight }) => weight === each);
  if (!areEqual) return Math.floor((total - 1) / 3) + 1;
  return Math.floor((members.length - 1 - 2 * redundancy) / 3) * each + 1;
}

/** The weight of the members that signed a statement of this kind; throws if a signature is not theirs. */
export function weightOf(committee, { signers, signatures }, label, payload) {
  const { network, epoch, members } = committee;
  const statement = concatBytes(utf8ToBytes(`quorate/v1/${label}`), network, epoch, payload);
  return signers.reduce((weight, signer, index) => {
    const signature = signatures.subarray(64 * index, 64 * (index + 1));
    // By ZIP-215, as members check each other's.
    if (!ed25519.verify(signature, statement, members[signer].voting, { zip215: true })) {
      throw new ProofError(`the signature of member ${signer} does not hold`);
    }
    return weight + members[signer].weight;
  }, 0);
}
