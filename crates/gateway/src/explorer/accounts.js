// Accounts and tokens: what the chain has of an address.

import { el, fields, grouped, plural, quiet, shortened, table } from "./base.js";
import { contractPart } from "./contract.js";
import { account, bytes, briefAccount, brief, growing, link, tabs } from "./elements.js";
import { NotFound, Refused, ask } from "./rpc.js";
import { byteCount, checksummed, decimal, ether, hex, isAddress } from "./text.js";
import { tokenNow } from "./token.js";
import { accountTable, loadEvents, logKey } from "./transactions.js";
import { holdersPart, indexBegins, indexNote, tokenLink, transfersPart } from "./transfers.js";

const ROWS = 25; // Rows that a table grows by.
const SEARCHED = 10_000; // Blocks in which events are searched at once.

function addressFrom(text) {
  if (!isAddress(text)) throw new NotFound(`“${text}” is not an address.`);
  return text.toLowerCase();
}

export async function addressPage(text) {
  const address = addressFrom(text);
  const [balance, nonce, code, head, token, creator] = await Promise.all([
    ask("eth_getBalance", address, "latest"),
    ask("eth_getTransactionCount", address, "latest"),
    ask("eth_getCode", address, "latest"),
    ask("eth_blockNumber"),
    tokenNow(address),
    creatorOf(address),
  ]);
  const isContract = code !== "0x";
  const kind = isContract ? "Contract" : "Account";
  const parts = [
    ["transactions", "Transactions", () => transactionsPart(address)],
    ["transfers", "Token transfers", () => transfersPart({ account: address })],
    ["events", "Events", () => eventsPart(address, Number(head))],
    ...(isContract ? [["contract", "Contract", () => contractPart(address, code)]] : []),
  ];
  const body = [
    el("h1", {}, kind),
    fields([
      ["Address", bytes(checksummed(address))],
      ["Token", isContract && token ? [tokenLink(address, token), quiet(` ${token.kind}`)] : null],
      ["Balance", ether(balance)],
      ["Nonce", grouped(nonce)],
      ["Code", isContract ? plural(byteCount(code), "byte") : quiet("none")],
      ["Created by", creator && [briefAccount(creator.creator), " in ", brief(creator.hash, "tx")]],
    ]),
    await tabs(parts),
  ];
  return { title: `${kind} ${shortened(checksummed(address))}`, body };
}

export async function tokenPage(text) {
  const address = addressFrom(text);
  const [token, code] = await Promise.all([tokenNow(address), ask("eth_getCode", address, "latest")]);
  if (!token) throw new NotFound(`The contract at ${checksummed(address)} does not say that it is a token.`);
  const parts = [
    ["transfers", "Transfers", () => transfersPart({ token: address })],
    ["holders", "Holders", () => holdersPart(token)],
    ["contract", "Contract", () => contractPart(address, code)],
  ];
  const body = [
    el("h1", {}, token.name || "Token", token.symbol ? quiet(` ${token.symbol}`) : null),
    fields([
      ["Contract", account(address)],
      ["Kind", token.kind],
      ["Total supply", token.supply === null ? null : `${decimal(token.supply, token.decimals)} ${token.symbol}`],
      ["Decimals", token.kind === "ERC-20" ? String(token.decimals) : null],
    ]),
    el("p", { class: "quiet" }, "Names, symbols and balances are what the contract says, which may be anything."),
    await tabs(parts),
  ];
  return { title: `${token.name || "Token"} ${token.symbol}`, body };
}

/** Who created a contract, as far as the index knows. */
async function creatorOf(address) {
  try {
    return await ask("ots_getContractCreator", address);
  } catch (failure) {
    if (failure instanceof Refused) return null;
    throw failure;
  }
}

/** Transactions of an account, newest first. Pages are of whole blocks. */
async function transactionsPart(address) {
  const begins = await indexBegins();
  if (begins === null) return el("p", { class: "quiet" }, indexNote(begins));
  let before = 0;
  return growing(accountTable(address, "No transaction is known."), async () => {
    const { txs, receipts, lastPage } = await ask("ots_searchTransactionsBefore", address, before, ROWS);
    before = txs.length > 0 ? Number(txs.at(-1).blockNumber) : 0;
    const items = txs.map((transaction, at) => ({ key: transaction.hash, transaction, receipt: receipts[at] }));
    return { items, note: indexNote(begins), more: !lastPage };
  });
}

// ---- Events, which are found without an index.

async function eventsPart(address, head) {
  const columns = ["Block", "Transaction", ["Contract", "wide"], ["Event", "event cut"]];
  const cells = ({ log, event }) => [link("block", Number(log.blockNumber), String(Number(log.blockNumber))), brief(log.transactionHash, "tx"), briefAccount(log.address), event];
  return [
    await growing(table(columns, cells, "No events found."), eventsAbout(address, head)),
    el("p", { class: "quiet" }, "Events of this contract, and those of others that name this address."),
  ];
}

/** What a contract said, and what any contract said of an account in its first three indexed arguments. */
async function logsAbout(address, fromBlock, toBlock) {
  const range = { fromBlock: hex(fromBlock), toBlock: hex(toBlock) };
  const word = "0x" + address.slice(2).padStart(64, "0");
  const asked = [{ address }, { topics: [null, word] }, { topics: [null, null, word] }, { topics: [null, null, null, word] }];
  const found = await Promise.all(asked.map((filter) => ask("eth_getLogs", { ...range, ...filter })));
  const once = new Map(found.flat().map((log) => [logKey(log), log]));
  return [...once.values()].sort((a, b) => b.blockNumber - a.blockNumber || b.logIndex - a.logIndex);
}

/** Pages through events from the newest block back, in smaller steps where a range holds too many. */
function eventsAbout(address, newest) {
  let unshown = [];
  let searched = newest + 1;
  let step = SEARCHED;
  return async () => {
    while (unshown.length === 0 && searched > 0) {
      const from = Math.max(0, searched - step);
      try {
        unshown = await logsAbout(address, from, searched - 1);
        searched = from;
        break;
      } catch (failure) {
        if (!(failure instanceof Refused) || step === 1) throw failure;
        step = Math.ceil(step / 4);
      }
    }
    const items = await loadEvents(unshown.splice(0, ROWS));
    return { items, note: `Searched back to block ${searched}.`, more: unshown.length > 0 || searched > 0 };
  };
}
