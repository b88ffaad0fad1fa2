// What a validator keeps for a WebSocket that asks for much and reads nothing for a while.
//
//   QUORATE_WS=… VALIDATOR=<process id> node unread.mjs [--calls 200] [--hashes 4000] [--seconds 10]
//
// Each call is answered with 2 MB, and each hash is asked for with 20 KB. Says how much memory the validator took meanwhile, how
// much was not taken from the client, and whether all is answered once it reads. It judges nothing: what is good enough is in
// docs/results/evm.md.
import { parseArgs } from "node:util";
import { WebSocketProvider } from "ethers";
import { memory, nap, ws } from "../environment.mjs";

/** RETURN of a million zeroes, and where the calls find it. */
const ZEROES = "0x620f42405ff3";
const TO = "0x00000000000000000000000000000000000000aa";

const { values } = parseArgs({
  options: {
    calls: { type: "string", default: "200" },
    hashes: { type: "string", default: "4000" },
    seconds: { type: "string", default: "10" },
  },
});
const [calls, hashes, seconds] = [values.calls, values.hashes, values.seconds].map(Number);

const reader = new WebSocketProvider(ws());
await reader.getNetwork();
const { websocket: socket } = reader;
const before = memory();
let [answered, refused] = [0, 0];
const all = new Promise((resolve, reject) => {
  socket.onclose = () => reject(new Error("the connection was cut: it took nothing for too long"));
  socket.onmessage = ({ data }) => {
    answered += 1;
    if ("error" in JSON.parse(data)) refused += 1;
    if (answered === calls + hashes) resolve();
  };
});
socket.pause();
const ask = (id, method, params) => socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
for (let id = 0; id < calls; id += 1) ask(id, "eth_call", [{ to: TO }, "latest", { [TO]: { code: ZEROES } }]);
for (let id = calls; id < calls + hashes; id += 1) ask(id, "web3_sha3", [`0x${"00".repeat(10_000)}`]);
let most = 0;
for (let looks = 0; looks < seconds * 10; looks += 1) {
  await nap(100);
  most = Math.max(most, memory());
}
console.log(`${before} -> ${most} MiB while nothing is read, ${socket.bufferedAmount >> 20} MiB not taken`);
socket.resume();
await all;
console.log(`${answered} answered, ${refused} of them with an error; ${memory()} MiB then`);
process.exit();
