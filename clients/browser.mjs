// The headless Chromium that pages are checked in: $CHROMIUM, or the first found in the PATH.

import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";

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
