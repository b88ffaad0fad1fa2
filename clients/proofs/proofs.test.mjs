// Answers of a running ledger are checked against its committee file, and everything that somebody could change in them is
// refused.
import { strict as assert } from "node:assert";
import { readFileSync } from "node:fs";
import { before, test } from "node:test";
import { ed25519 } from "@noble/curves/ed25519.js";
import { parse } from "smol-toml";
import { createWalletClient, defineChain, encodeAbiParameters, http, keccak256, publicActions, toHex } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { ProofError, committeeOf, valueHash, verifyGet, verifyProof } from "quorate-proofs";

function setting(name, meaning) {
  const value = process.env[name];
  if (!value) throw new Error(`${name} is not set: ${meaning}`);
  return value;
}

const RPC = setting("QUORATE_RPC", "the HTTP URL of the ledger's JSON-RPC");
const KEYS = setting(
  "QUORATE_KEYS",
  "private keys of funded accounts, 0x and hexadecimal, separated by commas",
).split(",");
if (KEYS.length < 9) {
  throw new Error(`QUORATE_KEYS holds ${KEYS.length} keys; this suite uses the last, and others the first eight`);
}
const FILE = parse(
  readFileSync(setting("QUORATE_COMMITTEE", "the path of the committee file with which the network began"), "utf8"),
);
const token = JSON.parse(readFileSync(new URL("../../contracts/artifacts/Token.json", import.meta.url), "utf8"));

/** What the tests ask about: a token, who holds some of it, and who holds none and has no account. */
const asked = {};
const committee = committeeOf(FILE);
const account = privateKeyToAccount(KEYS.at(-1));
const stranger = () => privateKeyToAccount(generatePrivateKey()).address;
let client;

before(async () => {
  const bare = createWalletClient({ account, transport: http(RPC) });
  const chain = defineChain({
    id: await bare.getChainId(),
    name: "Quorate",
    nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 },
    rpcUrls: { default: { http: [RPC] } },
  });
  client = createWalletClient({ account, chain, transport: http(RPC) }).extend(publicActions);
  const { abi, bytecode } = token;
  const deployed = await client.deployContract({ abi, bytecode, args: ["A token", "T", 1_000n] });
  const { contractAddress } = await client.waitForTransactionReceipt({ hash: deployed });
  const holder = stranger();
  const paid = await client.writeContract({ address: contractAddress, abi, functionName: "transfer", args: [holder, 7n] });
  const { blockNumber } = await client.waitForTransactionReceipt({ hash: paid });
  Object.assign(asked, { token: contractAddress, holder, nobody: stranger(), height: blockNumber });
});

/** Slot of the token's contract with the balance of a holder: of the mapping at slot 0. */
function slotOf(holder) {
  return BigInt(keccak256(encodeAbiParameters([{ type: "address" }, { type: "uint256" }], [holder, 0n])));
}

/** An answer of a height at which the tests' own transactions are executed: whoever answers may be behind. */
async function proofOf(address, slots) {
  const params = [address, slots.map((slot) => toHex(slot)), "latest"];
  for (;;) {
    const answer = await client.request({ method: "eth_getProof", params });
    if (BigInt(answer.certificate.height) >= asked.height) return answer;
  }
}

function refused(question, answer, expected) {
  assert.throws(
    () => verifyProof(committee, question, answer),
    (error) => error instanceof ProofError && (expected?.test(error.message) ?? true),
  );
}

/** The same bytes with one bit changed, for each byte another one. */
function* flipped(text) {
  for (let at = 2; at < text.length; at += 2) {
    const byte = Number.parseInt(text.slice(at, at + 2), 16) ^ (1 << (at / 2) % 8);
    yield text.slice(0, at) + byte.toString(16).padStart(2, "0") + text.slice(at + 2);
  }
}

/** The answer with another value in one place. */
function changed(answer, change) {
  const other = structuredClone(answer);
  change(other);
  return other;
}

test("an account and slots of a contract", async () => {
  const slots = [slotOf(asked.holder), slotOf(asked.nobody)];
  const shown = verifyProof(committee, { address: asked.token, slots }, await proofOf(asked.token, slots));
  assert.deepEqual(shown.slots, [7n, 0n]);
  assert.equal(shown.account.codeHash, keccak256(token.deployedBytecode));
  assert.equal(shown.account.nonce, 1n);
  assert.ok(shown.height >= asked.height);
});

test("an account's balance is that of its block", async () => {
  const { address } = account;
  const shown = verifyProof(committee, { address }, await proofOf(address, []));
  const { number } = await client.getBlock({ blockHash: shown.blockHash });
  assert.equal(number, shown.height);
  assert.equal(shown.account.balance, await client.getBalance({ address, blockNumber: number }));
});

