// Transactions with their receipts.

import { el, fields, filledTable, grouped, plural, quiet, shortened, table } from "./base.js";
import { loadBlock, timeOf } from "./blocks.js";
import { callsPart } from "./calls.js";
import { account, age, brief, briefAccount, bytes, link, moment, raw, tabs } from "./elements.js";
import { callName } from "./known.js";
import { NotFound, Refused, ask } from "./rpc.js";
import { byteCount, ether, gasPrice, isHash, roundedEther, sameAddress, words } from "./text.js";
import { shownCall, shownError, shownEvent } from "./values.js";

export async function loadTransaction(hash) {
  const [transaction, receipt] = await Promise.all([ask("eth_getTransactionByHash", hash), ask("eth_getTransactionReceipt", hash)]);
  return transaction && { key: hash, transaction, receipt };
}

function statusOf({ receipt }) {
  if (!receipt) return quiet("waiting");
  return BigInt(receipt.status) === 1n ? el("span", { class: "good" }, "succeeded") : el("span", { class: "bad" }, "failed");
}

function receiverOf({ transaction, receipt }) {
  if (transaction.to) return briefAccount(transaction.to);
  return receipt?.contractAddress ? [quiet("new "), briefAccount(receipt.contractAddress)] : quiet("new contract");
}

const methodOf = ({ to, input }) => (to ? callName(to, input) || quiet("payment") : quiet("creation"));
const amountOf = ({ value }) => el("span", { title: ether(value) }, roundedEther(value));

export const blockOf = ({ blockNumber }) => (blockNumber ? link("block", Number(blockNumber), String(Number(blockNumber))) : quiet("waiting"));

/** A table of transactions, whose second column says where each one is. */
export function transactionTable(place, placeOf, empty) {
  const columns = ["Transaction", [place, "wide"], ["Method", "wide"], ["From", "wide"], ["To", "wide"], ["Ether", "number"], "Status"];
  const cells = (each) => {
    const { transaction } = each;
    return [brief(transaction.hash, "tx"), placeOf(transaction), el("span", { class: "method" }, methodOf(transaction)), briefAccount(transaction.from), receiverOf(each), amountOf(transaction), statusOf(each)];
  };
  return table(columns, cells, empty);
}

/** What a transaction is to an account. */
function wayOf({ transaction, receipt }, address) {
  const [sent, received] = [sameAddress(transaction.from, address), sameAddress(transaction.to, address)];
  if (sent && received) return "self";
  if (sent) return "out";
  if (received) return "in";
  return sameAddress(receipt.contractAddress, address) ? "created" : "inside";
}

/** A table of an account's transactions. */
export function accountTable(address, empty) {
  const columns = ["Transaction", ["Block", "wide"], "Age", ["Method", "wide"], "", ["With", "wide"], ["Ether", "number"], ["Status", "wide"]];
  const cells = (each) => {
    const { transaction, receipt } = each;
    const way = wayOf(each, address);
    const other = way === "in" || way === "inside" ? briefAccount(transaction.from) : receiverOf(each);
    return [brief(transaction.hash, "tx"), blockOf(transaction), age(Number(receipt.timestamp) * 1000), el("span", { class: "method" }, methodOf(transaction)), el("span", { class: `way ${way}` }, way), other, amountOf(transaction), statusOf(each)];
  };
  return table(columns, cells, empty);
}

// ---- The page of one.

export async function transactionPage(hash, refreshed) {
  if (!isHash(hash)) throw new NotFound(`“${hash}” is not a transaction hash.`);
  const found = await loadTransaction(hash);
  if (!found) throw new NotFound(`This validator knows no transaction ${hash}.`);
  const { transaction, receipt } = found;
  const [place, why, call] = await Promise.all([receipt && loadBlock(Number(receipt.blockNumber)), reasonOf(found), transaction.to && shownCall(transaction.to, transaction.input)]);
  const parts = [
    ["events", `Events (${receipt ? receipt.logs.length : 0})`, () => eventsPart(receipt)],
    ["calls", "Calls inside", () => callsPart(receipt)],
    ["answer", "As the validator answers", async () => [raw("Transaction", transaction), raw("Receipt", receipt)]],
  ];
  const body = [
    el("h1", {}, "Transaction"),
    fields([...outcomeFields(found, place, why), ...transactionFields(transaction), ...inputParts(transaction, call)]),
    await tabs(parts),
  ];
  const wait = async () => (await ask("eth_getTransactionReceipt", hash)) && refreshed();
  return { title: `Transaction ${shortened(hash)}`, body, refresh: receipt ? null : wait };
}

