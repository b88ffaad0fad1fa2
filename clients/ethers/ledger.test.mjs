// What ethers 6 finds when it works with a ledger, one call after the other as its documentation has them: no gas limits, no
// nonces, no other caches or intervals than its own.
import { strict as assert } from "node:assert";
import { after, test } from "node:test";
import { Transaction, Wallet, WebSocketProvider, isCallException } from "ethers";
import { ws } from "../environment.mjs";
import { deploy, idler, keyless, provider, sender } from "./ledger.mjs";

/** Clients that send while nobody else does. */
const CONFIRMATIONS = 3;
const SENDS = 100;

// Else its timers keep the process alive.
after(() => provider.destroy());

/** Its code returns TIMESTAMP and NUMBER as two words. */
const CLOCK = "0x425f5243602052" + "60405ff3";

function stranger() {
  return Wallet.createRandom().address;
}

async function clock(blockTag) {
  const words = await provider.call({ data: CLOCK, blockTag });
  return [Number(BigInt(words.slice(0, 66))), Number(BigInt(`0x${words.slice(66)}`))];
}

test("a hundred transfers, one after the other", async () => {
  const to = stranger();
  const blocks = [];
  for (let sent = 0; sent < SENDS; sent += 1) {
    const receipt = await (await sender.sendTransaction({ to, value: 1n })).wait();
    assert.equal(receipt.status, 1);
    blocks.push(receipt.blockNumber);
  }
  assert.equal(await provider.getBalance(to), BigInt(SENDS));
  // Long after: what it was then, and before.
  assert.equal(await provider.getBalance(to, blocks[0] - 1), 0n);
  for (const [index, block] of blocks.entries()) {
    assert.equal(await provider.getBalance(to, block), BigInt(index + 1), `at ${block}`);
  }
});

test("a receipt is there as soon as it is asked for", async () => {
  for (let sent = 0; sent < 5; sent += 1) {
    const { hash } = await sender.sendTransaction({ to: stranger(), value: 1n });
    assert.ok(await provider.getTransactionReceipt(hash), "hardhat's matchers ask once");
  }
});

test("confirmations come though nobody sends", async () => {
  const transaction = await idler.sendTransaction({ to: stranger(), value: 1n });
  const receipt = await transaction.wait(CONFIRMATIONS);
  assert.ok((await receipt.confirmations()) >= CONFIRMATIONS);
});

test("a plain transfer is estimated at what it costs", async () => {
  assert.equal(await provider.estimateGas({ from: idler.address, to: stranger(), value: 1n }), 21_000n);
});

test("calls see the block that would come now, and past ones their own", async () => {
  const newest = await provider.getBlock("latest");
  const began = Math.floor(Date.now() / 1_000);
  const [time, number] = await clock("latest");
  assert.ok(time >= began, `${time} is over by ${began}`);
  assert.ok(number > newest.number);
  assert.deepEqual(await clock(newest.number), [newest.timestamp, newest.number]);
});

test("a call takes for granted what it is told", async () => {
  const { address } = Wallet.createRandom();
  const call = { from: address, to: stranger(), value: "0x5" };
  await assert.rejects(provider.send("eth_call", [call, "latest"]), isCallException);
  assert.equal(await provider.send("eth_call", [call, "latest", { [address]: { balance: "0x5" } }]), "0x");
  // CALLER's balance, and the block's number.
  const code = "0x33315f52" + "43602052" + "60405ff3";
  const to = stranger();
  const accounts = { [to]: { code }, [address]: { balance: "0x7" } };
  const words = await provider.send("eth_call", [{ from: address, to }, "latest", accounts, { number: "0x9" }]);
  assert.deepEqual([words.slice(0, 66), words.slice(66)].map((word) => Number.parseInt(word.slice(-8), 16)), [7, 9]);
});

for (const { name, address, transaction } of keyless) {
  test(`${name} is deployed by its keyless transaction`, async () => {
    const { from, gasLimit, gasPrice } = Transaction.from(transaction);
    await (await idler.sendTransaction({ to: from, value: gasLimit * gasPrice })).wait();
    // On a ledger that runs for long somebody has done so before.
    if ((await provider.getCode(address)) === "0x") {
      const receipt = await (await provider.broadcastTransaction(transaction)).wait();
      assert.equal(receipt.contractAddress, address);
    }
    assert.notEqual(await provider.getCode(address), "0x");
  });
}

test("who has nothing, or too little, is told so", async () => {
  const poor = Wallet.createRandom(provider);
  const failed = (promise) => promise.then(() => assert.fail("it succeeded"), (error) => error);
  const error = await failed(poor.sendTransaction({ to: stranger(), value: 1n }));
  assert.equal(error.code, "INSUFFICIENT_FUNDS", error.message);
  const token = await deploy(idler, "Token", "Quorate", "QRT", 1n);
  const reverted = await failed(token.connect(idler).transfer(stranger(), 2n));
  assert.ok(isCallException(reverted), reverted.message);
  assert.equal(token.interface.parseError(reverted.data).name, "InsufficientBalance");
});

// Its answers are more than buffers hold, and so is what it asks besides: what nobody reads is not computed, and what is not
// computed is not read.
test("who reads late is answered late, and whole", async () => {
  const [large, small, zeroes] = [60, 4_000, 1_000_000];
  const reader = new WebSocketProvider(ws());
  await reader.getNetwork();
  const { websocket: socket } = reader;
  const answers = new Map();
  const all = new Promise((resolve, reject) => {
    socket.onclose = reject;
    socket.onmessage = ({ data }) => {
      const { id, result } = JSON.parse(data);
      answers.set(id, result.length);
      if (answers.size === large + small) resolve();
    };
  });
  socket.pause();
  const ask = (id, method, params) => socket.send(JSON.stringify({ jsonrpc: "2.0", id, method, params }));
  const to = stranger();
  // RETURN of a million zeroes.
  const code = { [to]: { code: "0x620f42405ff3" } };
  for (let id = 0; id < large; id += 1) ask(id, "eth_call", [{ to }, "latest", code]);
  for (let id = large; id < large + small; id += 1) ask(id, "web3_sha3", [`0x${"00".repeat(5_000)}`]);
  // Not long: a connection that takes nothing for seconds is cut.
  await (await sender.sendTransaction({ to: stranger(), value: 1n })).wait();
  assert.ok(socket.bufferedAmount > 0, "not all of it is taken from who does not read");
  socket.resume();
  await all;
  for (const [id, length] of answers) assert.equal(length, id < large ? 2 + 2 * zeroes : 66);
  socket.onclose = null;
  await reader.destroy();
});
