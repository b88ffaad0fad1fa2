// What callers that mean no good cost the others: a ledger is filled with large logs, which many then ask for at once. With
// --proofs they ask for proofs of two hundred slots at blocks of the last minute instead, and no logs are written.
//
//   QUORATE_RPC=… QUORATE_KEYS=… VALIDATOR=<process id> node abuse.mjs [--logs 17000] [--proofs] [--callers 64] [--seconds 20]
//
// Says how much memory the validator takes, and how long balances, the chain's id and transactions of others take meanwhile.
// It judges nothing: what is good enough is in docs/results/evm.md.
import { parseArgs } from "node:util";
import { Worker, isMainThread, parentPort, workerData } from "node:worker_threads";
import { memory, nap } from "../environment.mjs";
import { provider, sender, idler } from "./ledger.mjs";

/** Deploys code that logs its 60 kB of memory. */
const LOGGER = "0x6461ea605fa05f526005601bf3";

/** Transactions that are under way at once. */
const LOT = 100;

/** Pauses of callers that mean well, and between two questions for the same thing, in milliseconds. */
const PAUSE = 10;
const POLL = 20;

/** Slots of a proof, the most that there may be, and blocks before the newest of which one is asked for. */
const SLOTS = 200;
const DEPTH = 60;

const { values } = parseArgs({
  options: {
    logs: { type: "string", default: "17000" },
    proofs: { type: "boolean", default: false },
    callers: { type: "string", default: "64" },
    seconds: { type: "string", default: "20" },
  },
});
const [logs, callers, seconds] = [values.logs, values.callers, values.seconds].map(Number);

/** An answer as text, and not read: reading it would take this process's time, of which others are measured. */
async function ask(method, params) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method, params });
  const answer = await fetch(process.env.QUORATE_RPC, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body,
  });
  return answer.text();
}

async function result(method, params) {
  return JSON.parse(await ask(method, params)).result;
}

function quantile(times, part) {
  const sorted = times.toSorted((one, other) => one - other);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))]?.toFixed(1);
}

function hex(number) {
  return `0x${number.toString(16)}`;
}

async function signed(wallet, transaction, nonce) {
  const { chainId } = await provider.getNetwork();
  return wallet.signTransaction({ type: 0, gasPrice: 1n, chainId, nonce, ...transaction });
}

async function executed(address, nonce) {
  while (Number(await result("eth_getTransactionCount", [address, "latest"])) < nonce) await nap(POLL);
}

/** Fills the ledger; gives the first block and the last. */
async function fill() {
  const deployed = await sender.sendTransaction({ data: LOGGER, gasLimit: 200_000 });
  const { contractAddress: to } = await deployed.wait();
  const first = await provider.getBlockNumber();
  const from = await provider.getTransactionCount(sender.address);
  for (let sent = 0; sent < logs; sent += LOT) {
    const lot = Array.from({ length: Math.min(LOT, logs - sent) }, async (_, index) => {
      const raw = await signed(sender, { to, gasLimit: 520_000n }, from + sent + index);
      return ask("eth_sendRawTransaction", [raw]);
    });
    const refused = (await Promise.all(lot)).find((answer) => answer.includes('"error"'));
    if (refused) throw new Error(refused);
    await executed(sender.address, from + sent);
  }
  await executed(sender.address, from + logs);
  return [first, await provider.getBlockNumber()];
}

const seen = { memory: 0, balances: [], ids: [], transactions: [] };

/** What runs on a thread of its own, for what it reads would hold up those who are measured. */
async function abuseTogether({ range, end }) {
  const counts = { answers: 0, refused: 0, bytes: 0 };
  await Promise.all(Array.from({ length: callers }, () => abuse(range, () => Date.now() > end, counts)));
  parentPort.postMessage(counts);
}

const random = (below) => Math.floor(Math.random() * below);

function askForLogs([first, last]) {
  const from = first + random(last - first);
  const to = Math.random() < 0.5 ? from + 1 : last;
  return ask("eth_getLogs", [{ fromBlock: hex(from), toBlock: hex(to) }]);
}

async function askForProofs() {
  const newest = Number(await result("eth_blockNumber", []));
  const slots = Array.from({ length: SLOTS }, () => hex(random(2 ** 48)));
  return ask("eth_getProof", [sender.address, slots, hex(Math.max(1, newest - random(DEPTH)))]);
}

async function abuse(range, isOver, counts) {
  while (!isOver()) {
    const answer = await (range ? askForLogs(range) : askForProofs());
    counts.answers += 1;
    counts.refused += Number(answer.startsWith('{"jsonrpc":"2.0","id":1,"error"'));
    counts.bytes += answer.length;
  }
}

async function measure(times, work, isOver) {
  while (!isOver()) {
    const began = performance.now();
    await work();
    times.push(performance.now() - began);
    await nap(PAUSE);
  }
}

async function others(isOver) {
  let nonce = await provider.getTransactionCount(idler.address);
  const balance = () => ask("eth_getBalance", [idler.address, "latest"]);
  const transaction = async () => {
    const raw = await signed(idler, { to: sender.address, value: 1n, gasLimit: 21_000n }, nonce);
    await ask("eth_sendRawTransaction", [raw]);
    nonce += 1;
    await executed(idler.address, nonce);
  };
  await Promise.all([
    measure(seen.balances, balance, isOver),
    measure(seen.ids, () => ask("eth_chainId", []), isOver),
    measure(seen.transactions, transaction, isOver),
  ]);
}

async function watch(isOver) {
  while (!isOver()) {
    seen.memory = Math.max(seen.memory, memory());
    await nap(POLL);
  }
}

function told(name, times) {
  return `${name}: p50 ${quantile(times, 0.5)}, p99 ${quantile(times, 0.99)} ms of ${times.length}`;
}

async function main() {
  const range = values.proofs ? null : await fill();
  console.log(range ? `${logs} logs of 60 kB in blocks ${range.join(" to ")}; ${memory()} MiB` : `${memory()} MiB`);
  const end = Date.now() + 1_000 * seconds;
  const isOver = () => Date.now() > end;
  const argv = ["--callers", String(callers)];
  const worker = new Worker(new URL(import.meta.url), { argv, workerData: { range, end } });
  const abused = new Promise((resolve, reject) => worker.once("message", resolve).once("error", reject));
  const [{ answers, refused, bytes }] = await Promise.all([abused, others(isOver), watch(isOver)]);
  const mebibytes = Math.round(bytes / 2 ** 20);
  console.log(`${callers} callers: ${answers} answers, ${refused} refused, ${mebibytes} MiB`);
  console.log(told("eth_getBalance", seen.balances));
  console.log(told("eth_chainId", seen.ids));
  console.log(told("transactions until executed", seen.transactions));
  console.log(`at most ${seen.memory} MiB`);
}

await (isMainThread ? main() : abuseTogether(workerData));
provider.destroy();
