// The first page: the chain's figures, its last blocks and transactions, and the validators.

import { card, el, filledCard, grouped, plural, table, utcSecond } from "./base.js";
import { barChart } from "./barcharts.js";
import { BLOCK_COLUMNS, TAIL, blockCells, ratePerSecond, rateText, tail, timeOf } from "./blocks.js";
import { membersTable, signaturesIn } from "./committee.js";
import { ask } from "./rpc.js";
import { blockOf, loadTransaction, transactionTable } from "./transactions.js";

const LISTED = 10; // Blocks and transactions.
const IDLE = 5_000; // Milliseconds without a block after which a chain is called idle.

export async function overviewPage() {
  const [chain, version, committee] = await Promise.all([ask("eth_chainId"), ask("web3_clientVersion"), ask("quorate_committee")]);
  const height = card("Height");
  const rate = card("Transactions per second");
  const pool = card("Waiting transactions");
  const gas = barChart("Gas used a block", TAIL, ({ block }) => Number(block.gasUsed), "gas");
  const counts = barChart("Transactions a block", TAIL, ({ block }) => block.transactions.length, "transactions");
  const blocks = table(BLOCK_COLUMNS, blockCells, "There is no block yet.");
  const transactions = transactionTable("Block", blockOf, "There is no transaction in the last blocks.");
  const members = membersTable(committee, "In the last certificates");
  let known = new Map();

  async function showTransactions(latest) {
    const hashes = latest.flatMap(({ block }) => block.transactions.toReversed()).slice(0, LISTED);
    const found = await Promise.all(hashes.map((hash) => known.get(hash) ?? loadTransaction(hash)));
    known = new Map(found.filter((each) => each?.receipt).map((each) => [each.key, each]));
    transactions.show(found.filter(Boolean));
  }

  function showRate(latest) {
    const newest = timeOf(latest[0]);
    const over = `over the last ${plural(latest.length, "block")}`;
    const now = rateText(ratePerSecond(latest));
    if (latest[0].number === 0) rate.show("idle", "no block since genesis");
    else if (Date.now() - newest > IDLE) rate.show("idle", `since ${utcSecond(newest)}; ${now} ${over}`);
    else rate.show(now, over);
  }

  async function refresh() {
    const [status, latest] = await Promise.all([ask("txpool_status"), tail.advance()]);
    height.show(String(latest[0].number), timeOf(latest[0]) > 0 ? utcSecond(timeOf(latest[0])) : "");
    pool.show(grouped(status.pending), `${grouped(status.queued)} queued`);
    showRate(latest);
    [gas, counts].forEach((chart) => chart.show(latest));
    blocks.show(latest.slice(0, LISTED));
    members.show((member) => signaturesIn(latest, member));
    await showTransactions(latest);
  }

  await refresh();
  const cards = [
    height.node,
    rate.node,
    pool.node,
    filledCard("Validators", grouped(committee.members.length), `quorum ${grouped(committee.quorum)} of ${grouped(committee.weight)}`),
    filledCard("Chain", String(BigInt(chain)), `${committee.protocol}, ${committee.scheme}`),
  ];
  const body = [
    el("h1", { class: "hidden" }, "Overview"),
    el("div", { class: "cards" }, cards),
    el("div", { class: "charts" }, gas.node, counts.node),
    el("h2", {}, "Latest blocks"),
    blocks.node,
    el("h2", {}, "Latest transactions"),
    transactions.node,
    el("h2", {}, "Validators"),
    members.node,
    el("p", { class: "quiet" }, version),
  ];
  return { title: "Overview", body, refresh };
}