test("an account that there is not", async () => {
  const question = { address: asked.nobody, slots: [1n] };
  const answer = await proofOf(asked.nobody, question.slots);
  const shown = verifyProof(committee, question, answer);
  assert.equal(shown.account, null);
  assert.deepEqual(shown.slots, [0n]);
  refused(question, changed(answer, (other) => (other.balance = "0x1")), /^the account is not/);
  refused(question, changed(answer, (other) => (other.storageProof[0].value = "0x1")), /^a slot is not/);
});

test("what is stated and not shown", async () => {
  const slots = [slotOf(asked.holder)];
  const question = { address: asked.token, slots };
  const answer = await proofOf(asked.token, slots);
  const other = `0x${"11".repeat(32)}`;
  refused(question, changed(answer, (it) => (it.balance = "0x1")), /^the account is not/);
  refused(question, changed(answer, (it) => (it.nonce = "0x0")), /^the account is not/);
  refused(question, changed(answer, (it) => (it.codeHash = other)), /^the account is not/);
  refused(question, changed(answer, (it) => (it.storageProof[0].value = "0x0")), /^a slot is not/);
  refused(question, changed(answer, (it) => (it.storageProof[0].value = "0x8")), /^a slot is not/);
  refused(question, changed(answer, (it) => (it.blockHash = other)), /another state/);
  refused(question, changed(answer, (it) => (it.stateRoot = other)), /another state/);
  refused(question, changed(answer, (it) => it.storageProof.pop()), /not of the slots/);
  refused(question, changed(answer, (it) => (it.accountProof[0] += "00")), /something follows/);
  refused(question, changed(answer, (it) => (it.accountProof[0] = it.accountProof[0].slice(0, -2))), /ends early/);
});

test("the proof of another key", async () => {
  const slots = [slotOf(asked.holder), slotOf(account.address)];
  const answer = await proofOf(asked.token, slots);
  const question = { address: asked.token, slots };
  const swapped = changed(answer, (other) => other.storageProof.reverse());
  refused(question, swapped, /does not show the leaf|^a slot is not/);
  // The account's own proof leads as far as to where its slots are pruned.
  const absent = { value: "0x0", proof: answer.accountProof };
  const hidden = changed(answer, (other) => (other.storageProof[0] = absent));
  refused(question, hidden, /does not show the leaf/);
  refused({ ...question, address: asked.nobody }, answer, /does not show the leaf|^the account is not/);
  refused({ ...question, address: asked.holder }, answer, /does not show the leaf|^the account is not/);
});

test("any byte of a proof that is another", async () => {
  const slots = [slotOf(asked.holder), slotOf(asked.nobody)];
  const answer = await proofOf(asked.token, slots);
  const question = { address: asked.token, slots };
  for (const proof of flipped(answer.accountProof[0])) {
    refused(question, { ...answer, accountProof: [proof] });
  }
  for (const index of slots.keys()) {
    for (const proof of flipped(answer.storageProof[index].proof[0])) {
      refused(question, changed(answer, (other) => (other.storageProof[index].proof = [proof])));
    }
  }
});

test("any byte of a certificate that is another", async () => {
  const question = { address: asked.nobody, slots: [] };
  const answer = await proofOf(asked.nobody, []);
  for (const certificate of flipped(answer.certificate.certificate)) {
    refused(question, { ...answer, certificate: { certificate } });
  }
});

test("a certificate of another height, of too few and of others", async () => {
  const question = { address: asked.nobody, slots: [] };
  const former = await proofOf(asked.nobody, []);
  const hash = await client.sendTransaction({ to: account.address, value: 1n });
  const { blockNumber } = await client.waitForTransactionReceipt({ hash });
  asked.height = blockNumber;
  const answer = await proofOf(asked.nobody, []);
  refused(question, { ...answer, certificate: former.certificate }, /another state/);

  // Header, members, one byte of signers, the length of the signatures: one signer and signature are left.
  const { certificate } = answer.certificate;
  const bytes = Buffer.from(certificate.slice(2), "hex");
  const signers = 8 + 8 + 3 * 32 + 2;
  bytes[signers] &= -bytes[signers];
  bytes.writeUInt32LE(64, signers + 1);
  const few = toHex(bytes.subarray(0, signers + 1 + 4 + 64));
  refused(question, { ...answer, certificate: { certificate: few } }, /^the signers weigh 1, and 2/);

  const longer = { certificate: `${certificate}00` };
  refused(question, { ...answer, certificate: longer }, /something follows/);
  const { length } = bytes;
  const extended = Buffer.concat([Buffer.from(certificate.slice(2), "hex"), Buffer.alloc(64)]);
  extended[signers] |= 0x80;
  extended.writeUInt32LE(length + 64 - signers - 1 - 4, signers + 1);
  refused(question, { ...answer, certificate: { certificate: toHex(extended) } }, /names a member that is none/);

  const renamed = committeeOf({ ...FILE, name: "another" });
  assert.throws(() => verifyProof(renamed, question, answer), /^ProofError: the signature of member/);
  const rekeyed = committeeOf({ ...FILE, members: [...FILE.members].reverse() });
  assert.throws(() => verifyProof(rekeyed, question, answer), /^ProofError: the signature of member/);
});

