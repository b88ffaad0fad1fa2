// What viem finds when it works with a ledger.
import { strict as assert } from "node:assert";
import { before, test } from "node:test";
import {
  BlockNotFoundError,
  ContractFunctionRevertedError,
  NonceTooLowError,
  TransactionNotFoundError,
  TransactionReceiptNotFoundError,
  createPublicClient,
  createWalletClient,
  encodeAbiParameters,
  encodeEventTopics,
  getAbiItem,
  getContractAddress,
  http,
  isAddressEqual,
  keccak256,
  numberToHex,
  pad,
  parseEventLogs,
  webSocket,
  zeroAddress,
  zeroHash,
} from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import {
  ETHER,
  GWEI,
  OTHER,
  RPC,
  SUPPLY,
  WS,
  chain,
  deploy,
  mined,
  other,
  owner,
  read,
  reader,
  wallet,
  write,
} from "./ledger.mjs";

const UNKNOWN = `0x${"cd".repeat(32)}`;

let token;
before(async () => {
  token = await deploy("Token", "Quorate", "QRT", SUPPLY);
});

/** The address of an account that nobody has used. */
function stranger() {
  return privateKeyToAccount(generatePrivateKey()).address;
}

function balance(address) {
  return reader.getBalance({ address });
}

function nonce(client, blockTag = "latest") {
  return reader.getTransactionCount({ address: client.account.address, blockTag });
}

/** A price that a transaction may offer however busy the next block is. */
async function enough() {
  return 2n * (await reader.getGasPrice()) + GWEI;
}

function events({ abi }, eventName, logs) {
  return parseEventLogs({ abi, eventName, logs });
}

function mappingSlot(key, slot) {
  return keccak256(encodeAbiParameters([{ type: "address" }, { type: "uint256" }], [key, slot]));
}

/** The contract's own error with which a promised call fails. */
async function revertOf(call) {
  const error = await call.then(
    () => assert.fail("the call did not revert"),
    (failure) => failure,
  );
  const revert = error.walk?.((cause) => cause instanceof ContractFunctionRevertedError);
  assert.ok(revert, `not a revert: ${error}`);
  return revert;
}

