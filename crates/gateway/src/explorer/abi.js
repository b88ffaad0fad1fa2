// The encoding of calls, results, events and errors of contracts, by their ABI (docs.soliditylang.org, "Contract ABI Specification").

import { hashOf } from "./hashes.js";

const WORD = 64; // Digits of a word.
const ITEMS_MAX = 10_000; // Of an array that is decoded: data may name any number.

/** Data is not what its type says. */
export class Malformed extends Error {}

// ---- Types. A parameter is { name, type, components }, as compilers write it.

/** The type of an array's items and their number, null if any; null of what is no array. */
function arrayOf(type) {
  const [, item, count] = type.match(/^(.*)\[(\d*)\]$/) ?? [];
  return item === undefined ? null : { item, count: count === "" ? null : Number(count) };
}

const itemOf = (parameter, item) => ({ ...parameter, type: item });

function isDynamic(parameter) {
  const array = arrayOf(parameter.type);
  if (array) return array.count === null || isDynamic(itemOf(parameter, array.item));
  if (parameter.type === "tuple") return parameter.components.some(isDynamic);
  return parameter.type === "bytes" || parameter.type === "string";
}

/** Digits that a parameter takes in place. */
function headOf(parameter) {
  if (isDynamic(parameter)) return WORD;
  const array = arrayOf(parameter.type);
  if (array) return array.count * headOf(itemOf(parameter, array.item));
  if (parameter.type === "tuple") return parameter.components.reduce((sum, each) => sum + headOf(each), 0);
  return WORD;
}

/** A type as signatures have it. */
export function canonical({ type, components }) {
  return type.startsWith("tuple") ? `(${components.map(canonical).join(",")})${type.slice(5)}` : type;
}

export const signatureOf = ({ name, inputs }) => `${name}(${inputs.map(canonical).join(",")})`;
/** The names of functions, events and errors: their signatures are to be learnt before. */
export const topicOf = (entry) => hashOf(signatureOf(entry));
export const selectorOf = (entry) => topicOf(entry).slice(0, 10);

// ---- Decoding. Data is digits without 0x.

const number = (word) => BigInt(`0x${word}`);

function take(data, at, digits) {
  const taken = data.slice(at, at + digits);
  if (taken.length < digits) throw new Malformed("data ends too early");
  return taken;
}

function placeAt(data, at) {
  const place = number(take(data, at, WORD));
  if (place * 2n > BigInt(data.length)) throw new Malformed("data points beyond its end");
  return Number(place) * 2;
}

function decodeAll(parameters, data) {
  let at = 0;
  return parameters.map((parameter) => {
    const value = isDynamic(parameter) ? decodeOne(parameter, data.slice(placeAt(data, at))) : decodeOne(parameter, data.slice(at));
    at += headOf(parameter);
    return value;
  });
}

function decodeOne(parameter, data) {
  const { type, components } = parameter;
  const array = arrayOf(type);
  if (array) {
    const count = array.count ?? Number(number(take(data, 0, WORD)));
    if (count > ITEMS_MAX) throw new Malformed(`an array of ${count}`);
    return decodeAll(Array(count).fill(itemOf(parameter, array.item)), array.count === null ? data.slice(WORD) : data);
  }
  if (type === "tuple") return decodeAll(components, data);
  const word = take(data, 0, WORD);
  if (type === "bytes" || type === "string") {
    const bytes = take(data, WORD, Number(number(word)) * 2);
    return type === "bytes" ? `0x${bytes}` : textOf(bytes);
  }
  return wordAs(type, word);
}

function wordAs(type, word) {
  if (type === "address") return `0x${word.slice(24)}`;
  if (type === "bool") return number(word) !== 0n;
  if (type.startsWith("uint")) return number(word);
  if (type.startsWith("int")) return BigInt.asIntN(256, number(word));
  const [, length] = type.match(/^bytes(\d+)$/) ?? [];
  if (length) return `0x${word.slice(0, 2 * length)}`;
  if (type === "function") return `0x${word.slice(0, 48)}`;
  throw new Malformed(`a ${type}`);
}

function textOf(digits) {
  return new TextDecoder().decode(Uint8Array.from(digits.match(/../g) ?? [], (pair) => parseInt(pair, 16)));
}

/** The values of parameters, of data with 0x. */
export const decode = (parameters, data) => decodeAll(parameters, data.slice(2));

