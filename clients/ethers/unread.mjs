// What a validator keeps for a WebSocket that asks for much and reads nothing for a while.
//
//   QUORATE_WS=… VALIDATOR=<process id> node unread.mjs [--calls 200] [--hashes 4000] [--subscriptions 0] [--seconds 10]
//
// With subscriptions it asks for all logs so often, and has blocks of 4 MB of them written.
//
// Each call is answered with 2 MB, and each hash is asked for with 20 KB. Says how much memory the validator took meanwhile, how
// much was not taken from the client, and whether all is answered once it reads. It judges nothing: what is good enough is in
// docs/results/evm.md.
import { parseArgs } from "node:util";
import { WebSocketProvider } from "ethers";
import { memory, nap, ws } from "../environment.mjs";
import { provider, sender } from "./ledger.mjs";

/** RETURN of a million zeroes, and where the calls find it. */
const ZEROES = "0x620f42405ff3";
const TO = "0x00000000000000000000000000000000000000aa";

const { values } = parseArgs({
  options: {
    calls: { type: "string", default: "200" },
    hashes: { type: "string", default: "4000" },
    subscriptions: { type: "string", default: "0" },
    seconds: { type: "string", default: "10" },
  },
});
const [calls, hashes, subscriptions, seconds] = [values.calls, values.hashes, values.subscriptions, values.seconds].map(Number);

/** Deploys code that logs its 60 kB of memory, and how often a block of the ledger has it called. */
const LOGGER = "0x6461ea605fa05f526005601bf3";
const LOGS = 70;
const BLOCKS = 3;

/** Writes logs into blocks of their own. */
async function log() {
  const deployed = await sender.sendTransaction({ data: LOGGER, gasLimit: 200_000 });
  const { contractAddress: to } = await deployed.wait();
  for (let block = 0; block < BLOCKS; block += 1) {
    let nonce = await provider.getTransactionCount(sender.address);
    const one = () => sender.sendTransaction({ to, gasLimit: 520_000n, nonce: nonce++ });
    const sent = await Promise.all(Array.from({ length: LOGS }, one));
    await sent.at(-1).wait();
  }
}

const reader = new WebSocketProvider(ws());
await reader.getNetwork();
const { websocket: socket } = reader;
for (let topic = 0; topic < subscriptions; topic += 1) await reader.send("eth_subscribe", ["logs", {}]);
const before = memory();
let [answered, refused, told] = [0, 0, 0];
const all = new Promise((resolve, reject) => {
  socket.onclose = () => reject(new Error("the connection was cut: it took nothing for too long"));
  socket.onmessage = ({ data }) => {
    const answer = JSON.parse(data);
    answered += Number("id" in answer);
    refused += Number("error" in answer);
    told += Number(answer.method === "eth_subscription");
    if (answered === calls + hashes && told >= subscriptions * LOGS * BLOCKS) resolve();
  };
});
socket.pause();
const ask = (id, method, params) => socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
for (let id = 0; id < calls; id += 1) ask(id, "eth_call", [{ to: TO }, "latest", { [TO]: { code: ZEROES } }]);
for (let id = calls; id < calls + hashes; id += 1) ask(id, "web3_sha3", [`0x${"00".repeat(10_000)}`]);
if (subscriptions > 0) await log();
let most = 0;
for (let looks = 0; looks < seconds * 10; looks += 1) {
  await nap(100);
  most = Math.max(most, memory());
}
console.log(`${before} -> ${most} MiB while nothing is read, ${socket.bufferedAmount >> 20} MiB not taken`);
socket.resume();
await all;
console.log(`${answered} answered, ${refused} of them with an error, ${told} logs told; ${memory()} MiB then`);
process.exit();
