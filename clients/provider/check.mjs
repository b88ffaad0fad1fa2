// Checks what a wallet in a browser and the pages that use it find at a running ledger, in a headless Chromium: a page of
// another origin, an injected EIP-1193 provider (wallet.mjs), and ethers and viem on top of it (dapp.mjs).
//
//   QUORATE_RPC=http://127.0.0.1:8545 QUORATE_KEYS=0x…,… node clients/provider/check.mjs

import { mkdtempSync } from "node:fs";
import { createServer } from "node:http";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { build } from "esbuild";
import { JsonRpcProvider, Wallet, parseEther } from "ethers";
import { Browser, Checks, removed, until } from "../browser.mjs";
import { keys, rpc } from "../environment.mjs";

/** What one of MetaMask's packages would require in node, and never does in a browser. */
const NODE = ["http", "https", "url", "util", "zlib"];
const PAGE = '<!doctype html><meta charset="utf-8"><link rel="icon" href="data:,"><script type="module" src="dapp.js"></script>';
const BLOCKS = 3;
const PAID = "12345";
const SUPPLY = 1_000;

const profile = mkdtempSync(join(tmpdir(), "quorate-provider-"));
const ledger = new JsonRpcProvider(rpc());
const checks = new Checks();

const stranger = () => Wallet.createRandom().address;

async function bundle(name, format) {
  const entryPoints = [new URL(name, import.meta.url).pathname];
  const { outputFiles } = await build({ bundle: true, entryPoints, external: NODE, format, target: "es2022", write: false });
  return outputFiles[0].text;
}

/** Serves the page of the dapp at an address of its own. */
async function serve() {
  const dapp = await bundle("dapp.mjs", "esm");
  const server = createServer(({ url }, response) => {
    const [type, text] = url === "/dapp.js" ? ["text/javascript", dapp] : ["text/html", PAGE];
    response.writeHead(200, { "content-type": type }).end(text);
  });
  await new Promise((listening) => server.listen(0, "127.0.0.1", listening));
  return server;
}

/** A new account with an ether. */
async function funded() {
  const wallet = Wallet.createRandom();
  const funder = new Wallet(keys(9)[0], ledger);
  await (await funder.sendTransaction({ to: wallet.address, value: parseEther("1") })).wait();
  return wallet;
}

/** Opens the page with the wallet in it, which is there before the page's own scripts. */
async function open(browser, url, wallet) {
  const given = JSON.stringify({ key: wallet.privateKey, url: rpc() });
  const source = `window.quorateWallet = ${given}; ${await bundle("wallet.mjs", "iife")}`;
  await browser.open("about:blank");
  await browser.send("Page.addScriptToEvaluateOnNewDocument", { source });
  await browser.send("Page.navigate", { url });
  await until("the dapp to have a wallet", () => browser.evaluate('document.title === "ready"'));
}

async function checkLibrary(library, browser, { address }) {
  const dapp = (name, ...given) => browser.evaluate(`dapps.${library}.${name}(...${JSON.stringify(given)})`);
  const check = (name, holds, seen) => checks.check(`${library}: ${name}`, holds, seen);

  const account = await dapp("account");
  check("the account is the wallet's", account.toLowerCase() === address.toLowerCase(), account);
  const held = await dapp("balance", address);
  check("its balance is the ledger's", held === String(await ledger.getBalance(address)), held);

  const to = stranger();
  const paid = await ledger.getTransactionReceipt(await dapp("pay", to, PAID));
  check("a payment is carried out", paid.status === 1 && paid.to === to, paid.hash);
  const received = await dapp("balance", to);
  check("what was paid is seen at once", received === PAID, received);

  const token = await dapp("deploy");
  check("a contract is deployed", (await ledger.getCode(token)) !== "0x", token);
  const [hash, ...events] = await dapp("transfer", to, "7");
  check("a call of it is carried out", (await ledger.getTransactionReceipt(hash)).status === 1, hash);
  check("its events are read", events.join() === "Transfer 7", events);
  const refused = await dapp("refused", to, String(SUPPLY));
  const why = `InsufficientBalance ${account} ${SUPPLY - 7} ${SUPPLY}`;
  check("a revert says why", refused.toLowerCase() === why.toLowerCase(), refused);

  const heard = (await dapp("blocks", BLOCKS)).map(Number);
  check("blocks are told of, none left out", heard.every((number, index) => number === heard[0] + index), heard);
  const newest = await ledger.getBlockNumber();
  check("they are the ledger's", heard.at(-1) <= newest && heard.at(-1) > paid.blockNumber, heard);

  const signers = [await dapp("signed", "hello"), await dapp("signedTyped")];
  check("texts and structures are signed", signers.every((signer) => signer.toLowerCase() === address.toLowerCase()), signers);
}

async function main(browser, server) {
  const wallet = await funded();
  const url = `http://127.0.0.1:${server.address().port}/`;
  await open(browser, url, wallet);
  const name = await browser.evaluate("dapps.wallet");
  checks.check("the wallet is found by EIP-6963", name === "A key that signs", name);
  for (const library of ["ethers", "viem"]) await checkLibrary(library, browser, wallet);
  const [page, asked] = [url, rpc()].map((one) => new URL(one).origin);
  const crossed = browser.asked.some((one) => new URL(one).origin === asked);
  checks.check("the page asks the ledger from another origin", page !== asked && crossed);
  checks.check("the browser's console is empty", browser.complaints.length === 0, browser.complaints.join());
}

function closed(process) {
  const gone = new Promise((done) => process.once("exit", done));
  process.kill("SIGKILL");
  return gone;
}

const server = await serve();
const browser = new Browser(profile);
try {
  await main(browser, server);
} catch (failure) {
  checks.fail(failure);
} finally {
  await closed(browser.process);
  server.close();
  ledger.destroy();
  await removed(profile);
}
checks.end();