/** The values of an event's parameters. Of what is indexed and longer than a word there is a hash alone. */
export function decodeEvent({ inputs, anonymous }, { topics, data }) {
  const indexed = topics.slice(anonymous ? 0 : 1);
  const inData = decode(inputs.filter((input) => !input.indexed), data);
  return inputs.map((input) => {
    if (!input.indexed) return inData.shift();
    const topic = indexed.shift();
    return isDynamic(input) || input.type.startsWith("tuple") || arrayOf(input.type) ? topic : wordAs(input.type, topic.slice(2));
  });
}

// ---- Encoding.

const wordOf = (value) => BigInt.asUintN(256, value).toString(16).padStart(WORD, "0");

function encodeAll(parameters, values) {
  if (!Array.isArray(values) || values.length !== parameters.length) throw new Malformed(`${parameters.length} values are wanted`);
  let place = parameters.reduce((sum, each) => sum + headOf(each), 0);
  let [heads, tails] = ["", ""];
  parameters.forEach((parameter, at) => {
    const encoded = encodeOne(parameter, values[at]);
    if (!isDynamic(parameter)) {
      heads += encoded;
      return;
    }
    heads += wordOf(BigInt(place / 2));
    tails += encoded;
    place += encoded.length;
  });
  return heads + tails;
}

function encodeOne(parameter, value) {
  const { type, components } = parameter;
  const array = arrayOf(type);
  if (array) {
    if (!Array.isArray(value)) throw new Malformed(`${type}: a list is wanted, such as [1, 2]`);
    const items = encodeAll(Array(array.count ?? value.length).fill(itemOf(parameter, array.item)), value);
    return array.count === null ? wordOf(BigInt(value.length)) + items : items;
  }
  if (type === "tuple") return encodeAll(components, Array.isArray(value) ? value : components.map(({ name }) => value?.[name]));
  if (type === "string" || type === "bytes") return encodeBytes(type === "bytes" ? digitsOf(type, value) : digitsOfText(String(value)));
  return wordFrom(type, value);
}

function encodeBytes(digits) {
  return wordOf(BigInt(digits.length / 2)) + digits.padEnd(Math.ceil(digits.length / WORD) * WORD, "0");
}

function digitsOfText(text) {
  return Array.from(new TextEncoder().encode(text), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function digitsOf(type, value, bytes = null) {
  const [, digits] = String(value).match(/^0x((?:[0-9a-f]{2})*)$/i) ?? [];
  if (digits === undefined || (bytes !== null && digits.length !== 2 * bytes)) throw new Malformed(`${type}: 0x and ${bytes ?? "any number of"} bytes are wanted`);
  return digits.toLowerCase();
}

function wordFrom(type, value) {
  if (type === "address") return digitsOf(type, value, 20).padStart(WORD, "0");
  if (type === "bool") {
    if (!["true", "false"].includes(String(value))) throw new Malformed("bool: true or false is wanted");
    return wordOf(String(value) === "true" ? 1n : 0n);
  }
  const [, sign, bits = "256"] = type.match(/^(u?)int(\d*)$/) ?? [];
  if (sign !== undefined) return numberFrom(type, value, sign === "u", Number(bits || 256));
  const [, length] = type.match(/^bytes(\d+)$/) ?? [];
  if (length) return digitsOf(type, value, Number(length)).padEnd(WORD, "0");
  throw new Malformed(`${type} cannot be written here`);
}

function numberFrom(type, value, isUnsigned, bits) {
  let wanted;
  try {
    wanted = BigInt(typeof value === "string" ? value.trim() || "none" : value);
  } catch {
    throw new Malformed(`${type}: a whole number is wanted`);
  }
  const kept = isUnsigned ? BigInt.asUintN(bits, wanted) : BigInt.asIntN(bits, wanted);
  if (kept !== wanted) throw new Malformed(`${type}: ${wanted} does not fit`);
  return wordOf(wanted);
}

/** The data of a call. */
export const encodeCall = (entry, values) => selectorOf(entry) + encodeAll(entry.inputs, values);

/** A value as a person types it: lists and structs are JSON, whose numbers may have any length. */
export function typed({ type }, text) {
  if (!arrayOf(type) && type !== "tuple") return text;
  try {
    return JSON.parse(text.replace(/(?<![\w"])-?\d{16,}(?![\w"])/g, '"$&"'));
  } catch {
    throw new Malformed(`${type}: JSON is wanted, such as [1, 2]`);
  }
}
