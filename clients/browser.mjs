// The headless Chromium that pages are checked in: $CHROMIUM, or the first found in the PATH.

import { spawn } from "node:child_process";
import { accessSync, constants, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";

const WAIT = 90_000; // Milliseconds for what must come; how soon it comes is not checked.
export const PHONE = { width: 390, height: 844, deviceScaleFactor: 2, mobile: true };
export const DESKTOP = { width: 1280, height: 860, deviceScaleFactor: 1, mobile: false };

const BROWSERS = ["chromium", "chromium-browser", "google-chrome"];

/** What keeps a check from beginning. */
export class Unusable extends Error {}

function executable(path) {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

export function findBrowser() {
  if (process.env.CHROMIUM) return process.env.CHROMIUM;
  const places = BROWSERS.flatMap((name) => (process.env.PATH ?? "").split(delimiter).map((folder) => join(folder, name)));
  const found = places.find(executable);
  if (!found) throw new Unusable(`no browser: set CHROMIUM, or put one of ${BROWSERS.join(", ")} into the PATH`);
  return found;
}

/** Options of every run. Root has no sandbox. */
export function options(profile) {
  const sandbox = process.getuid?.() === 0 ? ["--no-sandbox"] : [];
  return [...sandbox, "--headless", "--disable-gpu", "--hide-scrollbars", `--user-data-dir=${profile}`];
}

/** Checks by name; the end says how many passed. */
export class Checks {
  passed = 0;
  failed = 0;

  check(name, holds, seen = "") {
    if (holds) this.passed += 1;
    else this.failed += 1;
    console.log(holds ? `ok      ${name}` : `FAILED  ${name}${seen === "" ? "" : `: the page says “${seen}”`}`);
  }

  fail(failure) {
    this.failed += 1;
    console.log(`FAILED  ${failure instanceof Unusable ? failure.message : failure.stack}`);
  }

  end() {
    console.log(`${this.passed} passed, ${this.failed} failed`);
    process.exitCode = this.failed === 0 ? 0 : 1;
  }
}

/** Waits until `look` finds something. */
export async function until(what, look) {
  for (const end = Date.now() + WAIT; Date.now() < end; await new Promise((done) => setTimeout(done, 100))) {
    const found = await look();
    if (found) return found;
  }
  throw new Error(`waited in vain for ${what}`);
}

/** Removes a browser's folder. Its processes outlive the one that was started by a moment, in which they may still write. */
export function removed(folder) {
  return until(`${folder} to be let go`, () => {
    try {
      rmSync(folder, { recursive: true, force: true });
      return true;
    } catch (failure) {
      if (failure.code !== "ENOTEMPTY") throw failure;
      return false;
    }
  });
}

// ---- The browser, over its pipe (Chrome DevTools Protocol).

/** A browser with one page. What its console says is kept, and where it asks. */
export class Browser {
  constructor(profile) {
    const given = [...options(profile), "--remote-debugging-pipe"];
    this.process = spawn(findBrowser(), given, { stdio: ["ignore", "ignore", "ignore", "pipe", "pipe"] });
    this.waiting = new Map();
    this.complaints = [];
    this.asked = [];
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
    if (method === "Runtime.consoleAPICalled" && params.type === "error") this.complaints.push(JSON.stringify(params.args));
    if (method === "Network.requestWillBeSent") this.asked.push(params.request.url);
    if (method === "Runtime.bindingCalled") this.onBinding?.(params);
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
    for (const domain of ["Page", "Runtime", "Log", "Network"]) await this.send(`${domain}.enable`);
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

  press(key) {
    return this.send("Input.dispatchKeyEvent", { type: "keyDown", key, code: key });
  }

  resize(size) {
    return this.send("Emulation.setDeviceMetricsOverride", size);
  }

  async photograph(file, size, scheme) {
    await this.resize(size);
    await this.send("Emulation.setEmulatedMedia", { features: [{ name: "prefers-color-scheme", value: scheme }] });
    await new Promise((done) => setTimeout(done, 300));
    const { data } = await this.send("Page.captureScreenshot", { captureBeyondViewport: size.mobile });
    writeFileSync(file, Buffer.from(data, "base64"));
  }

  /** Pictures of each of these sizes by name, light and dark. */
  async photographAll(path, sizes) {
    for (const [name, size] of Object.entries(sizes)) for (const scheme of ["light", "dark"]) await this.photograph(`${path}-${name}-${scheme}.png`, size, scheme);
  }
}
