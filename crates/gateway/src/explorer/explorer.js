// The explorer that every validator serves. It asks the validator that served it, by JSON-RPC, and nobody else.
// What comes from the chain reaches the page as text only.

import { ago, card, el, fields, filledCard, filledTable, grouped, plural, quiet, say, shortened, table, utc, utcSecond } from "./base.js";

const BATCH = 50; // Calls in one request.
const ROWS = 25; // Rows that a long table grows by.
const TAIL = 20; // Blocks that the overview looks at; it lists half of them.
const SEARCHED = 10_000; // Blocks in which events are searched at once.
const ETHER = 18; // Decimals.
const IDLE = 5_000; // Milliseconds without a block after which a chain is called idle.
const TOKEN = "quorate-token"; // Name of the validator's token in this tab's storage, if the validator asks for one.
const LATE = 30_000; // Milliseconds after which a missing certificate is no longer asked for.

class Unreachable extends Error {}
class Refused extends Error {}
class TokenNeeded extends Refused {}
class NotFound extends Error {}

// ---- Asking the validator. Calls made together travel together.

const waiting = [];

function ask(method, ...params) {
  return new Promise((resolve, reject) => {
    if (waiting.length === 0) queueMicrotask(sendWaiting);
    waiting.push({ method, params, resolve, reject });
  });
}

function sendWaiting() {
  const calls = waiting.splice(0);
  for (let at = 0; at < calls.length; at += BATCH) send(calls.slice(at, at + BATCH));
}

async function send(calls) {
  try {
    const answers = await post(calls.map(({ method, params }, id) => ({ jsonrpc: "2.0", id, method, params })));
    if (!Array.isArray(answers)) throw new Refused(answers?.error?.message ?? "not an answer to a batch");
    const byId = new Map(answers.map((answer) => [answer.id, answer]));
    calls.forEach((call, id) => settle(call, byId.get(id)));
  } catch (failure) {
    calls.forEach((call) => call.reject(failure));
  }
}

async function post(body) {
  const token = sessionStorage.getItem(TOKEN);
  try {
    const headers = { "content-type": "application/json", ...(token && { authorization: `Bearer ${token}` }) };
    const response = await fetch("/", { method: "POST", headers, body: JSON.stringify(body), signal: AbortSignal.timeout(10_000) });
    if (response.status !== 401) return await response.json();
  } catch (failure) {
    throw new Unreachable(failure.message);
  }
  throw new TokenNeeded(token ? "it takes another token" : "it asks for a token");
}

function settle(call, answer) {
  if (answer && "result" in answer) call.resolve(answer.result);
  else call.reject(new Refused(`${call.method}: ${answer?.error?.message ?? "no answer"}`));
}

// ---- Numbers, amounts and times as text.

const isHash = (text) => /^0x[0-9a-f]{64}$/i.test(text);
const isAddress = (text) => /^0x[0-9a-f]{40}$/i.test(text);
const isNumber = (text) => /^\d{1,15}$/.test(text);
const hex = (number) => "0x" + number.toString(16);
const byteCount = (bytes) => (bytes.length - 2) / 2;

/** An amount in its smallest unit, as a decimal number. */
function decimal(quantity, decimals) {
  const unit = 10n ** BigInt(decimals);
  const fraction = (BigInt(quantity) % unit).toString().padStart(decimals, "0").replace(/0+$/, "");
  return grouped(BigInt(quantity) / unit) + (decimals && fraction ? `.${fraction}` : "");
}

/** The same with six decimals, for tables. */
function rounded(quantity, decimals) {
  const [whole, fraction = ""] = decimal(quantity, decimals).split(".");
  const kept = fraction.slice(0, 6).replace(/0+$/, "");
  if (fraction && !kept && whole === "0") return "<0.000001";
  return kept ? `${whole}.${kept}` : whole;
}

const ether = (wei) => `${decimal(wei, ETHER)} ether`;
const gasPrice = (wei) => (BigInt(wei) === 0n ? "0" : `${decimal(wei, 9)} gwei`);

