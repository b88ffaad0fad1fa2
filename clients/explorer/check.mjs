// Checks the explorer of a running validator in a headless Chromium against what the validator answers, on a desktop and a phone.
//
//   QUORATE_RPC=http://127.0.0.1:8545 QUORATE_KEYS=0x…,… node clients/explorer/check.mjs [--screenshots FOLDER]
//
// What the pages are to show is sent first (world.mjs), from the ninth of the accounts. The browser is $CHROMIUM, or the first found in the
// PATH. EXPLORER names another address that serves the pages.

import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Browser, Checks, DESKTOP, PHONE, Unusable, removed, until } from "../browser.mjs";
import { rpc } from "../environment.mjs";
import { checkCoding } from "./coding.mjs";
import { artefact, balanceOf, makeWorld } from "./world.mjs";

const UNKNOWN = "0x" + "5a".repeat(32);
const WHOLE = { ...DESKTOP, height: 1_240 };

const profile = mkdtempSync(join(tmpdir(), "quorate-explorer-"));
const checks = new Checks();
const check = checks.check.bind(checks);

// ---- The validator.

const site = () => (process.env.EXPLORER ?? rpc()).replace(/\/+$/, "");

async function ask(method, ...params) {
  const response = await fetch(rpc(), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }),
  }).catch((failure) => {
    throw new Unusable(`${rpc()} does not answer: ${failure.cause?.message ?? failure.message}`);
  });
  const answer = await response.json();
  if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
  return answer.result;
}

const hex = (number) => "0x" + number.toString(16);

function ether(wei) {
  const digits = BigInt(wei).toString().padStart(19, "0");
  const fraction = digits.slice(-18).replace(/0+$/, "");
  return `${BigInt(digits.slice(0, -18)).toLocaleString("en")}${fraction && `.${fraction}`}`;
}

// ---- The pages, as elements.

/** The explorer in a browser. */
class Explorer extends Browser {
  /** Goes to a page as a link from elsewhere does, and waits until it is whole. */
  async go(path) {
    await this.send("Page.navigate", { url: `${site()}${path}` });
    await this.settled();
  }

  settled() {
    return until("the page to be whole", () => this.evaluate(`document.getElementById("main")?.getAttribute("aria-busy") === "false"`).catch(() => false));
  }

  /** What the page says beside a label. */
  field(label) {
    return this.evaluate(`[...document.querySelectorAll(".fields > div")].find((row) => row.querySelector("dt").textContent === ${JSON.stringify(label)})?.querySelector("dd").textContent ?? ""`);
  }

  heading() {
    return this.text("h1");
  }

  links(page) {
    return this.evaluate(`[...document.querySelectorAll('main a[href^="/${page}/"]')].map((each) => each.getAttribute("href").split("/")[2])`);
  }

  /** Links of this kind in the rows of the part that is shown. */
  rows(page) {
    return this.evaluate(`[...document.querySelectorAll(".panel tbody tr")].map((row) => row.querySelector('a[href^="/${page}/"]')?.getAttribute("href").split("/")[2])`);
  }

  async tab(name) {
    await this.evaluate(`document.getElementById("tab-${name}").click()`);
    await this.has(`.panel[aria-labelledby="tab-${name}"]`);
  }

  panel() {
    return this.text(".panel");
  }

  /** Has the table in the panel show all that there is. */
  async all() {
    const [button, rows] = [`document.querySelector(".panel .more button")`, `document.querySelectorAll(".panel tbody tr").length`];
    while (await this.evaluate(`${button} && !${button}.hidden`)) {
      const before = await this.evaluate(rows);
      await this.evaluate(`${button}.click()`);
      await until("more rows", () => this.evaluate(`${button}.hidden || ${rows} > ${before}`));
    }
  }

  /** Elements that reach beyond the window's width. */
  isTooWide() {
    return this.evaluate(`document.documentElement.scrollWidth > document.documentElement.clientWidth`);
  }
}

// ---- The checks.

