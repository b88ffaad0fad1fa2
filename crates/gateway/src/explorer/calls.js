// What a transaction did inside: the tree of its calls, from running it again.

import { el, grouped, quiet } from "./base.js";
import { brief, briefAccount } from "./elements.js";
import { callName } from "./known.js";
import { ask } from "./rpc.js";
import { ether } from "./text.js";
import { shownError } from "./values.js";

const SHOWN = 1_000; // Calls of a tree that are shown.

export async function callsPart(receipt) {
  if (!receipt) return el("p", { class: "quiet" }, "It is not executed yet.");
  const root = await ask("debug_traceTransaction", receipt.transactionHash, { tracer: "callTracer" });
  const left = { calls: SHOWN };
  const tree = el("ul", { class: "tree" }, shownFrame(root, left));
  return [tree, left.calls < 0 ? el("p", { class: "quiet" }, `${grouped(SHOWN - left.calls)} calls in all, of which the first ${grouped(SHOWN)} are shown.`) : null];
}

/** One call with those inside it, as long as there is room; all are counted. */
function shownFrame(frame, left) {
  left.calls -= 1;
  const isShown = left.calls >= 0;
  const inner = (frame.calls ?? []).map((each) => shownFrame(each, left));
  return isShown ? el("li", {}, line(frame), inner.length > 0 ? el("ul", {}, inner) : null) : null;
}

function line(frame) {
  const creates = frame.type.startsWith("CREATE");
  const name = creates || !frame.to ? "" : callName(frame.to, frame.input);
  const value = frame.value && BigInt(frame.value) > 0n ? ` ${ether(frame.value)}` : "";
  return [
    el("code", { class: "kind" }, frame.type.toLowerCase()),
    " ",
    frame.to ? briefAccount(frame.to) : quiet("nowhere"),
    name ? [" ", el("b", {}, name)] : null,
    value,
    quiet(` ${grouped(frame.gasUsed ?? 0)} gas`),
    frame.error ? [" ", el("span", { class: "bad" }, frame.error), " ", shownError(frame.to, frame.output ?? "0x")] : null,
  ];
}