// ---- Elements.

const link = (page, argument, text) => el("a", { href: `#/${page}/${argument}` }, text);

/** Bytes in one line, with a button that copies all of them; linked if `page` names where to. */
function bytes(value, page = null, text = value) {
  const shown = page ? link(page, value, text) : el("span", {}, text);
  shown.className = "value";
  shown.title = value;
  return el("span", { class: "hash" }, shown, el("button", { type: "button", class: "copy", title: "Copy", "aria-label": `Copy ${shortened(value)}`, "data-copy": value }));
}

const brief = (value, page) => bytes(value, page, shortened(value));

const age = (ms) => el("time", { datetime: utc(ms), title: utc(ms), "data-ms": ms }, ago(ms));
const moment = (ms) => (ms > 0 ? [`${utc(ms)} (`, age(ms), ")"] : "not set");

function tickAges() {
  document.querySelectorAll("time[data-ms]").forEach((time) => say(time, ago(Number(time.dataset.ms))));
}

function raw(name, value) {
  return el("details", {}, el("summary", {}, name), el("pre", { tabindex: 0 }, JSON.stringify(value, null, 2)));
}

/** Adds what `next` gives (`items`, a `note`, whether there is `more`) to the table whenever the button is pressed. */
async function growing(made, next) {
  const items = [];
  const note = quiet("");
  const button = el("button", { type: "button", click: grow }, "Show more");

  async function grow() {
    button.disabled = true;
    try {
      const page = await next();
      items.push(...page.items);
      made.show(items);
      say(note, page.note);
      button.hidden = !page.more;
    } catch (failure) {
      say(note, explained(failure));
    }
    button.disabled = false;
  }

  await grow();
  return [made.node, el("div", { class: "more" }, button, note)];
}

async function copy(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copyBySelection(text); // Browsers keep the clipboard from pages that come without TLS.
  }
}

function copyBySelection(text) {
  const area = el("textarea", { class: "hidden" }, text);
  document.body.append(area);
  area.select();
  document.execCommand("copy");
  area.remove();
}

// ---- Blocks with their certificates.

const timeOf = ({ block, certificate }) => (certificate ? Number(certificate.proposedAtMs) : Number(block.timestamp) * 1000);

async function loadBlock(number) {
  const [block, certificate] = await Promise.all([ask("eth_getBlockByNumber", hex(number), false), certificateOf(number)]);
  return block && { key: block.hash + Boolean(certificate), number, block, certificate };
}

/** The certificate, or null: genesis has none, and a validator keeps those of its last blocks. */
const certificateOf = (number) => (number === 0 ? null : ask("quorate_getCertificate", hex(number)));

