// Checks the explorer of a running validator in a headless Chromium against what the validator answers.
//
//   QUORATE_RPC=http://127.0.0.1:8545 node clients/explorer/check.mjs [--screenshot overview.png]
//
// The chain must hold at least one transaction. The browser is $CHROMIUM, or the first found in the PATH.

import { execFile } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Checks, Unusable, findBrowser, options } from "../browser.mjs";

const UNKNOWN = "0x" + "5a".repeat(32);
const LOOKED_BACK = 100; // Blocks in which a transaction is looked for.

const run = promisify(execFile);
const profile = mkdtempSync(join(tmpdir(), "quorate-explorer-"));

// ---- The validator and the browser.

function validator() {
  if (!process.env.QUORATE_RPC) throw new Unusable("QUORATE_RPC is not set: it names a validator's JSON-RPC port, such as http://127.0.0.1:8545");
  return process.env.QUORATE_RPC.replace(/\/+$/, "");
}

async function ask(method, ...params) {
  const response = await fetch(validator(), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  }).catch((failure) => {
    throw new Unusable(`${validator()} does not answer: ${failure.cause?.message ?? failure.message}`);
  });
  const answer = await response.json();
  if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
  return answer.result;
}

async function browse(route, ...more) {
  const still = ["--enable-logging=stderr", "--virtual-time-budget=5000"];
  return run(findBrowser(), [...options(profile), ...still, ...more, `${validator()}/#/${route}`], { timeout: 60_000, maxBuffer: 64 << 20 });
}

const complaints = [];

/** The page's elements once it has come to rest, as HTML. What the browser's console says is kept for the last check. */
async function page(route) {
  const { stdout, stderr } = await browse(route, "--dump-dom");
  complaints.push(...stderr.split("\n").filter((line) => line.includes(":CONSOLE")));
  return stdout;
}

/** What the page says beside a label, without the elements in it. */
function field(html, label) {
  const [, content = ""] = html.match(new RegExp(`<dt>${label}</dt><dd>(.*?)</dd>`)) ?? [];
  return content.replace(/<[^>]*>/g, "");
}

// ---- The checks.

const checks = new Checks();
const check = checks.check.bind(checks);

async function newestTransaction() {
  const head = Number(await ask("eth_blockNumber"));
  for (let number = head; number > Math.max(0, head - LOOKED_BACK); number -= 1) {
    const block = await ask("eth_getBlockByNumber", "0x" + number.toString(16), true);
    if (block.transactions.length > 0) return { block, transaction: block.transactions[0] };
  }
  throw new Unusable(`the last ${LOOKED_BACK} blocks hold no transaction: send one first`);
}

function ether(wei) {
  const digits = BigInt(wei).toString().padStart(19, "0");
  const fraction = digits.slice(-18).replace(/0+$/, "");
  return `${BigInt(digits.slice(0, -18)).toLocaleString("en")}${fraction && `.${fraction}`} ether`;
}

async function checkOverview() {
  const before = Number(await ask("eth_blockNumber"));
  const html = await page("");
  const after = Number(await ask("eth_blockNumber"));
  const height = Number(html.match(/<h2>Height<\/h2><b>(\d+)<\/b>/)?.[1] ?? NaN);
  check("the overview shows the newest block's number", before <= height && height <= after, height);
  check("the overview links to the newest block", html.includes(`href="#/block/${height}"`));
  const chain = BigInt(await ask("eth_chainId"));
  const { dashboard } = await ask("quorate_committee");
  check("the overview links to the validator's dashboard", html.includes(`href="${dashboard}"`), dashboard);
  check("the overview shows the chain id", html.includes(`<h2>Chain</h2><b>${chain}</b>`));
}

