// Checks the page of a till in a headless Chromium, over a payment network of real processes: an amount is typed, the
// request is paid by another wallet, whoever brings the receipt has no token, and the page says that it is paid.
//
//   QUORATE=target/release/quorate node clients/till/check.mjs [--screenshots FOLDER]
//
// It takes nine ports from $BASE_PORT on, 21440 by default.

import { execFile, spawn } from "node:child_process";
import { copyFileSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Checks, Unusable, findBrowser, options } from "../browser.mjs";

const QUORATE = process.env.QUORATE ?? "target/release/quorate";
const PORT = Number(process.env.BASE_PORT ?? 21440);
const TILL = `http://127.0.0.1:${PORT + 8}`;
const WAIT = 60_000; // Milliseconds for what must come; how soon it comes is not checked.
const PHONE = { width: 390, height: 844, deviceScaleFactor: 2, mobile: true };
const DESKTOP = { width: 1280, height: 860, deviceScaleFactor: 1, mobile: false };

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

async function until(what, look) {
  for (const end = Date.now() + WAIT; Date.now() < end; await new Promise((done) => setTimeout(done, 100))) {
    const found = await look();
    if (found) return found;
  }
  throw new Error(`waited in vain for ${what}`);
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

// ---- The browser, over its pipe (Chrome DevTools Protocol).

class Browser {
  constructor() {
    const given = [...options(at("profile")), "--remote-debugging-pipe"];
    this.process = spawn(findBrowser(), given, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    processes.push(this.process);
    this.waiting = new Map();
    this.complaints = [];
    this.sent = 0;
    let rest = "";
    this.process.stdio[4].setEncoding("utf8").on("data", (text) => {
      const messages = (rest + text).split("\0");
      rest = messages.pop();
      messages.forEach((message) => this.take(JSON.parse(message)));
    });
  }

  take({ id, result, error, method, params }) {
    if (method === "Runtime.exceptionThrown" || method === "Log.entryAdded") this.complaints.push(JSON.stringify(params));
    const caller = this.waiting.get(id);
    this.waiting.delete(id);
    if (error) caller?.reject(new Error(error.message));
    else caller?.resolve(result);
  }

  send(method, params = {}) {
    const id = (this.sent += 1);
    this.process.stdio[3].write(`${JSON.stringify({ id, method, params, sessionId: this.session })}\0`);
    return new Promise((resolve, reject) => this.waiting.set(id, { resolve, reject }));
  }

  async open(url) {
    const { targetId } = await this.send("Target.createTarget", { url: "about:blank" });
    const { sessionId } = await this.send("Target.attachToTarget", { targetId, flatten: true });
    this.session = sessionId;
    for (const domain of ["Page", "Runtime", "Log"]) await this.send(`${domain}.enable`);
    await this.send("Page.navigate", { url });
  }

  async evaluate(expression) {
    const { result, exceptionDetails } = await this.send("Runtime.evaluate", { expression, awaitPromise: true, returnByValue: true });
    if (exceptionDetails) throw new Error(`${expression}: ${exceptionDetails.exception?.description}`);
    return result.value;
  }

  has(selector) {
    return until(selector, () => this.evaluate(`!!document.querySelector(${JSON.stringify(selector)})`));
  }

  text(selector) {
    return this.evaluate(`document.querySelector(${JSON.stringify(selector)})?.textContent ?? ""`);
  }

  /** Types as a person does, key by key. */
  async type(selector, text) {
    await this.has(selector);
    await this.evaluate(`document.querySelector(${JSON.stringify(selector)}).focus()`);
    await this.send("Input.insertText", { text });
  }

  click(text) {
    return this.evaluate(`[...document.querySelectorAll("button")].find((one) => one.textContent === ${JSON.stringify(text)}).click()`);
  }

  async photograph(file, size, scheme) {
    await this.send("Emulation.setDeviceMetricsOverride", size);
    await this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
    await new Promise((done) => setTimeout(done, 300));
    const { data } = await this.send("Page.captureScreenshot", { captureBeyondViewport: size.mobile });
    writeFileSync(file, Buffer.from(data, "base64"));
  }
}

// ---- The checks.

async function main([option, photographs]) {
  if (option !== undefined && (option !== "--screenshots" || !photographs)) throw new Unusable("usage: check.mjs [--screenshots FOLDER]");
  if (photographs) mkdirSync(photographs, { recursive: true });
  const token = await shop();
  const browser = new Browser();
  const photograph = async (name) => {
    if (!photographs) return;
    for (const [width, size] of [["phone", PHONE], ["desktop", DESKTOP]])
      for (const scheme of ["light", "dark"]) await browser.photograph(join(photographs, `${name}-${width}-${scheme}.png`), size, scheme);
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
  rmSync(folder, { recursive: true, force: true });
}
checks.end();
