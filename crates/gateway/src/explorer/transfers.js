// Transfers of tokens and who holds them, from the index that the validator keeps beside its archive.

import { el, grouped, quiet, table } from "./base.js";
import { brief, briefAccount, growing, link } from "./elements.js";
import { topicOf } from "./abi.js";
import { standard, standardEventOf } from "./known.js";
import { ask } from "./rpc.js";
import { checksummed, decimal, hex, rounded, sameAddress } from "./text.js";
import { tokenOf } from "./token.js";
import { logKey } from "./transactions.js";

const ROWS = 25; // Rows that a table grows by.

/** The first block that the index knows; null where there is no index. */
export async function indexBegins() {
  const index = await ask("quorate_getIndex");
  return index && Number(index.fromBlock);
}

/** What to say of an index that does not begin with the chain. */
export function indexNote(begins) {
  if (begins === null) return "This validator keeps no index: it has no archive (archive = \"off\").";
  return begins > 1 ? `The index goes back to block ${begins}.` : "";
}

const undecoded = () => quiet("not decoded");

/** What was transferred: an amount, a token by its number, or amounts of several kinds. */
function amountsOf({ entry, values }, token) {
  const value = (name) => values[entry.inputs.findIndex((input) => input.name === name)];
  const symbol = token?.symbol || "";
  if (entry.name === "TransferBatch" && value("ids").length !== value("values").length) return undecoded();
  if (entry.name === "TransferBatch") return value("ids").map((id, at) => `${grouped(value("values")[at])} of no. ${id}`).join(", ");
  if (entry.name === "TransferSingle") return `${grouped(value("value"))} of no. ${value("id")}`;
  if (value("tokenId") !== undefined) return `no. ${value("tokenId")}`;
  const decimals = token?.decimals ?? 0;
  return el("span", { title: `${decimal(value("value"), decimals)} ${symbol}` }, `${rounded(value("value"), decimals)}`);
}

/** A party of a transfer: tokens come from the zero address, and go there. */
const partyCell = (address) => (/[1-9a-f]/.test(address.slice(2)) ? briefAccount(address) : quiet("nobody"));

/** Which way an account's tokens went, and with whom. */
function wayCells({ from, to }, account) {
  const isSent = sameAddress(from, account);
  const way = isSent && sameAddress(to, account) ? "self" : isSent ? "out" : "in";
  return [el("span", { class: `way ${way}` }, way), partyCell(isSent ? to : from)];
}

export const tokenLink = (address, token) => link("token", checksummed(address), token?.symbol || token?.name || "token");

/** The topics that are the parties of a transfer: of EIP-1155 there is its operator before them. */
const partiesOf = ({ topics }) => (topics[0] === topicOf(standard("Transfer")) ? topics.slice(1, 3) : topics.slice(2, 4));

async function loadTransfer(log) {
  const [found, token] = [standardEventOf(log), await tokenOf(log.address)];
  const [from, to] = partiesOf(log).map((topic) => `0x${topic.slice(-40)}`);
  return { key: logKey(log), log, token, amounts: found ? amountsOf(found, token) : undecoded(), from, to };
}

/** Transfers of an account or of a token, `{ account }` or `{ token }`. */
export async function transfersPart(of) {
  const columns = ["Transaction", ["Block", "wide"], ...(of.account ? ["", ["With", "wide"]] : ["From", "To"]), ["Amount", "amount"], ...(of.account ? ["Token"] : [])];
  const cells = (each) => {
    const { log, token, amounts, from, to } = each;
    const place = [brief(log.transactionHash, "tx"), link("block", Number(log.blockNumber), String(Number(log.blockNumber)))];
    if (of.token) return [...place, partyCell(from), partyCell(to), amounts];
    return [...place, ...wayCells(each, of.account), amounts, tokenLink(log.address, token)];
  };
  const begins = await indexBegins();
  if (begins === null) return el("p", { class: "quiet" }, indexNote(begins));
  let before = null;
  return growing(table(columns, cells, "No transfer of a token is known."), async () => {
    const { logs, next } = await ask("quorate_getTokenTransfers", { ...of, before, limit: hex(ROWS) });
    const items = await Promise.all(logs.map(loadTransfer));
    before = next;
    return { items, note: indexNote(begins), more: next !== null };
  });
}

/** Holders of a token, those with most first among what was loaded. */
export async function holdersPart(token) {
  const isOfKinds = token.kind === "ERC-1155";
  const columns = ["Account", ...(isOfKinds ? [["No.", "number"]] : []), ["Balance", "number"], ...(isOfKinds ? [] : [["Share", "number"]])];
  const share = (balance) => (token.supply ? `${(Number((balance * 10_000n) / token.supply) / 100).toFixed(2)} %` : "");
  const cells = ({ account, id, balance }) => [briefAccount(account), ...(isOfKinds ? [id === undefined || id === null ? "" : String(BigInt(id))] : []), decimal(balance, token.decimals), ...(isOfKinds ? [] : [share(balance)])];
  const begins = await indexBegins();
  if (begins === null) return el("p", { class: "quiet" }, indexNote(begins));
  let after = null;
  const next = async () => {
    const page = await ask("quorate_getTokenHolders", { token: token.address, after });
    after = page.next;
    const items = page.holders.map(({ account, id, balance }) => ({ key: `${account}/${id}`, account, id, balance: BigInt(balance) }));
    return { items, note: `${after ? "Those that were looked at so far, in the order of their balances. " : ""}${indexNote(begins)}`, more: after !== null };
  };
  return growing(table(columns, cells, "No holder is known."), next, (a, b) => (a.balance < b.balance ? 1 : a.balance > b.balance ? -1 : 0));
}