async function checkBlock({ block, transaction }) {
  const number = Number(block.number);
  const html = await page(`block/${number}`);
  check("a block's page shows its hash", field(html, "Hash") === block.hash, field(html, "Hash"));
  check("a block's page shows its state root", field(html, "State root") === block.stateRoot, field(html, "State root"));
  check("a block's page links to its first transaction", html.includes(`href="#/tx/${transaction.hash}"`));
  check("a block's page links to the block before", html.includes(`href="#/block/${number - 1}"`));
  await checkCertificate(html, block);
  const byHash = await page(`block/${block.hash}`);
  check("a block is found by its hash", byHash.includes(`<h1>Block ${number}</h1>`));
}

async function checkCertificate(html, block) {
  const certificate = await ask("quorate_getCertificate", block.number);
  const signers = field(html, "Signed by").split(": ")[1] ?? "nobody";
  check("a block's page names the certificate's signers", signers === (certificate?.signers.map(Number).join(", ") || "nobody"), signers);
  check("a block's page shows the certificate's root", field(html, "Executed root") === certificate?.root, field(html, "Executed root"));
  check("the certificate is of this block's hash", field(html, "Block hash") === block.hash, field(html, "Block hash"));
}

async function checkTransaction({ block, transaction }) {
  const html = await page(`tx/${transaction.hash}`);
  const receipt = await ask("eth_getTransactionReceipt", transaction.hash);
  check("a transaction's page shows its sender", field(html, "From") === transaction.from, field(html, "From"));
  check("a transaction's page shows its value", field(html, "Value") === ether(transaction.value), field(html, "Value"));
  const status = Number(receipt.status) === 1 ? "succeeded" : "failed";
  check("a transaction's page shows how it ended", field(html, "Status").startsWith(status), field(html, "Status"));
  check("a transaction's page links to its block", html.includes(`href="#/block/${Number(block.number)}"`));
}

async function checkAddress({ transaction }) {
  const held = new Set();
  const sample = async () => held.add(ether(await ask("eth_getBalance", transaction.from, "latest")));
  const sampling = setInterval(() => sample().catch(() => {}), 10); // The chain may go on meanwhile.
  await sample();
  const html = await page(`address/${transaction.from}`).finally(() => clearInterval(sampling));
  await sample();
  const balance = field(html, "Balance");
  check("an address's page shows its balance", held.has(balance), balance);
}

async function checkCommittee() {
  const committee = await ask("quorate_committee");
  const html = await page("committee");
  for (const { index, identity, address } of committee.members) {
    check(`the committee's page shows member ${Number(index)}`, html.includes(identity) && html.includes(address));
  }
  const quorum = `${Number(committee.quorum)} of ${Number(committee.weight)}`;
  check("the committee's page shows the quorum", field(html, "Quorum") === quorum, field(html, "Quorum"));
}

async function checkSearch({ block, transaction }) {
  const transactionPage = await page(`search/${transaction.hash}`);
  check("a search finds a transaction", transactionPage.includes("<h1>Transaction</h1>") && field(transactionPage, "Hash") === transaction.hash);
  const blockPage = await page(`search/${block.hash}`);
  check("a search finds a block", blockPage.includes(`<h1>Block ${Number(block.number)}</h1>`));
  for (const route of [`search/${UNKNOWN}`, `tx/${UNKNOWN}`, `block/${UNKNOWN}`]) {
    const html = await page(route);
    check(`${route.split("/")[0]}: an unknown hash is not found`, html.includes("<h1>Not found</h1>") && html.includes(UNKNOWN));
  }
}

async function everyCheck() {
  await checkOverview();
  const newest = await newestTransaction();
  await checkBlock(newest);
  await checkTransaction(newest);
  await checkAddress(newest);
  await checkCommittee();
  await checkSearch(newest);
  check("no page complained to the console", complaints.length === 0);
  complaints.forEach((line) => console.log(`        ${line}`));
}

async function main([option, file]) {
  if (option !== undefined && (option !== "--screenshot" || !file)) throw new Unusable("usage: check.mjs [--screenshot FILE]");
  await everyCheck();
  if (option) await browse("", "--window-size=1200,1320", `--screenshot=${file}`);
}

try {
  await main(process.argv.slice(2));
} catch (failure) {
  checks.fail(failure);
} finally {
  rmSync(profile, { recursive: true, force: true });
}
checks.end();