test("a committee that cannot be checked", () => {
  assert.throws(() => committeeOf({ ...FILE, scheme: "bls" }), /votes with bls/);
  assert.throws(() => committeeOf({ ...FILE, network: "00".repeat(32) }), /of a later epoch/);
  const settings = { ...FILE.settings, unheard_of: 1 };
  assert.throws(() => committeeOf({ ...FILE, settings }), /not known here: unheard_of/);
});

test("voting keys that no member can have", () => {
  const withKey = (point) => {
    const [first, ...others] = FILE.members;
    return { ...FILE, members: [{ ...first, voting: point.toHex() }, ...others] };
  };
  const { Point } = ed25519;
  // Of order eight.
  const torsion = Point.fromHex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a");
  for (const point of [Point.ZERO, torsion, Point.BASE.add(torsion)]) {
    assert.throws(() => committeeOf(withKey(point)), /voting key is none/);
  }
});

test("thresholds by weight", () => {
  const needed = (weights, redundancy) =>
    committeeOf({
      ...FILE,
      redundancy,
      members: weights.map((weight, index) => ({ ...FILE.members[index % FILE.members.length], weight })),
    }).needed;
  // crates/types/src/weights.rs: f·w + 1 where all weigh the same, otherwise ⌊(W−1)/3⌋ + 1.
  assert.equal(needed([1]), 1);
  assert.equal(needed([1, 1, 1, 1]), 2);
  assert.equal(needed([5, 5, 5, 5]), 6);
  assert.equal(needed([1, 1, 1, 1, 1, 1, 1]), 3);
  assert.equal(needed([1, 1, 1, 1, 1, 1], 1), 2);
  assert.equal(needed([3, 1, 1, 1]), 2);
  assert.equal(needed([4, 3, 2, 1]), 4);
});

test("a proof as deep as proofs can be", () => {
  const root = new Uint8Array(32);
  const inner = (position) => [2, position & 0xff, position >> 8];
  const pruned = [0, ...root];
  const positions = [...Array(9 * 1024).keys()];
  const proof = [1, 0, 0, 0, 0, 0, 0, 0, ...positions.flatMap(inner), ...pruned, ...positions.flatMap(() => pruned)];
  assert.throws(() => verifyGet(root, valueHash(root), Uint8Array.from(proof)), /^ProofError: .*not of the state/);
});

/** A transfer of one token to the holder in a block whose certificate the validator has: its height, and the block's hash. */
async function transferInCertifiedBlock() {
  for (let attempt = 0; attempt < 20; attempt += 1) {
    const args = [asked.holder, 1n];
    const paid = await client.writeContract({ address: asked.token, abi: token.abi, functionName: "transfer", args });
    const { blockHash, blockNumber } = await client.waitForTransactionReceipt({ hash: paid, confirmations: 3 });
    // A validator may never learn the certificate of a block, where later ones came first.
    const certificate = await client.request({ method: "quorate_getCertificate", params: [toHex(blockNumber)] });
    if (certificate) return { blockHash, height: blockNumber };
  }
  throw new Error("of 20 blocks the validator has no certificate");
}

test("a proof is of the block that is named, or there is none", async () => {
  const slots = [slotOf(asked.holder)];
  const proofAt = (block) =>
    client.request({ method: "eth_getProof", params: [asked.token, slots.map((slot) => toHex(slot)), block] });
  const first = await transferInCertifiedBlock();
  const second = await transferInCertifiedBlock();
  const question = { address: asked.token, slots };
  const balances = [];
  for (const { height, blockHash } of [first, second]) {
    for (const block of [toHex(height), blockHash, { blockHash }]) {
      const answer = await proofAt(block);
      const shown = verifyProof(committee, question, answer);
      assert.deepEqual({ height: shown.height, blockHash: shown.blockHash }, { height, blockHash });
      assert.equal(toHex(shown.slots[0], { size: 32 }), await client.getStorageAt({ address: asked.token, slot: toHex(slots[0]), blockNumber: height }));
      balances.push(shown.slots[0]);
    }
  }
  assert.ok(balances[0] < balances[3], "the holder was paid in between");
  const ofFirst = await proofAt(toHex(first.height));
  refused(question, { ...ofFirst, certificate: (await proofAt(toHex(second.height))).certificate }, /of another state/);
  const refusals = { "0xffffffff": /block 4294967295 is not executed yet/, [`0x${"5a".repeat(32)}`]: /there is no block of this hash/, earliest: /no certificate of block 0|blocks: 0 is older/ };
  for (const [block, reason] of Object.entries(refusals)) {
    await assert.rejects(proofAt(block), ({ details }) => reason.test(details));
  }
});
