// Blocks with their certificates.

import { el, fields, grouped, plural, quiet } from "./base.js";
import { certificateSection } from "./committee.js";
import { account, age, brief, bytes, growing, link, moment, raw } from "./elements.js";
import { NotFound, ask } from "./rpc.js";
import { gasPrice, hex, isHash, isNumber } from "./text.js";
import { loadTransaction, transactionTable } from "./transactions.js";

const ROWS = 25; // Transactions that the list of a block's grows by.
export const TAIL = 40; // Blocks that the overview looks at.
const LATE = 30_000; // Milliseconds after which a missing certificate is no longer asked for.

export const timeOf = ({ block, certificate }) => (certificate ? Number(certificate.proposedAtMs) : Number(block.timestamp) * 1000);

export async function loadBlock(number) {
  const [block, certificate] = await Promise.all([ask("eth_getBlockByNumber", hex(number), false), certificateOf(number)]);
  return block && { key: block.hash + Boolean(certificate), number, block, certificate };
}

/** The certificate, or null: genesis has none, and a validator keeps those of its last blocks. */
const certificateOf = (number) => (number === 0 ? null : ask("quorate_getCertificate", hex(number)));

/** The chain's last blocks, newest first, each asked for until nothing about it will change. */
export const tail = {
  held: new Map(),
  async advance() {
    const head = Number(await ask("eth_blockNumber"));
    const numbers = Array.from({ length: Math.min(TAIL, head + 1) }, (_, back) => head - back);
    const found = await Promise.all(numbers.map((number) => this.block(number)));
    this.held = new Map(found.filter(Boolean).map((each) => [each.number, each]));
    return [...this.held.values()];
  },
  block(number) {
    const known = this.held.get(number);
    const settled = known && (known.certificate || Date.now() - timeOf(known) > LATE);
    return settled ? known : loadBlock(number);
  },
};

/** Transactions per second from the oldest of these blocks to the newest; genesis was made long before the chain ran. */
export function ratePerSecond(blocks) {
  const run = blocks.filter((each) => each.number > 0);
  if (run.length < 2) return null;
  const seconds = (timeOf(run[0]) - timeOf(run.at(-1))) / 1000;
  const transactions = run.slice(0, -1).reduce((sum, { block }) => sum + block.transactions.length, 0);
  return seconds > 0 ? transactions / seconds : null;
}

export const rateText = (rate) => (rate === null ? "–" : rate.toLocaleString("en", { maximumFractionDigits: rate < 100 ? 1 : 0 }));

export const BLOCK_COLUMNS = ["Block", "Age", ["Transactions", "number"], ["Gas used", "number wide"], ["Hash", "wide"]];

export function blockCells(each) {
  const { number, block } = each;
  const time = timeOf(each);
  return [link("block", number, String(number)), time > 0 ? age(time) : "genesis", grouped(block.transactions.length), grouped(block.gasUsed), brief(block.hash, "block")];
}

/** Pages through a block's transactions without asking for all of them at once. */
function transactionsOf(hashes) {
  let shown = 0;
  return async () => {
    const found = await Promise.all(hashes.slice(shown, shown + ROWS).map(loadTransaction));
    shown = Math.min(shown + ROWS, hashes.length);
    return { items: found.filter(Boolean), note: shown < hashes.length ? `${grouped(shown)} of ${grouped(hashes.length)}` : "", more: shown < hashes.length };
  };
}

const positionOf = ({ transactionIndex }) => String(Number(transactionIndex));

const HEADER = [
  ["hash", "Hash", (value) => bytes(value)],
  ["parentHash", "Parent", (value) => (/[1-9a-f]/.test(value.slice(2)) ? bytes(value, "block") : bytes(value))],
  ["stateRoot", "State root", bytesOnly],
  ["transactionsRoot", "Transactions root", bytesOnly],
  ["receiptsRoot", "Receipts root", bytesOnly],
  ["miner", "Beneficiary", account],
  ["gasUsed", "Gas used", grouped],
  ["gasLimit", "Gas limit", grouped],
  ["baseFeePerGas", "Base fee", gasPrice],
  ["size", "Size", (value) => plural(Number(value), "byte")],
  ["extraData", "Extra data", bytesOrNone],
  ["mixHash", "Mix hash", bytesOnly],
  ["nonce", "Nonce", bytesOnly],
  ["difficulty", "Difficulty", grouped],
  ["sha3Uncles", "Uncles hash", bytesOnly],
  ["withdrawalsRoot", "Withdrawals root", bytesOnly],
  ["blobGasUsed", "Blob gas used", grouped],
  ["excessBlobGas", "Excess blob gas", grouped],
  ["parentBeaconBlockRoot", "Parent beacon block root", bytesOnly],
  ["requestsHash", "Requests hash", bytesOnly],
  ["logsBloom", "Logs bloom", (value) => (/[1-9a-f]/.test(value.slice(2)) ? bytes(value) : quiet("empty"))],
];

function bytesOnly(value) {
  return bytes(value);
}

function bytesOrNone(value) {
  return value === "0x" ? quiet("none") : bytes(value);
}

const headerFields = (block) => HEADER.map(([key, label, show]) => [label, block[key] === undefined || block[key] === null ? null : show(block[key])]);

export async function blockPage(argument) {
  if (!isNumber(argument) && !isHash(argument)) throw new NotFound(`“${argument}” is neither a block number nor a block hash.`);
  const asked = isHash(argument) ? ask("eth_getBlockByHash", argument, false) : ask("eth_getBlockByNumber", hex(BigInt(argument)), false);
  const [block, head, committee] = await Promise.all([asked, ask("eth_blockNumber"), ask("quorate_committee")]);
  if (!block) throw new NotFound(`This validator has no block ${argument}; its newest is ${Number(head)}.`);
  const number = Number(block.number);
  const certificate = await certificateOf(number);
  const transactions = transactionTable("Position", positionOf, "This block has no transactions.");
  const body = [
    el("div", { class: "title" }, el("h1", {}, `Block ${number}`), blockSteps(number, Number(head))),
    fields([["Time", moment(timeOf({ block, certificate }))], ["Transactions", grouped(block.transactions.length)], ...headerFields(block)]),
    el("h2", {}, "Transactions"),
    await growing(transactions, transactionsOf(block.transactions)),
    certificateSection(number, certificate, block, committee),
    raw("As the validator answers", { block, certificate }),
  ];
  return { title: `Block ${number}`, body };
}

function blockSteps(number, head) {
  const previous = number > 0 ? link("block", number - 1, "← Previous") : quiet("← Previous");
  const next = number < head ? link("block", number + 1, "Next →") : quiet("Next →");
  return el("nav", { class: "steps", "aria-label": "Neighbouring blocks" }, previous, next);
}