/** Why a transaction failed, if the state before it is still known. */
async function reasonOf({ transaction, receipt }) {
  if (!receipt || BigInt(receipt.status) === 1n) return null;
  try {
    return shownError(transaction.to, await ask("ots_getTransactionError", transaction.hash));
  } catch (failure) {
    if (failure instanceof Refused) return null;
    throw failure;
  }
}

function outcomeFields(found, place, why) {
  const { transaction, receipt } = found;
  if (!receipt) return [["Hash", bytes(transaction.hash)], ["Status", quiet("waiting; this page shows when it is executed")]];
  const number = Number(receipt.blockNumber);
  const price = receipt.effectiveGasPrice ?? transaction.gasPrice;
  return [
    ["Hash", bytes(transaction.hash)],
    ["Status", [statusOf(found), failureNote(found)]],
    ["Reverted with", why],
    ["Block", [link("block", number, String(number)), quiet(`, position ${Number(receipt.transactionIndex)}`)]],
    ["Time", place ? moment(timeOf(place)) : null],
    ["Created contract", receipt.contractAddress ? account(receipt.contractAddress) : null],
    ["Gas used", `${grouped(receipt.gasUsed)} of ${grouped(transaction.gas)}`],
    ["Gas price paid", gasPrice(price)],
    ["Fee", ether(BigInt(receipt.gasUsed) * BigInt(price))],
  ];
}

function failureNote({ transaction, receipt }) {
  if (BigInt(receipt.status) === 1n) return null;
  const all = BigInt(receipt.gasUsed) === BigInt(transaction.gas);
  return quiet(`: it ${all ? "used all its gas" : "was reverted"}, and nothing it did remains but the fee and the nonce`);
}

function transactionFields(transaction) {
  const optional = (key, show) => (transaction[key] === undefined || transaction[key] === null ? null : show(transaction[key]));
  return [
    ["From", account(transaction.from)],
    ["To", transaction.to ? account(transaction.to) : quiet("creates a contract")],
    ["Value", ether(transaction.value)],
    ["Nonce", grouped(transaction.nonce)],
    ["Type", optional("type", (type) => String(Number(type)))],
    ["Most per gas", optional("maxFeePerGas", gasPrice)],
    ["Most for priority", optional("maxPriorityFeePerGas", gasPrice)],
    ["Access list", optional("accessList", (list) => (list.length === 0 ? null : `${grouped(list.length)} addresses`))],
  ];
}

/** What a transaction calls with, decoded where its function is known, and as it is. */
function inputParts({ to, input }, call) {
  if (input === "0x") return [["Input", quiet("none")]];
  const size = plural(byteCount(input), "byte");
  const isCall = to && byteCount(input) >= 4;
  const lines = isCall ? [input.slice(0, 10), ...words("0x" + input.slice(10))] : [input];
  const kept = el("details", { class: "input" }, el("summary", {}, `${to ? "Input" : "Creation code"}, ${size}`), el("pre", { tabindex: 0 }, lines.join("\n")));
  return [["Calls", call], ["Input", kept]];
}

async function eventsPart(receipt) {
  const columns = ["No.", ["Contract", "wide"], ["Event", "event cut"]];
  const cells = ({ log, event }) => [String(Number(log.logIndex)), briefAccount(log.address), event];
  return filledTable(columns, cells, await loadEvents(receipt?.logs ?? []), "This transaction made no events.");
}

export const logKey = (log) => `${log.blockNumber}/${log.logIndex}`;

export function loadEvents(logs) {
  return Promise.all(logs.map(async (log) => ({ key: logKey(log), log, event: await shownEvent(log) })));
}