async function checkOverview(page) {
  await page.go("/");
  const before = Number(await ask("eth_blockNumber"));
  const height = () => page.evaluate(`Number(document.querySelector(".card b").textContent)`);
  check("the overview shows the newest block's number", await until("the newest block", async () => (await height()) >= before));
  const shown = await height();
  check("and none that is not there", shown <= Number(await ask("eth_blockNumber")), shown);
  const { dashboard } = await ask("quorate_committee");
  const linked = () => page.evaluate(`document.getElementById("dashboard").getAttribute("href")`);
  check("the overview links to the validator's dashboard", (await until("the link", linked)).startsWith(dashboard), await linked());
  const chain = String(BigInt(await ask("eth_chainId")));
  check("the overview shows the chain id", (await page.text(".cards")).includes(`Chain${chain}`));
  const bars = await page.evaluate(`[...document.querySelectorAll(".bars:first-child title")].map((each) => each.textContent)`);
  const wrong = [];
  for (const bar of bars) {
    const [, number, gas] = bar.match(/^Block (\d+): ([\d,]+) gas$/) ?? [];
    const { gasUsed } = await ask("eth_getBlockByNumber", hex(Number(number)), false);
    if (BigInt(gasUsed) !== BigInt(gas.replaceAll(",", ""))) wrong.push(bar);
  }
  check("a chart has each block's gas", bars.length > 1 && wrong.length === 0, wrong.join("; "));
}

async function checkBlock(page, { transfer }) {
  const block = await ask("eth_getBlockByHash", transfer.blockHash, false);
  const number = Number(block.number);
  await page.go(`/block/${number}`);
  check("a block's page shows its hash", (await page.field("Hash")) === block.hash, await page.field("Hash"));
  check("a block's page shows its state root", (await page.field("State root")) === block.stateRoot);
  check("a block's page links to its transactions", (await page.links("tx")).includes(transfer.hash));
  check("a block's page links to the block before", (await page.links("block")).includes(String(number - 1)));
  const certificate = await ask("quorate_getCertificate", block.number);
  const signers = (await page.field("Signed by")).split(": ")[1] ?? "nobody";
  check("a block's page names the certificate's signers", signers === (certificate?.signers.map(Number).join(", ") || "nobody"), signers);
  await page.go(`/block/${block.hash}`);
  check("a block is found by its hash", (await page.heading()) === `Block ${number}`, await page.heading());
  await page.go(`/#/block/${number}`);
  check("an earlier version's link leads to its page", (await page.heading()) === `Block ${number}` && (await page.evaluate("location.pathname")) === `/block/${number}`);
}

async function checkTransaction(page, { transfer, token, owner, friend }) {
  await page.go(`/tx/${transfer.hash}`);
  check("a transaction's page shows how it ended", (await page.field("Status")).startsWith("succeeded"));
  check("its sender and receiver have checksums", (await page.field("From")) === owner.address && (await page.field("To")) === token, await page.field("From"));
  const call = await page.field("Calls");
  check("its call is decoded", call.startsWith("transfer") && call.includes("12.5 EXM"), call);
  const event = await page.panel();
  check("its event is decoded", event.includes("Transfer") && event.includes("12.5 EXM") && event.includes(friend.address.slice(0, 8)), event);
}

async function checkFailure(page, { failed, friend }) {
  await page.go(`/tx/${failed.hash}`);
  check("a failed transaction's page says so", (await page.field("Status")).startsWith("failed: it was reverted"), await page.field("Status"));
  const data = await ask("ots_getTransactionError", failed.hash);
  check("an error that nobody knows is shown as it is", (await page.field("Reverted with")) === data, await page.field("Reverted with"));
  const abi = JSON.stringify(artefact("Token").abi);
  await page.evaluate(`localStorage.setItem("quorate-abi-${failed.to.toLowerCase()}", ${JSON.stringify(abi)})`);
  await page.go(`/tx/${failed.hash}`);
  const why = await page.field("Reverted with");
  check("and by the contract's ABI where it is given", why.startsWith("InsufficientBalance") && why.includes(friend.address.slice(0, 8)), why);
  await page.evaluate("localStorage.clear()");
}

