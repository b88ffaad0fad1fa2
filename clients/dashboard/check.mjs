// Checks the dashboard of a validator in a headless Chromium, over seven validators and a learner of real processes, under load:
// members are killed, paused and brought back, and so is the validator whose page it is.
//
//   QUORATE=target/release/quorate node clients/dashboard/check.mjs [--screenshots FOLDER [SECONDS]]
//
// Screenshots are taken after so many seconds of load (20) and again with one member killed and one paused. It takes sixteen ports
// from $BASE_PORT on, 21480 by default.

import { execFileSync, spawn } from "node:child_process";
import { mkdirSync, mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Browser, Checks, PHONE, Unusable, removed, until } from "../browser.mjs";

const QUORATE = process.env.QUORATE ?? "target/release/quorate";
const PORT = process.env.BASE_PORT ?? "21480";
const [KILLED, PAUSED, THIRD] = [6, 5, 4]; // Two of seven are as many as may be away.
const DESKTOP = { width: 1440, height: 900, deviceScaleFactor: 1, mobile: false };
const WHOLE = { ...DESKTOP, height: 1230 };
const NARROW = { width: 360, height: 740, deviceScaleFactor: 2, mobile: true };

const folder = mkdtempSync(join(tmpdir(), "quorate-dashboard-"));
const at = (name) => join(folder, name);
const processes = [];
let ended = false;
const checks = new Checks();
const check = checks.check.bind(checks);

// ---- The committee and its load.

function begin(...given) {
  const started = spawn(QUORATE, given, { stdio: "ignore" });
  processes.push(started);
  return started;
}

function committee() {
  const asked = ["testnet", at("net"), "-n", "7", "--learners", "1", "--service", "kv", "--durability", "os", "--base-port", PORT, "--json"];
  try {
    return JSON.parse(execFileSync(QUORATE, asked, { encoding: "utf8" }));
  } catch (failure) {
    throw new Unusable(`quorate ${asked.join(" ")}: ${failure.stderr ?? failure.message}`);
  }
}

/** Puts values until the check ends, whatever times out meanwhile. */
function load() {
  const bench = begin("kv", "--net", at("net"), "bench", "--callers", "128", "--first", "1", "--duration", "600");
  bench.once("exit", () => ended || load());
}

const run = (config) => begin("run", "--config", config);

async function killed(validator) {
  validator.kill("SIGKILL");
  if (validator.exitCode === null && validator.signalCode === null) await new Promise((done) => validator.once("exit", done));
}

const statusOf = async (http) => (await fetch(`http://${http}/status`)).json();
const answers = (http) => fetch(`http://${http}/healthz`).then(({ ok }) => ok, () => false);

// ---- The page.

/** What the page says, asked for again until it is as wanted. */
class Page extends Browser {
  card(name) {
    return this.evaluate(`[...document.querySelectorAll(".card")].find((card) => card.querySelector("h2").textContent === ${JSON.stringify(name)})?.querySelector("b").textContent ?? ""`);
  }

  number(name) {
    return this.card(name).then((text) => (text === "" ? NaN : Number(text.replaceAll(",", ""))));
  }

  /** The state of a member, in the page's words. */
  member(id) {
    return this.text(`[data-member="${id}"] .state`);
  }

  alert(name) {
    return this.text(`[data-name="${name}"]`);
  }

  alerts() {
    return this.evaluate(`[...document.querySelectorAll("#alerts li")].map((item) => item.textContent).join("; ")`);
  }

  /** Points of the first chart. */
  points() {
    return this.evaluate(`(document.querySelector(".chart .line")?.getAttribute("d").match(/[ML]/g) ?? []).length`);
  }

  async shows(what, look, wanted) {
    let seen = "";
    const found = await until(what, async () => wanted((seen = await look()))).catch(() => false);
    check(what, found, seen);
  }
}

// ---- The checks.

