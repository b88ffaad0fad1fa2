// Decoded values of calls, events and errors, as elements.

import { el, grouped, plural } from "./base.js";
import { brief, briefAccount, bytes, pairs } from "./elements.js";
import { callOf, errorOf, eventOf } from "./known.js";
import { byteCount, decimal, words } from "./text.js";
import { tokenOf } from "./token.js";

const WORDS_SHOWN = 16;
const MOST = (1n << 256n) - 1n; // What approvals without a limit have.
const AMOUNTS = ["value", "amount", "wad", "amounts", "values"]; // Names of what is counted in a token's units.

/** What arithmetic and other checks of Solidity panic with. */
const PANICS = new Map([
  [0x01n, "an assertion failed"],
  [0x11n, "arithmetic overflow"],
  [0x12n, "division by zero"],
  [0x21n, "no such value of an enumeration"],
  [0x31n, "pop of an empty array"],
  [0x32n, "index out of bounds"],
  [0x41n, "too much memory"],
  [0x51n, "call of a function that is not set"],
]);

/** A value of an ABI type; of a token's amount, by the token's decimals. */
function shownValue(parameter, value, token = null) {
  const { type, components } = parameter;
  if (Array.isArray(value)) return shownList(type, components, value, parameter, token);
  if (type === "address") return briefAccount(value);
  if (typeof value === "bigint") return shownNumber(parameter.name, value, token);
  if (/^bytes/.test(type) || /^0x/.test(value)) return value === "0x" ? "0x" : value.length > 42 ? brief(value) : bytes(value);
  return String(value);
}

function shownList(type, components, value, parameter, token) {
  if (type === "tuple") return pairs(components.map((each, at) => [each.name || String(at), shownValue(each, value[at])]));
  const item = { ...parameter, type: type.replace(/\[\d*\]$/, "") };
  if (value.length === 0) return "none";
  return el("ol", { start: 0, class: "list" }, value.map((each) => el("li", {}, shownValue(item, each, token))));
}

function shownNumber(name, value, token) {
  if (value === MOST) return "unlimited (the largest number)";
  if (!token?.decimals || !AMOUNTS.includes(name)) return grouped(value);
  return el("span", { title: `${grouped(value)} units` }, `${decimal(value, token.decimals)} ${token.symbol}`);
}

/** Inputs of an entry with values. */
export const shownInputs = ({ inputs }, values, token) => inputs.map((input, at) => [input.name || String(at), shownValue(input, values[at], token)]);

export const shownOutputs = ({ outputs }, values) => outputs.map((output, at) => [output.name || (outputs.length > 1 ? String(at) : output.type), shownValue(output, values[at])]);

const named = (name, inputs) => [el("b", {}, name), inputs.length > 0 ? pairs(inputs) : null];

/** An event: by the contract's ABI or a standard, else topics and words. */
export async function shownEvent(log) {
  const found = eventOf(log);
  if (!found) return named("Unknown event", undecoded(log));
  const token = found.entry.inputs.some(({ name }) => AMOUNTS.includes(name)) ? await tokenOf(log.address) : null;
  return named(found.entry.name, shownInputs(found.entry, found.values, token));
}

function undecoded(log) {
  const data = words(log.data);
  const rest = data.length > WORDS_SHOWN ? [["…", `${plural(byteCount(log.data), "byte")} in all`]] : [];
  return [...log.topics.map((topic, at) => [`topic ${at}`, bytes(topic)]), ...data.slice(0, WORDS_SHOWN).map((word, at) => [`data ${at}`, bytes(word)]), ...rest];
}

/** A call's function with its arguments; null where it is not known. */
export async function shownCall(address, data) {
  const found = callOf(address, data);
  if (!found) return null;
  const token = found.entry.inputs.some(({ name }) => AMOUNTS.includes(name)) ? await tokenOf(address) : null;
  return named(found.entry.name, shownInputs(found.entry, found.values, token));
}

/** What a contract reverted with, in words; null where it returned nothing. */
export function shownError(address, data) {
  if (data === "0x") return null;
  const found = errorOf(address, data);
  if (!found) return bytes(data);
  const { entry, values } = found;
  if (entry.name === "Error") return `“${values[0]}”`;
  if (entry.name === "Panic") return `panic ${values[0]}: ${PANICS.get(values[0]) ?? "not known"}`;
  return named(entry.name, shownInputs(entry, values));
}