async function checkInside(page, { made, inner, maker, workshop, owner }) {
  await page.go(`/tx/${made.hash}`);
  await page.tab("calls");
  const kinds = await page.evaluate(`[...document.querySelectorAll(".tree .kind")].map((each) => each.textContent)`);
  const traced = (await ask("ots_traceTransaction", made.hash)).map(({ type }) => type.toLowerCase());
  check("calls inside are those of the trace, in order", kinds.join() === traced.join() && kinds.length === 4, kinds.join());
  check("with what they carried", (await page.panel()).includes("0.25 ether"));
  const operations = await ask("ots_getInternalOperations", made.hash);
  const expected = [[2, workshop, inner], [0, workshop, maker.address]];
  check("operations inside are a creation and a payment", operations.length === 2 && expected.every(([type, from, to], at) => operations[at].type === type && operations[at].from === from.toLowerCase() && operations[at].to === to.toLowerCase()), JSON.stringify(operations));
  await page.go(`/address/${inner}`);
  check("a contract's page says who created it", (await page.links("tx")).includes(made.hash) && (await page.field("Created by")).includes(workshop.slice(0, 8)), await page.field("Created by"));
  check("a contract that was created inside has that transaction", (await page.rows("tx")).join() === made.hash, await page.rows("tx"));
  await page.go(`/address/${maker.address}`);
  await page.all();
  check("an account that was paid inside has that transaction", (await page.rows("tx")).at(-1) === made.hash && (await page.panel()).includes("inside"));
  const found = await ask("ots_getTransactionBySenderAndNonce", owner.address, 0);
  check("a transaction is found by its sender and nonce", (await ask("eth_getTransactionByHash", found)).from === owner.address.toLowerCase());
}

async function checkAccount(page, { owner, friend }) {
  for (const { address } of [owner, friend]) {
    await page.go(`/address/${address}`);
    check("an account's page shows its balance", (await page.field("Balance")) === `${ether(await ask("eth_getBalance", address, "latest"))} ether`);
    await page.all();
    const { txs } = await ask("ots_searchTransactionsBefore", address, 0, 1_000);
    const nonce = Number(await ask("eth_getTransactionCount", address, "latest"));
    const rows = await page.rows("tx");
    check("an account's page lists its transactions", rows.join() === txs.map(({ hash }) => hash).join() && rows.length > nonce, rows.length);
    await page.tab("transfers");
    await page.all();
    const { logs } = await ask("quorate_getTokenTransfers", { account: address });
    const shown = await page.rows("tx");
    check("an account's page lists its transfers of tokens", shown.join() === logs.map((log) => log.transactionHash).join() && shown.length >= 4, shown.length);
    for (const what of ["12.5", "no. 1", "40 of no. 7"]) check(`transfers show ${what}`, (await page.panel()).includes(what));
  }
}

async function checkTokens(page, world) {
  const { token, collectible, items, owner, friend } = world;
  await page.go(`/token/${token}`);
  check("a token's page names it", (await page.heading()) === "Example EXM", await page.heading());
  check("and its supply", (await page.field("Total supply")) === "1,000 EXM", await page.field("Total supply"));
  const { logs } = await ask("quorate_getTokenTransfers", { token });
  check("a token's page lists its transfers", (await page.rows("tx")).join() === logs.map((log) => log.transactionHash).join() && logs.length === 2);
  await page.tab("holders");
  const holders = await page.evaluate(`[...document.querySelectorAll(".panel tbody tr")].map((row) => [row.querySelector("a").title, ...[...row.cells].slice(1).map((cell) => cell.textContent)].join(" "))`);
  const [most, least] = [await balanceOf(world, token, owner.address), await balanceOf(world, token, friend.address)];
  const expected = [`${owner.address} ${ether(most)} 98.75 %`, `${friend.address} ${ether(least)} 1.25 %`];
  check("a token's holders have what it says, most first", holders.join() === expected.join(), holders.join());
  for (const [address, kind, held] of [[collectible, "ERC-721", 2], [items, "ERC-1155", 3]]) {
    await page.go(`/token/${address}?tab=holders`);
    check(`a token's page knows ${kind}`, (await page.field("Kind")) === kind, await page.field("Kind"));
    check(`${kind}: its holders are listed`, (await page.rows("address")).length === held, await page.panel());
  }
}

