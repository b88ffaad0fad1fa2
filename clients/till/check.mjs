// Checks the page of a till in a headless Chromium, over a payment network of real processes: an amount is typed, the
// request is paid by another wallet, whoever brings the receipt has no token, and the page says that it is paid.
//
//   QUORATE=target/release/quorate node clients/till/check.mjs [--screenshots FOLDER]
//
// It takes nine ports from $BASE_PORT on, 21440 by default.

import { execFile, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Browser, Checks, DESKTOP, PHONE, Unusable, removed, until } from "../browser.mjs";

const QUORATE = process.env.QUORATE ?? "target/release/quorate";
const PORT = Number(process.env.BASE_PORT ?? 21440);
const TILL = `http://127.0.0.1:${PORT + 8}`;

const run = promisify(execFile);
const folder = mkdtempSync(join(tmpdir(), "quorate-till-"));
const at = (name) => join(folder, name);
const processes = [];
const checks = new Checks();

// ---- Wallets and authorities.

async function quorate(...given) {
  const { stdout } = await run(QUORATE, given).catch((failure) => {
    throw new Unusable(`quorate ${given.join(" ")}: ${failure.stderr ?? failure.message}`);
  });
  return stdout;
}

const pay = async (...given) => JSON.parse(await quorate("pay", ...given, "--json"));

function begin(...given) {
  processes.push(spawn(QUORATE, ["pay", ...given], { stdio: "ignore" }));
}

/** The token of a till whose wallet is served, and another wallet with 1000 units. */
async function shop() {
  const { address } = await pay("keys", at("anne"));
  await pay("keys", at("shop"));
  const { configs, network } = await pay("testnet", at("net"), "--base-port", String(PORT), "--genesis", `${address}=1000`);
  copyFileSync(network, at("network.toml"));
  for (const config of configs.flat()) begin("run", "--config", config);
  await pay("genesis", "-w", at("anne"));
  const { token } = await pay("token", "add", at("tokens.toml"), "till-1", "--right", "request");
  begin("serve", "-w", at("shop"), "--tokens-file", at("tokens.toml"), "--listen", `127.0.0.1:${PORT + 8}`);
  await until("the wallet to serve", () => fetch(TILL).then(() => true, () => false));
  return token;
}

async function payRequest(request, name) {
  writeFileSync(at(`${name}.request`), JSON.stringify(request));
  await pay("send", "-w", at("anne"), "--request", at(`${name}.request`), "--receipt", at(name), "--timeout", "60");
  return readFileSync(at(name), "utf8");
}

// ---- The checks.

async function main([option, photographs]) {
  if (option !== undefined && (option !== "--screenshots" || !photographs)) throw new Unusable("usage: check.mjs [--screenshots FOLDER]");
  if (photographs) mkdirSync(photographs, { recursive: true });
  const token = await shop();
  const browser = new Browser(at("profile"));
  processes.push(browser.process);
  const photograph = async (name) => {
    if (photographs) await browser.photographAll(join(photographs, name), { phone: PHONE, desktop: DESKTOP });
  };
  const ask = (path, given = {}) => fetch(TILL + path, { ...given, headers: { "content-type": "application/json", ...given.headers } });
  const mine = { headers: { authorization: `Bearer ${token}` } };

  await browser.open(TILL);
  await browser.type("#token", token);
  await photograph("token");
  browser.complaints.length = 0; // That a token is needed was said.
  await browser.click("Sign on");

  await browser.type("#value", "300");
  await browser.type("#memo", "Table 4");
  await photograph("amount");
  await browser.click("Request payment");
  await browser.has(".code img");
  await until("the code", () => browser.evaluate(`document.querySelector(".code img").naturalWidth > 0`));
  checks.check("a request shows its code", (await browser.text(".amount")) === "300", await browser.text(".amount"));
  const where = await browser.evaluate("location.href + document.cookie");
  checks.check("the token is not in the address", !where.includes(token), where);
  await photograph("waiting");

  const { requests } = await (await ask("/v1/requests", mine)).json();
  const receipt = await payRequest(requests[0].request, "paid");
  const brought = await ask("/v1/receipts", { method: "POST", body: receipt });
  checks.check("whoever pays brings the receipt without a token", brought.ok, await brought.text());
  await browser.has("[data-state=paid]");
  checks.check("the page says that it is paid", (await browser.text("[data-state=paid] b")) === "300 paid", await browser.text("[data-state=paid]"));
  const { payer } = JSON.parse(receipt);
  checks.check("the page names the payer", (await browser.text(".fields")).includes(payer), await browser.text(".fields"));
  await photograph("paid");

  await browser.click("New request");
  await browser.type("#value", "12");
  await browser.type("#memo", "<b>&");
  await browser.click("Request payment");
  await browser.has(".code img");
  checks.check("a memo is text", (await browser.text(".memo")) === "<b>&", await browser.text(".memo"));
  const [second] = (await (await ask("/v1/requests", mine)).json()).requests;
  const shown = await payRequest(second.request, "shown");
  await browser.click("Take a receipt in");
  await browser.type("#receipt", shown);
  await browser.click("Only check");
  await browser.has("[data-state=valid]");
  checks.check("a receipt is only checked", (await browser.text("[data-state=valid] b")) === "The receipt holds");
  await browser.click("Take in");
  await browser.has("[data-state=taken]");
  checks.check("a receipt is taken in", (await browser.text("[data-state=taken] b")) === "12 came in", await browser.text("[data-state=taken]"));
  await photograph("receipt");
  checks.check("no page complained to the console", browser.complaints.length === 0, browser.complaints.join("\n"));
  await browser.evaluate(`document.querySelector("#receipt").value = "{}"`);
  await browser.click("Take in");
  await browser.has("[data-state=refused]");
  checks.check("what is no receipt is refused", (await browser.text("[data-state=refused]")).startsWith("this is no quorate payment receipt"), await browser.text("[data-state=refused]"));
  await browser.click("Sign off");
  await browser.has("#token");
  checks.check("who signs off leaves no token", (await browser.evaluate("sessionStorage.length")) === 0);
}

try {
  await main(process.argv.slice(2));
} catch (failure) {
  checks.fail(failure);
} finally {
  processes.forEach((one) => one.kill("SIGKILL"));
  await Promise.all(processes.map((one) => one.exitCode ?? one.signalCode ?? new Promise((done) => one.once("exit", done))));
  await removed(folder);
}
checks.end();