async function checkWell(page, net) {
  const [http] = net.http;
  await page.shows("the page is live", () => page.text("#live"), (text) => text === "live");
  await page.shows("the validator is ready", () => page.text(".verdict"), (text) => text.startsWith("Ready") && text.includes("as seen by validator r0"));
  const { config } = await statusOf(http);
  const about = await page.text("#network");
  check("it names service, network and protocol", about.startsWith("kv on network ") && about.includes(config.network.slice(0, 10)) && about.includes("jolteon with ed25519"), about);
  await page.shows("operations go on", () => page.number("Operations a second"), (rate) => rate > 0);
  const before = (await statusOf(http)).decided;
  await page.shows("the height is the validator's", () => page.number("Height"), (height) => height >= before);
  const height = await page.number("Height");
  const after = (await statusOf(http)).decided;
  check("and not beyond it", height <= after, `${height}, and ${after} is decided`);
  for (const id of net.http.keys()) await page.shows(`member r${id} is up`, () => page.member(id), (text) => text === (id === 0 ? "this validator" : "up"));
  check("a member's address is shown", (await page.text('[data-member="3"]')).includes(`127.0.0.1:${Number(PORT) + 3}`), await page.text('[data-member="3"]'));
  await page.shows("there are no alerts", () => page.alerts(), (text) => text === "");
  await page.shows("charts are drawn", () => page.points(), (points) => points > 3);
  check("all of them", (await page.evaluate(`document.querySelectorAll(".chart svg .line").length`)) >= 12);
}

async function checkKeys(page) {
  await page.evaluate(`document.querySelector(".chart").focus()`);
  await page.press("ArrowLeft");
  await page.shows("an arrow key reads a chart", () => page.text("#cursor"), (text) => /^\d\d:\d\d:\d\d UTC, \d+ s ago$/.test(text));
  await page.press("Escape");
  await page.evaluate("document.activeElement.blur()");
  await page.shows("and Escape ends that", () => page.text("#cursor"), (text) => !text.includes("UTC"));
}

async function checkAway(page, validators) {
  await killed(validators[KILLED]);
  await page.shows("a killed member is named", () => page.member(KILLED), (text) => text.startsWith("down for"));
  await page.shows("with an alert", () => page.alert(`silent-r${KILLED}`), (text) => text.includes(`r${KILLED} is silent, and not connected`) && text.includes("start it"));
  await page.shows("its votes are missing", () => page.text(`[data-member="${KILLED}"] [data-label=Votes]`), (text) => text.startsWith("0 of"));
  check("what is left is a quorum and more", (await page.alert("quorum-at-risk")) === "", await page.alert("quorum-at-risk"));
  validators[PAUSED].kill("SIGSTOP");
  await page.shows("a paused member is named otherwise", () => page.member(PAUSED), (text) => text.startsWith("silent for"));
  await page.shows("with an alert", () => page.alert(`silent-r${PAUSED}`), (text) => text.includes("though it is connected"));
  await page.shows("the quorum is at risk", () => page.alert("quorum-at-risk"), (text) => text.includes("5 of 7 are heard, 5 are needed"));
  await page.shows("the title says so", () => page.evaluate("document.title"), (text) => /^▲ \d alerts/.test(text));
  await page.shows("and operations go on", () => page.number("Operations a second"), (rate) => rate > 0);
}

async function checkNoQuorum(page, validators) {
  validators[THIRD].kill("SIGSTOP");
  await page.shows("with a third away there is no quorum", () => page.alert("no-quorum"), (text) => text.startsWith("Critical") && text.includes("heard 4 of 7, 5 needed"));
  check("it is said before all else", (await page.text("#alerts li .state")) === "Critical", await page.alerts());
  check("the validator is not ready", (await page.text(".verdict")).startsWith("Not ready"), await page.text(".verdict"));
  validators[THIRD].kill("SIGCONT");
  await page.shows("a quorum is back", () => page.alert("no-quorum"), (text) => text === "");
}