async function checkContract(page, { token, owner, friend }) {
  await page.go(`/address/${token}?tab=contract`);
  await page.type("#abi", "no JSON");
  await page.click("Keep it in this browser");
  check("what is no ABI is refused", (await until("the refusal", () => page.text(".abi p"))).startsWith("This is no ABI"));
  await page.evaluate(`document.getElementById("abi").value = ""`);
  await page.type("#abi", JSON.stringify(artefact("Token")));
  await page.click("Keep it in this browser");
  check("a compiler's file is compared with the code", (await until("the comparison", () => page.text("#abi-said"))).includes("Its code is the code here"));
  await page.go(`/token/${token}?tab=contract`);
  await page.type(`[data-function="balanceOf"] input`, friend.address);
  await page.evaluate(`document.querySelector('[data-function="balanceOf"] button').click()`);
  const answer = await until("the answer", async () => (await page.text(`[data-function="balanceOf"] .result`)).replace("…", ""));
  check("a function is read", answer.includes("12,500,000,000,000,000,000"), answer);
  await page.evaluate(`document.querySelector('[data-function="allowance"] button').click()`);
  const wrong = await until("the answer", async () => (await page.text(`[data-function="allowance"] .result`)).replace("…", ""));
  check("what is missing is said", wrong.includes("address: 0x and 20 bytes"), wrong);
  check("without a wallet nothing is written, and the page says so", (await page.panel()).includes("There is no wallet in this browser") && (await page.evaluate(`document.querySelector('[data-function="transfer"] button').disabled`)));
  await checkWallet(page, token, owner, friend);
}

/** A wallet in the page (EIP-1193) whose requests are answered here, with ethers and the owner's key. */
async function checkWallet(page, token, owner, friend) {
  const answers = {
    eth_chainId: () => ask("eth_chainId"),
    eth_requestAccounts: () => [owner.address],
    eth_sendTransaction: async ([{ to, data, value }]) => (await owner.sendTransaction({ to, data, value })).hash,
  };
  await page.send("Runtime.addBinding", { name: "askWallet" });
  page.onBinding = async ({ payload }) => {
    const { id, method, params } = JSON.parse(payload);
    const result = await answers[method](params);
    await page.evaluate(`walletAnswers[${id}](${JSON.stringify(result)})`);
  };
  const source = `window.walletAnswers = []; window.ethereum = { request: ({ method, params }) => new Promise((done) => askWallet(JSON.stringify({ id: walletAnswers.push(done) - 1, method, params }))) };`;
  const { identifier } = await page.send("Page.addScriptToEvaluateOnNewDocument", { source });
  await page.go(`/address/${token}?tab=contract`);
  for (const [at, value] of [[1, friend.address], [2, "1000"]]) await page.type(`[data-function="transfer"] label:nth-of-type(${at}) input`, value);
  await page.evaluate(`document.querySelector('[data-function="transfer"] button').click()`);
  const link = `[data-function="transfer"] .result a`;
  await page.has(link);
  const hash = await page.evaluate(`document.querySelector(${JSON.stringify(link)}).title`);
  const receipt = await owner.provider.waitForTransaction(hash);
  check("a function is written by the browser's wallet", receipt.status === 1 && receipt.to === token, hash);
  await page.send("Page.removeScriptToEvaluateOnNewDocument", { identifier });
}

