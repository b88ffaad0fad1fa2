// A contract's ABI, given to this browser, and its functions: read by calls, written by the browser's wallet (EIP-1193).

import { Malformed, decode, encodeCall, signatureOf, typed } from "./abi.js";
import { el, plural, quiet } from "./base.js";
import { brief, pairs } from "./elements.js";
import { abiOf, keepAbi } from "./known.js";
import { Refused, ask, explained } from "./rpc.js";
import { byteCount, hex } from "./text.js";
import { shownError, shownOutputs } from "./values.js";

export function contractPart(address, code) {
  const place = el("div");
  const show = () => place.replaceChildren(...[abiForm(address, code, show), functions(address)].flat(Infinity).filter(Boolean));
  show();
  return Promise.resolve([place, el("details", {}, el("summary", {}, `Code, ${plural(byteCount(code), "byte")}`), el("pre", { tabindex: 0 }, code))]);
}

// ---- The ABI, as compilers write it: alone, or in a file with the code that it belongs to.

/** What a pasted file has: the ABI, and the runtime code if it is there. */
function readFile(text) {
  const file = JSON.parse(text);
  const abi = Array.isArray(file) ? file : (file.abi ?? file.output?.abi);
  if (!Array.isArray(abi)) throw new Malformed("there is no ABI in it");
  abi.filter(({ type }) => ["function", "event", "error"].includes(type)).forEach(signatureOf);
  const runtime = file.deployedBytecode ?? file.evm?.deployedBytecode;
  return { abi, code: typeof runtime === "object" && runtime ? runtime.object : runtime };
}

/** Compilers end code with a hash of their metadata, whose length the last two bytes tell. */
function withoutMetadata(code) {
  const digits = code.replace(/^0x/, "").toLowerCase();
  const length = 2 * (parseInt(digits.slice(-4), 16) + 2);
  return length > 4 && length < digits.length ? digits.slice(0, -length) : digits;
}

function comparison(compiled, code) {
  if (!compiled) return "";
  if (withoutMetadata(compiled) === withoutMetadata(code)) return "Its code is the code here.";
  return "Its code is not the code here: another contract's or compiler's, or with other constants.";
}

function abiForm(address, code, changed) {
  const abi = abiOf(address);
  const said = el("p", { role: "status", class: "quiet" });
  const area = el("textarea", { id: "abi", rows: 6, spellcheck: "false", placeholder: "[{\"type\":\"function\", …}]" });
  const keep = async (event) => {
    event.preventDefault();
    try {
      const file = readFile(area.value);
      await keepAbi(address, file.abi);
      changed();
      document.getElementById("abi-said").textContent = `Kept in this browser. ${comparison(file.code, code)}`;
    } catch (failure) {
      said.textContent = `This is no ABI: ${failure.message}.`;
    }
  };
  const form = el("form", { class: "abi", submit: keep }, el("label", { for: "abi" }, "ABI in JSON, or a compiler's file with one"), area, el("button", {}, "Keep it in this browser"), said);
  const forget = el("button", { type: "button", click: () => keepAbi(address, null).then(changed) }, "Forget it");
  const known = abi && el("div", { class: "more" }, quiet(`An ABI of ${plural(abi.length, "entry").replace(/entrys$/, "entries")} is kept in this browser.`), forget);
  const status = el("p", { id: "abi-said", role: "status", class: "quiet" });
  return abi ? [known, status, el("details", {}, el("summary", {}, "Another ABI"), form)] : [status, form];
}

// ---- Its functions.

const isRead = ({ stateMutability }) => ["view", "pure"].includes(stateMutability);

function functions(address) {
  const all = (abiOf(address) ?? []).filter(({ type }) => type === "function");
  const section = (heading, chosen, note) => chosen.length > 0 && [el("h2", {}, heading), note, chosen.map((entry) => functionForm(address, entry))];
  const wallet = window.ethereum ? null : el("p", { class: "quiet" }, "There is no wallet in this browser (window.ethereum, EIP-1193): nothing can be written from here.");
  return [section("Read", all.filter(isRead)), section("Write", all.filter((entry) => !isRead(entry)), wallet)];
}

function functionForm(address, entry) {
  const inputs = entry.inputs.map((input, at) => el("input", { "aria-label": `${input.name || at} (${input.type})`, autocomplete: "off", spellcheck: "false" }));
  const isPayable = entry.stateMutability === "payable";
  const value = el("input", { "aria-label": "Value in wei", autocomplete: "off" });
  const said = el("div", { class: "result", role: "status" });
  const run = async (event) => {
    event.preventDefault();
    said.replaceChildren(quiet("…"));
    said.replaceChildren(...[await outcome(address, entry, inputs, isPayable ? value.value : "0")].flat(Infinity).filter(Boolean));
  };
  const labelled = entry.inputs.map((input, at) => el("label", {}, `${input.name} `, quiet(input.type), inputs[at]));
  const button = el("button", { disabled: !isRead(entry) && !window.ethereum }, isRead(entry) ? "Read" : "Write");
  return el("form", { class: "function", submit: run, "data-function": entry.name }, el("b", {}, entry.name), labelled, isPayable ? el("label", {}, "value ", quiet("wei"), value) : null, button, said);
}

/** What a function comes to, or why it does not. */
async function outcome(address, entry, inputs, wei) {
  try {
    const data = encodeCall(entry, entry.inputs.map((input, at) => typed(input, inputs[at].value)));
    return isRead(entry) ? await read(address, entry, data) : await write(address, data, wei);
  } catch (failure) {
    if (failure instanceof Malformed) return el("span", { class: "bad" }, failure.message);
    const reason = typeof failure.data === "string" ? shownError(address, failure.data) : null;
    const text = failure instanceof Refused ? explained(failure) : failure.message;
    return el("span", { class: "bad" }, reason ? ["Reverted with ", reason] : text);
  }
}

async function read(address, entry, data) {
  const output = await ask("eth_call", { to: address, data }, "latest");
  const values = decode(entry.outputs, output);
  return values.length > 0 ? pairs(shownOutputs(entry, values)) : quiet("It returns nothing.");
}

/** Has the wallet sign and send a call, on this chain. */
async function write(address, data, wei) {
  const chainId = await ask("eth_chainId");
  const asked = await window.ethereum.request({ method: "eth_chainId" });
  if (BigInt(asked) !== BigInt(chainId)) await window.ethereum.request({ method: "wallet_switchEthereumChain", params: [{ chainId }] });
  const [from] = await window.ethereum.request({ method: "eth_requestAccounts" });
  const value = hex(BigInt(wei || 0));
  const hash = await window.ethereum.request({ method: "eth_sendTransaction", params: [{ from, to: address, data, value }] });
  return ["Sent: ", brief(hash, "tx")];
}