/** The chain's last blocks, newest first, each asked for until nothing about it will change. */
const tail = {
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
function ratePerSecond(blocks) {
  const run = blocks.filter((each) => each.number > 0);
  if (run.length < 2) return null;
  const seconds = (timeOf(run[0]) - timeOf(run.at(-1))) / 1000;
  const transactions = run.slice(0, -1).reduce((sum, { block }) => sum + block.transactions.length, 0);
  return seconds > 0 ? transactions / seconds : null;
}

const rateText = (rate) => (rate === null ? "–" : rate.toLocaleString("en", { maximumFractionDigits: rate < 100 ? 1 : 0 }));

const BLOCK_COLUMNS = ["Block", "Age", ["Transactions", "number"], ["Gas used", "number wide"], ["Hash", "wide"]];

function blockCells(each) {
  const { number, block } = each;
  const time = timeOf(each);
  return [link("block", number, String(number)), time > 0 ? age(time) : "genesis", grouped(block.transactions.length), grouped(block.gasUsed), brief(block.hash, "block")];
}

// ---- Transactions with their receipts.

async function loadTransaction(hash) {
  const [transaction, receipt] = await Promise.all([ask("eth_getTransactionByHash", hash), ask("eth_getTransactionReceipt", hash)]);
  return transaction && { key: hash, transaction, receipt };
}

function statusOf({ receipt }) {
  if (!receipt) return quiet("waiting");
  return BigInt(receipt.status) === 1n ? el("span", { class: "good" }, "succeeded") : el("span", { class: "bad" }, "failed");
}

function receiverOf({ transaction, receipt }) {
  if (transaction.to) return brief(transaction.to, "address");
  return receipt?.contractAddress ? [quiet("new "), brief(receipt.contractAddress, "address")] : quiet("new contract");
}

const blockOf = ({ blockNumber }) => (blockNumber ? link("block", Number(blockNumber), String(Number(blockNumber))) : quiet("waiting"));
const positionOf = ({ transactionIndex }) => String(Number(transactionIndex));

/** A table of transactions, whose second column says where each one is. */
function transactionTable(place, placeOf, empty) {
  const columns = ["Transaction", [place, "wide"], ["From", "wide"], ["To", "wide"], ["Ether", "number"], "Status"];
  const cells = (each) => {
    const { hash, from, value } = each.transaction;
    const amount = el("span", { title: ether(value) }, rounded(value, ETHER));
    return [brief(hash, "tx"), placeOf(each.transaction), brief(from, "address"), receiverOf(each), amount, statusOf(each)];
  };
  return table(columns, cells, empty);
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

// ---- Events and call data.

/** What is known of an event by its first topic: the name, then each argument's name and kind in the order of topics and data. */
const EVENTS = new Map([
  ["0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef", ["Transfer", ["from", "address"], ["to", "address"], ["value", "amount"]]],
  ["0x8c5be1e5ebec7d5bd14f71427d1e84f3dd0314c0f7b2291e5b200ac8c7c3b925", ["Approval", ["owner", "address"], ["spender", "address"], ["value", "amount"]]],
]);

const CALLS = new Map([
  ["0xa9059cbb", "transfer(address,uint256)"],
  ["0x095ea7b3", "approve(address,uint256)"],
  ["0x23b872dd", "transferFrom(address,address,uint256)"],
]);

const WORDS_SHOWN = 16;
const UNLIMITED = "0x" + "f".repeat(64);

/** The 32-byte words of bytes; the last may be shorter. */
const words = (data) => (data.slice(2).match(/.{1,64}/g) ?? []).map((word) => "0x" + word);

const logKey = (log) => `${log.blockNumber}/${log.logIndex}`;

const tokens = new Map();

/** A token's decimals and symbol, if the contract tells both; asked for once. */
async function tokenOf(address) {
  if (!tokens.has(address)) {
    const [decimals, symbol] = await Promise.all(["0x313ce567", "0x95d89b41"].map((data) => ask("eth_call", { to: address, data }, "latest").catch(() => "0x")));
    tokens.set(address, /^0x0{62}[0-4][0-9a-f]$/.test(decimals) ? { decimals: Number(decimals), symbol: symbolFrom(symbol) } : null);
  }
  return tokens.get(address);
}

/** An ABI string, of which only plain letters are believed. */
function symbolFrom(data) {
  const length = Number(words(data)[1] ?? 0);
  if (length > 12) return "";
  const codes = data.slice(130, 130 + 2 * length).match(/../g) ?? [];
  return String.fromCharCode(...codes.map((code) => parseInt(code, 16))).replace(/[^\w.$-]/g, "");
}

async function decoded(log) {
  const [name, ...inputs] = EVENTS.get(log.topics[0]) ?? [];
  const values = [...log.topics.slice(1), ...words(log.data)];
  if (!name || values.length !== inputs.length) return { name: "Unknown event", inputs: undecoded(log) };
  const token = log.data === "0x" ? null : await tokenOf(log.address); // A token with numbers instead of amounts has no data.
  return { name, inputs: inputs.map(([label, kind], at) => [label, argument(kind, values[at], token)]) };
}

function argument(kind, word, token) {
  if (kind === "address") return brief("0x" + word.slice(26), "address");
  if (word === UNLIMITED) return "unlimited (the largest number)";
  if (!token) return grouped(word);
  return el("span", { title: `${grouped(word)} units` }, `${decimal(word, token.decimals)} ${token.symbol}`);
}

function undecoded(log) {
  const data = words(log.data);
  const rest = data.length > WORDS_SHOWN ? [["…", `${plural(byteCount(log.data), "byte")} in all`]] : [];
  return [...log.topics.map((topic, at) => [`topic ${at}`, bytes(topic)]), ...data.slice(0, WORDS_SHOWN).map((word, at) => [`data ${at}`, bytes(word)]), ...rest];
}

function eventCell({ name, inputs }) {
  const pairs = inputs.map(([label, content]) => [el("span", {}, label), el("span", {}, content)]);
  return [el("b", {}, name), el("div", { class: "arguments" }, pairs)];
}

async function loadEvents(logs) {
  return Promise.all(logs.map(async (log) => ({ key: logKey(log), log, event: await decoded(log) })));
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

function inputParts(input, creates) {
  if (input === "0x") return [["Input", quiet("none")]];
  const length = ["Input", plural(byteCount(input), "byte")];
  if (creates || byteCount(input) < 4) return [length, [creates ? "Creation code" : "Bytes", el("pre", { tabindex: 0 }, input)]];
  const selector = input.slice(0, 10);
  const rest = words("0x" + input.slice(10)).join("\n");
  return [length, ["Selector", [bytes(selector), " ", quiet(CALLS.get(selector) ?? "not known here")]], ["Call data", rest ? el("pre", { tabindex: 0 }, rest) : null]];
}

// ---- Members and what they signed.

const MEMBER_COLUMNS = ["Validator", "Key", ["Address", "wide"], ["Weight", "number wide"]];

/** The committee's members, with a last column of the given heading. */
function membersTable(committee, heading) {
  const own = (member) => (member.index === committee.validator ? quiet(" (serves this page)") : null);
  const cells = ({ member, last }) => [[String(Number(member.index)), own(member)], brief(member.identity), member.address, grouped(member.weight), last];
  const made = table([...MEMBER_COLUMNS, heading], cells, "The committee has no members.");
  const show = (lastOf) => made.show(committee.members.map((member) => ({ key: `${member.index} ${lastOf(member)}`, member, last: lastOf(member) })));
  return { node: made.node, show };
}

/** In how many of these blocks' certificates a member's signature stands; threshold signatures name nobody. */
function signaturesIn(blocks, member) {
  const certificates = blocks.map((each) => each.certificate).filter((each) => each?.signers.length > 0);
  if (certificates.length === 0) return "–";
  return `${certificates.filter((each) => each.signers.includes(member.index)).length} of ${certificates.length}`;
}

function signersText({ signers }, { members }) {
  if (signers.length === 0) return "so many that an honest one is among them; a threshold signature does not tell who";
  return `${signers.length} of ${plural(members.length, "validator")}: ${signers.map(Number).join(", ")}`;
}

function certificateSection(number, certificate, block, committee) {
  const heading = el("h2", {}, "Certificate");
  if (number === 0) return [heading, el("p", { class: "quiet" }, "Genesis is where every member starts; nobody signs it.")];
  if (!certificate) return [heading, el("p", { class: "quiet" }, "This validator does not hold a certificate for this block: not yet, or no longer.")];
  const signatures = membersTable(committee, "In the certificate");
  signatures.show((member) => (certificate.signers.includes(member.index) ? "signed" : "no signature"));
  const same = certificate.blockHash === block.hash;
  return [
    heading,
    fields([
      ["Signed by", signersText(certificate, committee)],
      ["Weight", certificate.weight && `${grouped(certificate.weight)} of ${grouped(committee.weight)}, quorum ${grouped(committee.quorum)}`],
      ["Proposed", moment(Number(certificate.proposedAtMs))],
      ["Block hash", [bytes(certificate.blockHash), same ? null : el("span", { class: "bad" }, " is not the hash above")]],
      ["Executed root", bytes(certificate.root)],
      ["State", bytes(certificate.state)],
      ["Sessions", bytes(certificate.sessions)],
      ["Requests", bytes(certificate.requests)],
      ["Certificate", [bytes(certificate.certificate), quiet(plural(byteCount(certificate.certificate), "byte"))]],
    ]),
    certificate.signers.length > 0 ? [el("h2", {}, "Signatures"), signatures.node] : [],
  ];
}

// ---- The pages. Each gives a title, its content, and what to do every second, if anything.

async function overviewPage() {
  const [chain, version, committee] = await Promise.all([ask("eth_chainId"), ask("web3_clientVersion"), ask("quorate_committee")]);
  const height = card("Height");
  const rate = card("Transactions per second");
  const pool = card("Waiting transactions");
  const blocks = table(BLOCK_COLUMNS, blockCells, "There is no block yet.");
  const transactions = transactionTable("Block", blockOf, "There is no transaction in the last blocks.");
  const members = membersTable(committee, "In the last certificates");
  let known = new Map();

  async function showTransactions(latest) {
    const hashes = latest.flatMap(({ block }) => block.transactions.toReversed()).slice(0, TAIL / 2);
    const found = await Promise.all(hashes.map((hash) => known.get(hash) ?? loadTransaction(hash)));
    known = new Map(found.filter((each) => each?.receipt).map((each) => [each.key, each]));
    transactions.show(found.filter(Boolean));
  }

  function showRate(latest) {
    const newest = timeOf(latest[0]);
    const over = `${rateText(ratePerSecond(latest))} over the last ${plural(latest.length, "block")}`;
    if (latest[0].number === 0) rate.show("idle", "no block since genesis");
    else if (Date.now() - newest > IDLE) rate.show("idle", `since ${utcSecond(newest)}; ${over}`);
    else rate.show(rateText(ratePerSecond(latest)), `over the last ${plural(latest.length, "block")}`);
  }

  async function refresh() {
    const [status, latest] = await Promise.all([ask("txpool_status"), tail.advance()]);
    height.show(String(latest[0].number), timeOf(latest[0]) > 0 ? utcSecond(timeOf(latest[0])) : "");
    pool.show(grouped(status.pending), `${grouped(status.queued)} queued`);
    showRate(latest);
    blocks.show(latest.slice(0, TAIL / 2));
    members.show((member) => signaturesIn(latest, member));
    await showTransactions(latest);
  }

  await refresh();
  const cards = [
    height.node,
    rate.node,
    pool.node,
    filledCard("Validators", grouped(committee.members.length), `quorum ${grouped(committee.quorum)} of ${grouped(committee.weight)}`),
    filledCard("Chain", String(BigInt(chain)), `${committee.protocol}, ${committee.scheme}`),
  ];
  const body = [
    el("h1", { class: "hidden" }, "Overview"),
    el("div", { class: "cards" }, cards),
    el("h2", {}, "Latest blocks"),
    blocks.node,
    el("h2", {}, "Latest transactions"),
    transactions.node,
    el("h2", {}, "Validators"),
    members.node,
    el("p", { class: "quiet" }, version),
  ];
  return { title: "Overview", body, refresh };
}

const HEADER = [
  ["hash", "Hash", (value) => bytes(value)],
  ["parentHash", "Parent", (value) => (/[1-9a-f]/.test(value.slice(2)) ? bytes(value, "block") : bytes(value))],
  ["stateRoot", "State root", bytesOnly],
  ["transactionsRoot", "Transactions root", bytesOnly],
  ["receiptsRoot", "Receipts root", bytesOnly],
  ["miner", "Beneficiary", (value) => bytes(value, "address")],
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

async function blockPage(argument) {
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

async function transactionPage(hash) {
  if (!isHash(hash)) throw new NotFound(`“${hash}” is not a transaction hash.`);
  const found = await loadTransaction(hash);
  if (!found) throw new NotFound(`This validator knows no transaction ${hash}.`);
  const { transaction, receipt } = found;
  const place = receipt && (await loadBlock(Number(receipt.blockNumber)));
  const body = [
    el("h1", {}, "Transaction"),
    fields([...outcomeFields(found, place), ...transactionFields(transaction), ...inputParts(transaction.input, !transaction.to)]),
    receipt ? await logSection(receipt.logs) : null,
    raw("As the validator answers", { transaction, receipt }),
  ].filter(Boolean);
  return { title: `Transaction ${shortened(hash)}`, body, refresh: receipt ? null : () => routeOnceExecuted(hash) };
}

async function routeOnceExecuted(hash) {
  if (await ask("eth_getTransactionReceipt", hash)) await route();
}

function outcomeFields(found, place) {
  const { transaction, receipt } = found;
  if (!receipt) return [["Hash", bytes(transaction.hash)], ["Status", quiet("waiting; this page shows when it is executed")]];
  const number = Number(receipt.blockNumber);
  const price = receipt.effectiveGasPrice ?? transaction.gasPrice;
  return [
    ["Hash", bytes(transaction.hash)],
    ["Status", [statusOf(found), failureNote(found)]],
    ["Block", [link("block", number, String(number)), quiet(`, position ${Number(receipt.transactionIndex)}`)]],
    ["Time", place ? moment(timeOf(place)) : null],
    ["Created contract", receipt.contractAddress ? bytes(receipt.contractAddress, "address") : null],
    ["Gas used", `${grouped(receipt.gasUsed)} of ${grouped(transaction.gas)}`],
    ["Gas price paid", gasPrice(price)],
    ["Fee", ether(BigInt(receipt.gasUsed) * BigInt(price))],
  ];
}

function failureNote({ transaction, receipt }) {
  if (BigInt(receipt.status) === 1n) return null;
  const all = BigInt(receipt.gasUsed) === BigInt(transaction.gas);
  return quiet(all ? ": it used all its gas, and nothing it did remains but the fee and the nonce" : ": it was reverted, and nothing it did remains but the fee and the nonce");
}

function transactionFields(transaction) {
  const optional = (key, show) => (transaction[key] === undefined || transaction[key] === null ? null : show(transaction[key]));
  return [
    ["From", bytes(transaction.from, "address")],
    ["To", transaction.to ? bytes(transaction.to, "address") : quiet("creates a contract")],
    ["Value", ether(transaction.value)],
    ["Nonce", grouped(transaction.nonce)],
    ["Type", optional("type", (type) => String(Number(type)))],
    ["Gas limit", grouped(transaction.gas)],
    ["Gas price", optional("gasPrice", gasPrice)],
    ["Most per gas", optional("maxFeePerGas", gasPrice)],
    ["Most for priority", optional("maxPriorityFeePerGas", gasPrice)],
    ["Access list", optional("accessList", (list) => (list.length === 0 ? quiet("none") : plural(list.length, "entry").replace(/entrys$/, "entries")))],
  ];
}

async function logSection(logs) {
  const columns = ["No.", "Contract", ["Event", "event cut"]];
  const cells = ({ log, event }) => [String(Number(log.logIndex)), brief(log.address, "address"), eventCell(event)];
  return [el("h2", {}, "Events"), filledTable(columns, cells, await loadEvents(logs), "This transaction made no events.")];
}

async function addressPage(text) {
  if (!isAddress(text)) throw new NotFound(`“${text}” is not an address.`);
  const address = text.toLowerCase();
  const [balance, nonce, code, head] = await Promise.all([
    ask("eth_getBalance", address, "latest"),
    ask("eth_getTransactionCount", address, "latest"),
    ask("eth_getCode", address, "latest"),
    ask("eth_blockNumber"),
  ]);
  const contract = code !== "0x";
  const columns = ["Block", "Transaction", ["Contract", "wide"], ["Event", "event cut"]];
  const cells = ({ log, event }) => [link("block", Number(log.blockNumber), String(Number(log.blockNumber))), brief(log.transactionHash, "tx"), brief(log.address, "address"), eventCell(event)];
  const events = table(columns, cells, "No events found.");
  const kind = contract ? "Contract" : "Account";
  const body = [
    el("h1", {}, kind),
    fields([
      ["Address", bytes(address)],
      ["Balance", ether(balance)],
      ["Nonce", grouped(nonce)],
      ["Code", contract ? plural(byteCount(code), "byte") : quiet("none")],
    ]),
    el("h2", {}, "Events"),
    await growing(events, eventsAbout(address, Number(head))),
    el("p", { class: "quiet" }, "Events of this contract, and those of others that name this address. Plain payments leave no events."),
    contract ? el("details", {}, el("summary", {}, "Code"), el("pre", { tabindex: 0 }, code)) : null,
  ].filter(Boolean);
  return { title: `${kind} ${shortened(address)}`, body };
}

async function committeePage() {
  const committee = await ask("quorate_committee");
  const cells = ({ member }) => [String(Number(member.index)), [bytes(member.identity), el("div", { class: "quiet" }, member.address)], grouped(member.weight)];
  const items = committee.members.map((member) => ({ key: member.index, member }));
  const body = [
    el("h1", {}, "Committee"),
    fields([
      ["Network", bytes(committee.network)],
      ["Epoch", grouped(committee.epoch)],
      ["Protocol", committee.protocol],
      ["Signature scheme", committee.scheme],
      ["Members", grouped(committee.members.length)],
      ["This validator", committee.validator ? String(Number(committee.validator)) : quiet("a learner, not a member")],
      ["Weight", grouped(committee.weight)],
      ["Quorum", `${grouped(committee.quorum)} of ${grouped(committee.weight)}`],
    ]),
    el("h2", {}, "Members"),
    filledTable(["Validator", ["Key and address", "cut"], ["Weight", "number"]], cells, items, "The committee has no members."),
  ];
  return { title: "Committee", body };
}

/** Finds out what was searched for and goes there. */
async function searchPage(text) {
  if (isNumber(text)) return goTo("block", text);
  const value = /^0x/i.test(text) ? text.toLowerCase() : `0x${text.toLowerCase()}`;
  if (isAddress(value)) return goTo("address", value);
  if (!isHash(value)) throw new NotFound(`“${text}” is not a block number, a hash of 32 bytes, or an address of 20 bytes.`);
  const [transaction, block] = await Promise.all([ask("eth_getTransactionByHash", value), ask("eth_getBlockByHash", value, false)]);
  if (transaction) return goTo("tx", value);
  if (block) return goTo("block", value);
  throw new NotFound(`This validator knows neither a transaction nor a block with the hash ${value}.`);
}

function goTo(page, argument) {
  location.replace(`#/${page}/${argument}`);
  return null;
}

// ---- From the address bar to a page.

const PAGES = new Map([
  ["", overviewPage],
  ["block", blockPage],
  ["tx", transactionPage],
  ["address", addressPage],
  ["committee", committeePage],
  ["search", searchPage],
]);

const main = document.getElementById("main");
const trouble = document.getElementById("trouble");
let visit = 0;
let shown = null;
let busy = false;
let silentSince = null;

function wanted() {
  const [name, argument = ""] = location.hash.replace(/^#?\/?/, "").split("/");
  try {
    return [name, decodeURIComponent(argument)];
  } catch {
    return [name, argument];
  }
}

async function open(name, argument) {
  const page = PAGES.get(name);
  if (!page) throw new NotFound("There is no such page.");
  return page(argument);
}

/** Shows what the address bar asks for, unless it asks for something else by then. */
async function route() {
  const mine = ++visit;
  const [name, argument] = wanted();
  main.setAttribute("aria-busy", "true");
  const view = await open(name, argument).catch(failurePage);
  if (mine === visit && view) show(view, name);
}

function show(view, name) {
  shown = view;
  document.title = `${view.title} · Quorate`;
  document.querySelectorAll("nav [data-page]").forEach((each) => each.setAttribute("aria-current", each.dataset.page === name ? "page" : "false"));
  main.replaceChildren(...view.body.flat(Infinity));
  main.setAttribute("aria-busy", "false");
  heard();
}

function failurePage(failure) {
  if (failure instanceof NotFound) return { title: "Not found", body: [el("h1", {}, "Not found"), el("p", {}, failure.message)] };
  if (failure instanceof Unreachable) return { title: "No answer", body: [el("h1", {}, "This validator does not answer"), el("p", { class: "quiet" }, "The page asks again every second.")], refresh: route };
  if (failure instanceof TokenNeeded) return tokenPage(failure);
  if (!(failure instanceof Refused)) console.error(failure);
  return { title: "Failed", body: [el("h1", {}, "This page could not be made"), el("p", {}, explained(failure))] };
}

/** Asks for the token, which stays in this tab and goes to this validator alone. */
function tokenPage(failure) {
  const input = el("input", { id: "token", type: "password", autocomplete: "off", spellcheck: "false", required: "" });
  const keep = (event) => {
    event.preventDefault();
    sessionStorage.setItem(TOKEN, input.value.trim());
    route();
    offerDashboard();
  };
  const label = el("label", { for: "token" }, "Token");
  const form = el("form", { class: "token", submit: keep }, label, input, el("button", {}, "Show the chain"));
  const said = `${explained(failure)}. Whoever runs it makes one by quorate token add. It is kept until this tab is closed.`;
  return { title: "Token", body: [el("h1", {}, "This validator asks for a token"), el("p", {}, said), form] };
}

function explained(failure) {
  if (failure instanceof Unreachable) return "This validator does not answer.";
  if (failure instanceof Refused) return `The validator refused: ${failure.message}`;
  return `The page failed: ${failure.message}`;
}

function heard() {
  silentSince = null;
  trouble.hidden = true;
}

function notHeard(failure) {
  silentSince ??= Date.now();
  const what = failure instanceof Unreachable ? `This validator has not answered since ${utcSecond(silentSince)}` : explained(failure);
  say(trouble, `${what}. What is shown may be old; the page asks again every second.`);
  trouble.hidden = false;
}

async function everySecond() {
  if (document.hidden || busy) return;
  tickAges();
  const view = shown;
  if (!view?.refresh) return;
  busy = true;
  try {
    await view.refresh();
    if (view === shown) heard();
  } catch (failure) {
    if (view === shown && failure instanceof TokenNeeded) show(tokenPage(failure), "");
    else if (view === shown) notHeard(failure);
  }
  busy = false;
}

const LOOPBACK = /^(localhost|127\..*|\[::1\])$/;

/** Links to the dashboard of the validator beside this server, where this browser can reach it by the address that it listens on. */
async function linkDashboard() {
  const { dashboard } = await ask("quorate_committee");
  const url = new URL(dashboard);
  if (LOOPBACK.test(url.hostname) && !LOOPBACK.test(location.hostname)) return;
  if (["0.0.0.0", "[::]"].includes(url.hostname)) url.hostname = location.hostname;
  const anchor = document.getElementById("dashboard");
  anchor.href = url;
  anchor.hidden = false;
}

/** Without an answer there is no link; the page says that there is no answer. */
function offerDashboard() {
  linkDashboard().catch(() => {});
}

document.getElementById("search").addEventListener("submit", (event) => {
  event.preventDefault();
  const query = document.getElementById("query");
  const text = query.value.trim();
  if (text) location.hash = `#/search/${encodeURIComponent(text)}`;
  query.value = "";
});

document.addEventListener("click", async ({ target }) => {
  const button = target.closest(".copy");
  if (!button) return;
  await copy(button.dataset.copy);
  button.classList.add("done");
  document.getElementById("said").textContent = "Copied";
  setTimeout(() => button.classList.remove("done"), 1200);
});

document.addEventListener("keydown", (event) => {
  if (event.key !== "/" || event.ctrlKey || event.metaKey || event.target.closest("input")) return;
  event.preventDefault();
  document.getElementById("query").focus();
});

addEventListener("hashchange", () => {
  scrollTo(0, 0);
  main.focus({ preventScroll: true });
  route();
});

document.addEventListener("visibilitychange", everySecond);
setInterval(everySecond, 1000);
route();
offerDashboard();