async function checkCommittee(page) {
  const committee = await ask("quorate_committee");
  await page.go("/committee");
  const text = await page.text("main");
  for (const { index, identity, address } of committee.members) {
    check(`the committee's page shows member ${Number(index)}`, text.includes(identity) && text.includes(address));
  }
  const quorum = `${Number(committee.quorum)} of ${Number(committee.weight)}`;
  check("the committee's page shows the quorum", (await page.field("Quorum")) === quorum, await page.field("Quorum"));
}

async function checkSearch(page, { transfer, token }) {
  const searched = { [transfer.hash]: `/tx/${transfer.hash}`, [transfer.blockHash]: `/block/${transfer.blockHash}`, [token.toLowerCase()]: `/address/${token.toLowerCase()}`, 1: "/block/1" };
  for (const [text, path] of Object.entries(searched)) {
    await page.go("/committee");
    await page.type("#query", text);
    await page.click("Search");
    await until(path, () => page.evaluate(`location.pathname === ${JSON.stringify(path)}`));
    await page.settled();
    check(`a search leads to ${path.split("/")[1]}`, (await page.heading()) !== "Not found");
  }
  await page.evaluate("history.back()");
  const isBack = `location.pathname === "/committee" && document.querySelector("h1").textContent === "Committee"`;
  check("the browser goes back", await until("the page before", () => page.evaluate(isBack)));
  for (const route of [`search/${UNKNOWN}`, `tx/${UNKNOWN}`, `block/${UNKNOWN}`, "address/0x12", `token/${transfer.from}`]) {
    await page.go(`/${route}`);
    check(`${route.split("/")[0]}: what is unknown is not found`, (await page.heading()) === "Not found");
  }
}

/** Pages that are looked at in both widths. */
const looks = (world) => ({
  overview: "/",
  block: `/block/${Number(world.transfer.blockNumber)}`,
  transaction: `/tx/${world.transfer.hash}`,
  calls: `/tx/${world.made.hash}?tab=calls`,
  address: `/address/${world.owner.address}`,
  transfers: `/address/${world.owner.address}?tab=transfers`,
  contract: `/address/${world.token}?tab=contract`,
  holders: `/token/${world.token}?tab=holders`,
});

async function checkWidths(page, world, folder) {
  for (const [name, path] of Object.entries(looks(world))) {
    for (const [kind, size] of [["desktop", WHOLE], ["phone", PHONE]]) {
      await page.resize(size);
      await page.go(path);
      check(`${name}: no wider than a ${kind}`, !(await page.isTooWide()));
      if (folder) for (const scheme of ["light", "dark"]) await page.photograph(join(folder, `${name}-${kind}-${scheme}.png`), size, scheme);
    }
  }
  await page.resize(DESKTOP);
}

async function everyCheck(page, folder) {
  await checkCoding(check, ask);
  const world = await makeWorld();
  await page.open(`${site()}/`);
  await page.resize(DESKTOP);
  for (const each of [checkOverview, checkBlock, checkTransaction, checkFailure, checkInside, checkAccount, checkTokens, checkContract, checkCommittee, checkSearch]) await each(page, world);
  await checkWidths(page, world, folder);
  check("no page complained to the console", page.complaints.length === 0);
  page.complaints.forEach((line) => console.log(`        ${line}`));
  const foreign = page.asked.filter((url) => !url.startsWith(site()) && !url.startsWith("data:"));
  check("no page asked anybody else", foreign.length === 0, foreign.join());
  world.provider.destroy();
}

async function main([option, folder]) {
  if (option !== undefined && (option !== "--screenshots" || !folder)) throw new Unusable("usage: check.mjs [--screenshots FOLDER]");
  if (folder) mkdirSync(folder, { recursive: true });
  const page = new Explorer(profile);
  try {
    await everyCheck(page, folder);
  } finally {
    const ended = new Promise((done) => page.process.once("exit", done));
    page.process.kill();
    await ended;
  }
}

try {
  await main(process.argv.slice(2));
} catch (failure) {
  checks.fail(failure);
} finally {
  await removed(profile);
}
checks.end();