test("chain and client", async () => {
  assert.ok(chain.id > 0);
  assert.equal(await reader.request({ method: "net_version" }), String(chain.id));
  assert.match(await reader.request({ method: "web3_clientVersion" }), /\//);
});

test("balance and nonce", async () => {
  const address = stranger();
  assert.ok((await balance(owner.account.address)) > 10n * ETHER);
  assert.ok((await balance(other.account.address)) > 10n * ETHER);
  assert.equal(await balance(address), 0n);
  assert.equal(await reader.getTransactionCount({ address }), 0);
  assert.equal(await reader.getCode({ address }), undefined);
});

/** Sends `value` from the owner to a stranger and checks what every kind of transfer has in common. */
async function transferred(value, fields) {
  const to = stranger();
  const held = await balance(owner.account.address);
  const receipt = await mined(owner.sendTransaction({ to, value, ...fields }));
  const block = await reader.getBlock({ blockNumber: receipt.blockNumber });
  assert.equal(receipt.status, "success");
  assert.ok(isAddressEqual(receipt.from, owner.account.address));
  assert.ok(isAddressEqual(receipt.to, to));
  assert.equal(receipt.contractAddress, null);
  assert.deepEqual(receipt.logs, []);
  assert.equal(receipt.blockHash, block.hash);
  assert.equal(block.transactions[receipt.transactionIndex], receipt.transactionHash);
  assert.equal(await balance(to), value);
  const fee = receipt.gasUsed * receipt.effectiveGasPrice;
  assert.equal(await balance(owner.account.address), held - value - fee);
  return { receipt, block, found: await reader.getTransaction({ hash: receipt.transactionHash }) };
}

test("legacy transfer", async () => {
  const gasPrice = await enough();
  const { receipt, found } = await transferred(3n * GWEI, { type: "legacy", gasPrice });
  assert.equal(receipt.type, "legacy");
  assert.equal(receipt.gasUsed, 21_000n);
  assert.equal(receipt.effectiveGasPrice, gasPrice);
  assert.equal(found.type, "legacy");
  assert.equal(found.gasPrice, gasPrice);
  assert.equal(found.value, 3n * GWEI);
});

test("access list transfer", async () => {
  const gasPrice = await enough();
  const entry = { address: other.account.address.toLowerCase(), storageKeys: [pad("0x07")] };
  const { receipt, found } = await transferred(5n, { type: "eip2930", gasPrice, accessList: [entry] });
  assert.equal(receipt.type, "eip2930");
  assert.equal(receipt.gasUsed, 21_000n + 2_400n + 1_900n);
  assert.equal(receipt.effectiveGasPrice, gasPrice);
  assert.equal(found.type, "eip2930");
  assert.deepEqual(found.accessList, [entry]);
});

test("fee market transfer", async () => {
  const maxFeePerGas = await enough();
  const fees = { maxFeePerGas, maxPriorityFeePerGas: GWEI };
  const { receipt, block, found } = await transferred(7n, { type: "eip1559", ...fees });
  const offered = block.baseFeePerGas + GWEI;
  assert.equal(receipt.type, "eip1559");
  assert.equal(receipt.gasUsed, 21_000n);
  assert.equal(receipt.effectiveGasPrice, offered < maxFeePerGas ? offered : maxFeePerGas);
  assert.equal(found.type, "eip1559");
  assert.equal(found.maxFeePerGas, maxFeePerGas);
  assert.equal(found.maxPriorityFeePerGas, GWEI);
});

test("a transfer that the library fills in", async () => {
  const used = await nonce(owner);
  const { receipt, found } = await transferred(1n, {});
  assert.equal(receipt.gasUsed, 21_000n);
  assert.equal(found.nonce, used);
  assert.equal(await nonce(owner), used + 1);
  const { to: address } = receipt;
  assert.equal(await reader.getBalance({ address, blockNumber: receipt.blockNumber - 1n }), 0n);
  assert.equal(await reader.getBalance({ address, blockNumber: receipt.blockNumber }), 1n);
});

test("deploy", async () => {
  const from = owner.account.address;
  const next = BigInt(await nonce(owner, "pending"));
  const another = await deploy("Token", "Another", "ANO", SUPPLY);
  assert.equal(another.receipt.to, null);
  assert.ok(isAddressEqual(another.address, getContractAddress({ from, nonce: next })));
  assert.equal(await read(another, "name"), "Another");
  assert.equal(await read(another, "symbol"), "ANO");
  assert.equal(await read(another, "decimals"), 18);
  assert.equal(await read(another, "totalSupply"), SUPPLY);
  assert.equal(await read(another, "balanceOf", from), SUPPLY);
  const [minted, ...rest] = events(another, "Transfer", another.receipt.logs);
  assert.deepEqual(rest, []);
  assert.deepEqual(minted.args, { from: zeroAddress, to: from, value: SUPPLY });
});

test("token transfer and its log", async () => {
  const to = stranger();
  const from = owner.account.address;
  const held = await read(token, "balanceOf", from);
  const receipt = await write(owner, token, "transfer", [to, 42n]);
  assert.equal(receipt.status, "success");
  assert.equal(await read(token, "balanceOf", to), 42n);
  assert.equal(await read(token, "balanceOf", from), held - 42n);
  const [event, ...rest] = events(token, "Transfer", receipt.logs);
  assert.deepEqual(rest, []);
  assert.deepEqual(event.args, { from, to, value: 42n });
  assert.ok(isAddressEqual(event.address, token.address));
  assert.equal(event.transactionHash, receipt.transactionHash);
  assert.equal(event.blockNumber, receipt.blockNumber);
});

test("call at an earlier block", async () => {
  const to = stranger();
  const { blockNumber } = await write(owner, token, "transfer", [to, 9n]);
  const { abi, address } = token;
  const call = { abi, address, functionName: "balanceOf", args: [to] };
  assert.equal(await reader.readContract({ ...call, blockNumber: blockNumber - 1n }), 0n);
  assert.equal(await reader.readContract({ ...call, blockNumber }), 9n);
});

test("logs by address, topic and range", async () => {
  const to = stranger();
  const receipts = [];
  for (const value of [11n, 12n, 13n]) {
    receipts.push(await write(owner, token, "transfer", [to, value]));
  }
  await write(owner, token, "approve", [to, 1n]);
  const [first, second, third] = receipts.map((receipt) => receipt.blockNumber);
  const event = getAbiItem({ abi: token.abi, name: "Transfer" });
  const values = async (fields) => {
    const logs = await reader.getLogs({ address: token.address, event, args: { to }, ...fields });
    return logs.map((log) => log.args.value);
  };
  assert.deepEqual(await values({ fromBlock: first, toBlock: third }), [11n, 12n, 13n]);
  assert.deepEqual(await values({ fromBlock: second, toBlock: second }), [12n]);
  assert.deepEqual(await values({ fromBlock: third, toBlock: "latest" }), [13n]);
  assert.deepEqual(await values({ fromBlock: first, address: owner.account.address }), []);
  assert.deepEqual(await values({ blockHash: receipts[1].blockHash }), [12n]);
});

test("storage", async () => {
  const to = stranger();
  await write(owner, token, "transfer", [to, 77n]);
  const at = (slot) => reader.getStorageAt({ address: token.address, slot });
  assert.equal(await at(mappingSlot(to, 0n)), numberToHex(77n, { size: 32 }));
  assert.equal(await at(numberToHex(2)), numberToHex(SUPPLY, { size: 32 }));
  assert.equal(await at(numberToHex(1000)), zeroHash);
});

test("estimates suffice", async () => {
  const account = owner.account;
  const plain = await reader.estimateGas({ account, to: stranger(), value: 1n });
  assert.ok(plain >= 21_000n && plain < 22_000n);
  const args = [stranger(), 5n];
  const gas = await reader.estimateContractGas({ account, ...token, functionName: "transfer", args });
  assert.ok(gas > 21_000n);
  const receipt = await write(owner, token, "transfer", args, { gas });
  assert.equal(receipt.status, "success");
  assert.ok(receipt.gasUsed > 21_000n && receipt.gasUsed <= gas);
});

test("prices", async () => {
  const price = await reader.getGasPrice();
  const tip = await reader.estimateMaxPriorityFeePerGas();
  assert.ok(price >= tip && tip >= 0n);
  const fees = await reader.estimateFeesPerGas();
  assert.ok(fees.maxFeePerGas >= fees.maxPriorityFeePerGas);
});

test("fee history", async () => {
  const newest = await reader.getBlockNumber();
  const blockCount = newest < 3n ? Number(newest) + 1 : 4;
  const rewardPercentiles = [25, 75];
  const history = await reader.getFeeHistory({ blockCount, rewardPercentiles, blockNumber: newest });
  assert.equal(history.oldestBlock, newest + 1n - BigInt(blockCount));
  assert.equal(history.baseFeePerGas.length, blockCount + 1);
  assert.equal(history.gasUsedRatio.length, blockCount);
  assert.ok(history.gasUsedRatio.every((ratio) => ratio >= 0 && ratio <= 1));
  assert.deepEqual(history.reward.map((rewards) => rewards.length), Array(blockCount).fill(2));
  for (let place = 0; place < blockCount; place += 1) {
    const block = await reader.getBlock({ blockNumber: history.oldestBlock + BigInt(place) });
    assert.equal(history.baseFeePerGas[place], block.baseFeePerGas);
  }
});

test("blocks", async () => {
  const to = stranger();
  const receipt = await mined(owner.sendTransaction({ to, value: 1n }));
  const { blockNumber, transactionIndex: index } = receipt;
  const block = await reader.getBlock({ blockNumber, includeTransactions: true });
  const byHash = await reader.getBlock({ blockHash: block.hash, includeTransactions: true });
  assert.deepEqual(byHash, block);
  assert.equal(block.number, blockNumber);
  const parent = await reader.getBlock({ blockNumber: blockNumber - 1n });
  assert.equal(block.parentHash, parent.hash);
  assert.ok(block.timestamp >= parent.timestamp);
  assert.ok(receipt.gasUsed <= block.gasUsed && block.gasUsed <= block.gasLimit);
  const found = block.transactions[index];
  assert.deepEqual(found, await reader.getTransaction({ hash: receipt.transactionHash }));
  assert.deepEqual(found, await reader.getTransaction({ blockNumber, index }));
  assert.deepEqual(found, await reader.getTransaction({ blockHash: block.hash, index }));
  assert.ok(isAddressEqual(found.to, to));
  assert.equal(found.value, 1n);
  assert.equal(await reader.getBlockTransactionCount({ blockNumber }), block.transactions.length);
});

test("what is mined is final", async () => {
  const receipt = await mined(owner.sendTransaction({ to: stranger(), value: 1n }));
  const height = async (blockTag) => (await reader.getBlock({ blockTag })).number;
  const finalized = await height("finalized");
  const safe = await height("safe");
  const latest = await height("latest");
  assert.ok(receipt.blockNumber <= finalized);
  assert.ok(finalized <= safe && safe <= latest);
  assert.equal(await height("earliest"), 0n);
});

test("custom error", async () => {
  const account = stranger();
  const call = { ...token, account, functionName: "transfer", args: [owner.account.address, 1n] };
  for (const action of ["simulateContract", "estimateContractGas"]) {
    const { data } = await revertOf(reader[action](call));
    assert.equal(data.errorName, "InsufficientBalance");
    assert.deepEqual(data.args, [account, 0n, 1n]);
  }
});

test("revert with a string", async () => {
  const call = { ...token, account: owner.account, functionName: "transfer", args: [zeroAddress, 1n] };
  const revert = await revertOf(reader.simulateContract(call));
  assert.equal(revert.reason, "Token: transfer to the zero address");
});

test("a failing transaction is mined", async () => {
  const used = await nonce(owner);
  const args = [stranger(), owner.account.address, 1n];
  const receipt = await write(owner, token, "transferFrom", args, { gas: 100_000n });
  assert.equal(receipt.status, "reverted");
  assert.ok(receipt.gasUsed > 21_000n && receipt.gasUsed < 100_000n);
  assert.deepEqual(receipt.logs, []);
  assert.equal(await nonce(owner), used + 1);
});

function quote(amount, reserveIn, reserveOut) {
  return (amount * 997n * reserveOut) / (reserveIn * 1000n + amount * 997n);
}

async function run(sender, contract, functionName, ...args) {
  const receipt = await write(sender, contract, functionName, args);
  assert.equal(receipt.status, "success");
  return receipt;
}

test("exchange", async () => {
  const first = await deploy("Token", "First", "ONE", SUPPLY);
  const second = await deploy("Token", "Second", "TWO", SUPPLY);
  const exchange = await deploy("Exchange", first.address, second.address);
  const trader = other.account.address;

  await run(owner, first, "approve", exchange.address, SUPPLY);
  await run(owner, second, "approve", exchange.address, SUPPLY);
  const added = await run(owner, exchange, "addLiquidity", 1_000_000n, 4_000_000n);
  assert.deepEqual(
    events(exchange, "Liquidity", added.logs).map((event) => event.args),
    [{ provider: owner.account.address, amount0: 1_000_000n, amount1: 4_000_000n, shares: 1_999_000n }],
  );
  assert.deepEqual(await read(exchange, "reserves"), [1_000_000n, 4_000_000n]);

  await run(owner, first, "transfer", trader, 10_000n);
  await run(other, first, "approve", exchange.address, 10_000n);
  const amountOut = quote(10_000n, 1_000_000n, 4_000_000n);
  const swapped = await run(other, exchange, "swap", first.address, 10_000n, amountOut);
  const [swap] = events(exchange, "Swap", swapped.logs);
  assert.ok(isAddressEqual(swap.args.tokenIn, first.address));
  assert.deepEqual(swap.args, { trader, tokenIn: swap.args.tokenIn, amountIn: 10_000n, amountOut });
  assert.equal(swapped.logs.length, 3);
  const left = 4_000_000n - amountOut;
  assert.deepEqual(await read(exchange, "reserves"), [1_010_000n, left]);
  assert.equal(await read(second, "balanceOf", trader), amountOut);

  const greedy = { ...exchange, account: owner.account, functionName: "swap" };
  const refused = await revertOf(reader.simulateContract({ ...greedy, args: [second.address, 1_000n, 1_000n] }));
  assert.equal(refused.data.errorName, "InsufficientOutput");
  assert.deepEqual(refused.data.args, [quote(1_000n, left, 1_010_000n), 1_000n]);

  // A later deposit is taken at the pool's price: the shares rounded down, what they cost rounded up.
  const shares = (100_000n * 2_000_000n) / 1_010_000n;
  const more = await run(owner, exchange, "addLiquidity", 100_000n, SUPPLY / 2n);
  const cost = (reserve) => (shares * reserve + 1_999_999n) / 2_000_000n;
  const [amount0, amount1] = [cost(1_010_000n), cost(left)];
  const [deposit] = events(exchange, "Liquidity", more.logs);
  assert.deepEqual(deposit.args, { provider: owner.account.address, amount0, amount1, shares });

  await run(owner, exchange, "removeLiquidity", 1_000_000n);
  const rest = [1_010_000n + amount0, left + amount1].map(
    (reserve) => reserve - (reserve * 1_000_000n) / (2_000_000n + shares),
  );
  assert.deepEqual(await read(exchange, "reserves"), rest);
  assert.equal(await read(exchange, "sharesOf", owner.account.address), 999_000n + shares);
  assert.equal(await read(first, "balanceOf", exchange.address), rest[0]);
  assert.equal(await read(second, "balanceOf", exchange.address), rest[1]);
});

test("a used nonce is refused", async () => {
  const to = stranger();
  const used = await nonce(owner);
  await mined(owner.sendTransaction({ to, value: 1n }));
  await assert.rejects(owner.sendTransaction({ to, value: 2n, gas: 21_000n, nonce: used }), (error) =>
    Boolean(error.walk((cause) => cause instanceof NonceTooLowError)),
  );
  assert.equal(await balance(to), 1n);
});

test("more than the balance is refused", async () => {
  const poor = wallet(generatePrivateKey());
  const request = { to: stranger(), value: ETHER, gas: 21_000n, type: "legacy", gasPrice: await enough() };
  await assert.rejects(poor.sendTransaction(request), /funds/i);
});

test("three transactions back to back", async () => {
  const to = stranger();
  const next = await nonce(other, "pending");
  const sent = [];
  for (let count = 0; count < 3; count += 1) {
    sent.push(await other.sendTransaction({ to, value: 1n, gas: 21_000n }));
  }
  const receipts = await Promise.all(sent.map(mined));
  assert.deepEqual(receipts.map((receipt) => receipt.status), Array(3).fill("success"));
  const found = await Promise.all(sent.map((hash) => reader.getTransaction({ hash })));
  assert.deepEqual(found.map((transaction) => transaction.nonce), [next, next + 1, next + 2]);
  assert.equal(await balance(to), 3n);
});

test("what is unknown", async () => {
  const raw = (method, ...params) => reader.request({ method, params });
  assert.equal(await raw("eth_getTransactionByHash", UNKNOWN), null);
  assert.equal(await raw("eth_getTransactionReceipt", UNKNOWN), null);
  assert.equal(await raw("eth_getBlockByHash", UNKNOWN, false), null);
  await assert.rejects(reader.getTransaction({ hash: UNKNOWN }), TransactionNotFoundError);
  await assert.rejects(reader.getTransactionReceipt({ hash: UNKNOWN }), TransactionReceiptNotFoundError);
  const blockNumber = (await reader.getBlockNumber()) + 1_000_000n;
  await assert.rejects(reader.getBlock({ blockNumber }), BlockNotFoundError);
  await assert.rejects(raw("eth_noSuchMethod"));
});

test("batch", async () => {
  const bodies = [];
  const onFetchRequest = (_, { body }) => {
    bodies.push(JSON.parse(body));
  };
  const transport = http(RPC, { batch: true, onFetchRequest });
  const batching = createPublicClient({ chain, transport });
  const address = owner.account.address;
  const [genesis, held, supply] = await Promise.all([
    batching.getBlock({ blockNumber: 0n }),
    batching.getBalance({ address }),
    batching.readContract({ ...token, functionName: "totalSupply" }),
  ]);
  assert.deepEqual(
    bodies.map((body) => body.map((request) => request.method)),
    [["eth_getBlockByNumber", "eth_getBalance", "eth_call"]],
  );
  assert.equal(genesis.number, 0n);
  assert.equal(held, await balance(address));
  assert.equal(supply, SUPPLY);
});

/** Subscribes and gives a function that waits for the first message which `wanted` accepts. */
async function subscribe(client, params, wanted) {
  const seen = [];
  let wake = () => {};
  const { unsubscribe } = await client.transport.subscribe({
    params,
    onData: ({ result }) => {
      seen.push(result);
      wake();
    },
    onError: (error) => assert.fail(error),
  });
  const first = async () => {
    while (!seen.some(wanted)) {
      await new Promise((resolve) => {
        wake = resolve;
      });
    }
    return seen.find(wanted);
  };
  return { first, unsubscribe };
}

test("subscriptions", { timeout: 120_000 }, async (t) => {
  const to = stranger();
  const from = owner.account.address;
  const watcher = createPublicClient({ chain, transport: webSocket(WS) });
  t.after(async () => (await watcher.transport.getRpcClient()).close());
  assert.equal(await watcher.getChainId(), chain.id);
  const topics = encodeEventTopics({ abi: token.abi, eventName: "Transfer", args: { to } });
  let receipt;
  const heads = await subscribe(watcher, ["newHeads"], (head) => head.hash === receipt?.blockHash);
  const logs = await subscribe(watcher, ["logs", { address: token.address, topics }], () => true);
  receipt = await write(owner, token, "transfer", [to, 21n]);
  const log = await logs.first();
  const [event] = events(token, "Transfer", [log]);
  assert.deepEqual(event.args, { from, to, value: 21n });
  assert.equal(log.transactionHash, receipt.transactionHash);
  assert.equal(log.blockHash, receipt.blockHash);
  const head = await heads.first();
  assert.equal(BigInt(head.number), receipt.blockNumber);
  const { parentHash } = await reader.getBlock({ blockHash: head.hash });
  assert.equal(head.parentHash, parentHash);
  assert.equal((await heads.unsubscribe()).result, true);
  assert.equal((await logs.unsubscribe()).result, true);
});

/** Deploys code that returns the address that it runs for. */
const WHO = "0x66305f5260205ff35f5260076019f3";

test("an account delegates to a contract (EIP-7702)", async () => {
  const { contractAddress } = await mined(owner.deployContract({ abi: [], bytecode: WHO }));
  const delegating = wallet(generatePrivateKey());
  const { address } = delegating.account;
  const authorization = await delegating.signAuthorization({ contractAddress });
  const receipt = await mined(owner.sendTransaction({ authorizationList: [authorization], to: address }));
  assert.deepEqual([receipt.status, receipt.type], ["success", "eip7702"]);
  assert.equal(await reader.getCode({ address }), `0xef0100${contractAddress.slice(2)}`);
  const { data } = await reader.call({ to: address });
  assert.ok(isAddressEqual(`0x${data.slice(26)}`, address));
  assert.equal(await reader.getTransactionCount({ address }), 1);
  const sent = await reader.getTransaction({ hash: receipt.transactionHash });
  assert.equal(sent.authorizationList[0].nonce, authorization.nonce);
});

test("blocks are simulated, and nothing of them is kept", async () => {
  const [from, to] = [stranger(), stranger()];
  const next = (await reader.getBlockNumber()) + 1n;
  const stateOverrides = [{ address: from, balance: 2n * ETHER }];
  const pay = { account: from, to, value: ETHER };
  const asked = { to: token.address, abi: token.abi, functionName: "balanceOf", args: [to] };
  const refused = { ...asked, account: from, functionName: "transfer", args: [to, 1n] };
  const blocks = await reader.simulateBlocks({
    blocks: [{ stateOverrides, calls: [pay, asked] }, { calls: [refused] }],
    traceTransfers: true,
  });
  assert.equal(blocks.length, 2);
  assert.ok(blocks[0].number >= next);
  assert.equal(blocks[1].parentHash, blocks[0].hash);
  assert.deepEqual([blocks[0].calls[0].status, blocks[0].calls[0].logs.length], ["success", 1]);
  assert.equal(blocks[0].calls[1].result, 0n);
  assert.equal(blocks[1].calls[0].status, "failure");
  assert.equal(await balance(to), 0n);
});

test("the rules are told", async () => {
  const { current, next, last } = await reader.request({ method: "eth_config" });
  assert.equal(BigInt(current.chainId), BigInt(chain.id));
  assert.deepEqual([current.activationTime, next, last], [0, null, null]);
  assert.match(current.forkId, /^0x[0-9a-f]{8}$/);
  assert.equal(current.precompiles.ECREC, pad("0x01", { size: 20 }));
  assert.ok(current.precompiles.BLS12_G1ADD, "Prague's are there");
});

test("a call pays the price that it names", async () => {
  // GASPRICE
  const code = "0x3a5f5260205ff3";
  const to = stranger();
  const call = { to, account: owner.account.address, gas: 100_000n, stateOverride: [{ address: to, code }] };
  const gasPrice = await enough();
  assert.equal(BigInt((await reader.call({ ...call, gasPrice })).data), gasPrice);
  assert.equal(BigInt((await reader.call(call)).data), 0n);
  const poor = reader.call({ ...call, account: stranger(), gasPrice: ETHER });
  await assert.rejects(poor, ({ details }) => details.startsWith("insufficient funds for gas * price + value"));
});

test("calls are traced on what those before them left, step by step", async () => {
  const [from, to] = [owner.account.address, stranger()];
  // totalSupply()
  const supply = { to: token.address, data: "0x18160ddd" };
  const { data } = await reader.call(supply);
  const calls = [
    [{ from, to, value: numberToHex(5n) }, ["stateDiff"]],
    [{ from, to, value: numberToHex(2n) }, ["stateDiff", "trace"]],
    [supply, ["vmTrace"]],
  ];
  const traces = await reader.request({ method: "trace_callMany", params: [calls, "latest"] });
  const paid = traces.slice(0, 2).map((trace) => trace.stateDiff[to.toLowerCase()].balance);
  assert.deepEqual(paid, [{ "+": "0x5" }, { "*": { from: "0x5", to: "0x7" } }]);
  assert.deepEqual(traces.map(({ trace }) => trace.length), [0, 1, 0]);
  assert.equal(traces[2].output, data);
  const steps = traces[2].vmTrace.ops.map(({ op }) => op);
  assert.ok(steps.includes("SLOAD") && steps.at(-1) === "RETURN", String(steps));
  assert.equal(await balance(to), 0n);
});

test("a signed transaction is traced and not sent", async () => {
  const [from, to] = [owner.account.address, stranger()];
  const used = await nonce(owner);
  const fields = { to, value: 3n, gas: 21_000n, gasPrice: await enough(), nonce: used + 7, type: "legacy" };
  const signed = await owner.signTransaction(fields);
  const params = [signed, ["trace", "stateDiff"]];
  const { trace, stateDiff } = await reader.request({ method: "trace_rawTransaction", params });
  assert.equal(trace[0].action.from, from.toLowerCase());
  assert.deepEqual(stateDiff[to.toLowerCase()].balance, { "+": "0x3" });
  assert.deepEqual([await nonce(owner), await balance(to)], [used, 0n]);
});

test("what one gateway takes, another's knows", { timeout: 120_000 }, async (t) => {
  const elsewhere = createPublicClient({ chain, transport: http(OTHER), pollingInterval: 50 });
  const watcher = createPublicClient({ chain, transport: webSocket(OTHER.replace(/^http/, "ws")) });
  t.after(async () => (await watcher.transport.getRpcClient()).close());
  const { address } = other.account;
  const rival = createWalletClient({ account: other.account, chain, transport: http(OTHER) });
  const filter = await elsewhere.createPendingTransactionFilter();
  const pending = (client) => client.getTransactionCount({ address, blockTag: "pending" });
  const first = await pending(reader);
  const sent = { to: stranger(), value: 1n, gas: 21_000n };
  const awaited = new Map();
  const announced = new Set();
  const { unsubscribe } = await watcher.transport.subscribe({
    params: ["newPendingTransactions"],
    onData: ({ result }) => {
      announced.add(result);
      awaited.get(result)?.();
    },
    onError: (error) => assert.fail(error),
  });
  const told = (hash) => announced.has(hash) || new Promise((resolve) => awaited.set(hash, resolve));
  const hashes = [];
  for (let nonce = first; nonce < first + 10; nonce += 1) {
    const hash = await other.sendTransaction({ ...sent, nonce });
    hashes.push(hash);
    await told(hash);
    assert.ok((await pending(elsewhere)) > nonce, "its nonce is used there too");
    assert.equal((await elsewhere.getTransaction({ hash })).nonce, nonce);
    // It is under way, or executed by now: in neither case may another of its nonce come.
    const again = rival.sendTransaction({ ...sent, nonce, value: 2n });
    await assert.rejects(again, /underpriced|nonce.*(too low|lower)/i);
  }
  await unsubscribe();
  const polled = await elsewhere.getFilterChanges({ filter });
  assert.deepEqual(hashes.filter((hash) => !polled.includes(hash)), []);
  await mined(hashes.at(-1));
});
