// The explorer's encoding of calls beside that of ethers.

import { createRequire } from "node:module";
import { Malformed, decode, decodeEvent, encodeCall, selectorOf, signatureOf, topicOf } from "../../crates/gateway/src/explorer/abi.js";
import { learn } from "../../crates/gateway/src/explorer/hashes.js";

const ethers = createRequire(new URL("../ethers/package.json", import.meta.url))("ethers");

const ADDRESSES = ["0x" + "11".repeat(20), "0x" + "fe".repeat(20)];

const CALLS = [
  ["uint256 a, string b, bytes c", [5n, "héllo", "0x0102"]],
  ["uint8[] a, int16 b, bytes3 c", [[1n, 2n], -5n, "0x010203"]],
  ["tuple(uint256 a, string b)[] a, bool b, address[2] c", [[[1n, "x"], [2n, "yy".repeat(40)]], true, ADDRESSES]],
  ["string[][2] a, tuple(uint256 a, uint256[2] b) b", [[["a", "b"], []], [1n, [2n, 3n]]]],
  ["int256 a, uint256 b", [-(1n << 255n), (1n << 256n) - 1n]],
  ["", []],
];

const text = (value) => JSON.stringify(value, (_, each) => (typeof each === "bigint" ? String(each) : each));

/** An entry of an ABI as compilers write it, and the same in ethers. */
function entryOf(written) {
  const abi = new ethers.Interface([written]);
  return [JSON.parse(abi.formatJson())[0], abi];
}

function refuses(work) {
  try {
    work();
    return false;
  } catch (failure) {
    return failure instanceof Malformed;
  }
}

/** Learns a signature as the page does, from the ledger. */
const learnt = (entry, ask) => learn([signatureOf(entry)], ask);

export async function checkCoding(check, ask) {
  for (const [inputs, values] of CALLS) {
    const [entry, abi] = entryOf(`function f(${inputs})`);
    await learnt(entry, ask);
    const data = encodeCall(entry, values);
    check(`f(${inputs}) is written and read`, data === abi.encodeFunctionData("f", values) && text(decode(entry.inputs, `0x${data.slice(10)}`)) === text(values), data);
    check("its selector too", selectorOf(entry) === abi.getFunction("f").selector);
    const cut = `0x${data.slice(10, -64)}`;
    check("what is cut off is not read", values.length === 0 || refuses(() => decode(entry.inputs, cut)));
  }
  const [event, abi] = entryOf("event E(address indexed a, string indexed b, uint8 c, bytes d)");
  await learnt(event, ask);
  const values = [ADDRESSES[0], "b", 3n, "0x01"];
  const log = abi.encodeEventLog("E", values);
  const expected = [ADDRESSES[0], ethers.id("b"), 3n, "0x01"];
  check("an event is read", topicOf(event) === log.topics[0] && text(decodeEvent(event, log)) === text(expected), text(decodeEvent(event, log)));
  const wrong = [["uint8 a", ["256"]], ["uint8 a", ["-1"]], ["int8 a", ["128"]], ["address a", ["0x12"]], ["bytes2 a", ["0x1"]], ["bool a", ["yes"]], ["uint256[2] a", [["1"]]], ["uint256 a", [""]]];
  for (const [inputs, given] of wrong) {
    const [entry] = entryOf(`function f(${inputs})`);
    await learnt(entry, ask);
    check(`${inputs} is not ${text(given)}`, refuses(() => encodeCall(entry, given)));
  }
}
