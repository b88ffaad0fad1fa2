// Uniswap's second version, its code as it is published, by ethers 6's own estimates: two traders swap at the same time, so that
// what one estimates is not what it meets.
import { strict as assert } from "node:assert";
import { after, test } from "node:test";
import { parseEther, toQuantity } from "ethers";
import { deploy, provider, traders } from "./ledger.mjs";

const SWAPS = 200;

// Else its timers keep the process alive.
after(() => provider.destroy());

const until = () => Math.floor(Date.now() / 1_000) + 600;

async function mined(sent) {
  const receipt = await (await sent).wait();
  assert.equal(receipt.status, 1);
}

/** A token that both traders have, and let the router take. */
async function token(name, router) {
  const [first, second] = traders;
  const token = await deploy(first, "Token", name, name.toUpperCase(), parseEther("1000000"));
  await mined(token.transfer(second.address, parseEther("1000")));
  const allowed = traders.map((trader) => mined(token.connect(trader).approve(router, parseEther("1000000"))));
  await Promise.all(allowed);
  return token.getAddress();
}

async function swapOn(router, trader, path) {
  for (let swap = 0; swap < SWAPS / traders.length; swap += 1) {
    const way = swap % 2 === 0 ? path : path.toReversed();
    await mined(router.connect(trader).swapExactTokensForTokens(parseEther("1"), 0n, way, trader.address, until()));
  }
}

test(`${SWAPS} swaps, of which none is reverted`, async () => {
  const [first] = traders;
  const weth = await deploy(first, "WETH9");
  const factory = await deploy(first, "UniswapV2Factory", first.address);
  const router = await deploy(first, "UniswapV2Router02", await factory.getAddress(), await weth.getAddress());
  const place = await router.getAddress();
  const path = [await token("One", place), await token("Two", place)];
  const liquidity = parseEther("100000");
  await mined(router.connect(first).addLiquidity(...path, liquidity, liquidity, 0n, 0n, first.address, until()));
  await Promise.all(traders.map((trader, index) => swapOn(router, trader, index === 0 ? path : path.toReversed())));
  await traced(router, first, path);
});

/** One swap more, its trace, and the accounts that another would touch. */
async function traced(router, trader, path) {
  const place = await router.getAddress();
  const swap = [parseEther("1"), 0n, path, trader.address, until()];
  const receipt = await (await router.connect(trader).swapExactTokensForTokens(...swap)).wait();
  const options = { tracer: "callTracer", tracerConfig: { withLog: true } };
  const trace = await provider.send("debug_traceTransaction", [receipt.hash, options]);
  assert.equal(BigInt(trace.gasUsed), receipt.gasUsed);
  assert.equal(logsOf(trace), receipt.logs.length);
  const block = toQuantity(receipt.blockNumber);
  const all = await provider.send("debug_traceBlockByNumber", [block, options]);
  assert.deepEqual(all.find((one) => one.txHash === receipt.hash).result, trace);
  const flat = await provider.send("trace_transaction", [receipt.hash]);
  assert.equal(flat.length, framesOf(trace));
  assert.deepEqual(flat.find(({ traceAddress }) => traceAddress.length === 0).action.to, place.toLowerCase());
  const logs = await provider.send("debug_traceTransaction", [receipt.hash, { disableStack: true }]);
  assert.ok(logs.structLogs.some(({ op }) => op === "SSTORE"));
  const call = await router.swapExactTokensForTokens.populateTransaction(...swap);
  const request = { from: trader.address, to: place, data: call.data };
  const { accessList, error } = await provider.send("eth_createAccessList", [request, "latest"]);
  assert.equal(error, undefined);
  assert.deepEqual(path.filter((token) => accessList.some(({ address }) => address === token.toLowerCase())), path);
  const dry = await provider.send("debug_traceCall", [request, "latest", { tracer: "callTracer" }]);
  assert.equal(framesOf(dry), framesOf(trace));
}

const sum = (frames, of) => (frames ?? []).map(of).reduce((all, one) => all + one, 0);

function logsOf(frame) {
  return (frame.logs ?? []).length + sum(frame.calls, logsOf);
}

function framesOf(frame) {
  return 1 + sum(frame.calls, framesOf);
}
