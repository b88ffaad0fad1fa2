// Uniswap's second version, its code as it is published, by ethers 6's own estimates: two traders swap at the same time, so that
// what one estimates is not what it meets.
import { strict as assert } from "node:assert";
import { after, test } from "node:test";
import { parseEther } from "ethers";
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
});