async function checkBack(page, validators, net) {
  validators[PAUSED].kill("SIGCONT");
  validators[KILLED] = run(net.configs[KILLED]);
  for (const id of [KILLED, PAUSED]) await page.shows(`member r${id} is back`, () => page.member(id), (text) => text === "up");
  await page.shows("all alerts are over", () => page.alerts(), (text) => text === "");
}

async function checkRestart(page, validators, net) {
  const before = await page.points();
  validators[0].kill("SIGSTOP");
  await page.shows("a page whose validator is paused says so", () => page.text("#live"), (text) => text === "not connected");
  validators[0].kill("SIGCONT");
  await page.shows("and goes on with it", () => page.text("#live"), (text) => text === "live");
  await killed(validators[0]);
  await page.shows("a page without its validator says so", () => page.text("#trouble"), (text) => text.startsWith("Not connected since 2"));
  check("beside what it still shows", (await page.number("Height")) > 0);
  validators[0] = run(net.configs[0]);
  await page.shows("it connects again", () => page.text("#live"), (text) => text === "live");
  await page.shows("and takes the warning back", () => page.evaluate(`document.querySelector("#trouble").hidden`), (hidden) => hidden);
  await page.shows("and keeps what it saw", () => page.points(), (points) => points >= before);
}

async function checkLearner(page, config) {
  const learner = run(config);
  const http = `127.0.0.1:${Number(PORT) + 15}`;
  await until("the learner", () => answers(http));
  await page.open(`http://${http}/`);
  await page.shows("a learner's page says what it is", () => page.text(".verdict"), (text) => text.includes("a learner"));
  await page.shows("it sees members", () => page.member(2), (text) => text === "up");
  await killed(learner);
}

async function main([option, photographs, seconds = "20"]) {
  if (option !== undefined && (option !== "--screenshots" || !photographs || !(Number(seconds) >= 0))) throw new Unusable("usage: check.mjs [--screenshots FOLDER [SECONDS]]");
  const net = committee();
  const validators = net.configs.map(run);
  await Promise.all(net.http.map((http) => until(`validator ${http}`, () => answers(http))));
  load();
  const page = new Page(at("profile"));
  processes.push(page.process);
  const photograph = async (name) => {
    if (!photographs) return;
    mkdirSync(photographs, { recursive: true });
    await page.photographAll(join(photographs, name), { phone: PHONE, desktop: DESKTOP, whole: WHOLE });
  };

  await page.open(`http://${net.http[0]}/`);
  await checkWell(page, net);
  if (photographs) await new Promise((done) => setTimeout(done, Number(seconds) * 1000));
  await photograph("well");
  await page.resize(DESKTOP);
  await checkKeys(page);
  await checkAway(page, validators);
  await photograph("away");
  await page.resize(NARROW);
  await page.shows("nothing is wider than a phone", () => page.evaluate("document.documentElement.scrollWidth"), (width) => width <= NARROW.width);
  await page.resize(DESKTOP);
  await checkNoQuorum(page, validators);
  await checkBack(page, validators, net);
  check("the page did not complain to the console", page.complaints.length === 0, page.complaints.join("\n"));
  await checkRestart(page, validators, net);
  const foreign = page.asked.filter((url) => !url.startsWith(`http://${net.http[0]}/`) && !url.startsWith("data:"));
  check("it asked nobody else", foreign.length === 0, foreign.join(", "));
  const serious = page.complaints.filter((complaint) => !complaint.includes('"source":"network"')); // Nobody was there to ask.
  check("nor about what it may not load", serious.length === 0, serious.join("\n"));
  await checkLearner(page, net.learners[0].config);
}

try {
  await main(process.argv.slice(2));
} catch (failure) {
  checks.fail(failure);
} finally {
  ended = true;
  processes.forEach((one) => one.kill("SIGKILL"));
  await Promise.all(processes.map((one) => one.exitCode ?? one.signalCode ?? new Promise((done) => one.once("exit", done))));
  await removed(folder);
}
checks.end();
