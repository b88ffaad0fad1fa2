// What is known of contracts: the standards' events, functions and errors, and ABIs that were given to this browser.

import { Malformed, decode, decodeEvent, selectorOf, signatureOf, topicOf } from "./abi.js";
import { learn } from "./hashes.js";
import { askPlainly } from "./rpc.js";

const STORED = "quorate-abi-"; // What names of ABIs in this browser's storage begin with; the address follows.

/** Inputs as standards write them: "address indexed from, uint256 value". */
function inputsFrom(text) {
  return text.split(", ").filter(Boolean).map((each) => {
    const parts = each.split(" ");
    return { type: parts[0], name: parts.length > 1 ? parts.at(-1) : "", indexed: parts[1] === "indexed" };
  });
}

const entryOf = (type) => (name, inputs, outputs = "") => ({ type, name, inputs: inputsFrom(inputs), outputs: inputsFrom(outputs) });
const [event, call, error] = ["event", "function", "error"].map(entryOf);
const view = (name, inputs, outputs) => ({ ...call(name, inputs, outputs), stateMutability: "view" });

/** EIP-20, EIP-721, EIP-1155 and EIP-165, and what every contract of Solidity reverts with. */
const STANDARDS = [
  event("Transfer", "address indexed from, address indexed to, uint256 value"),
  event("Approval", "address indexed owner, address indexed spender, uint256 value"),
  event("Transfer", "address indexed from, address indexed to, uint256 indexed tokenId"),
  event("Approval", "address indexed owner, address indexed approved, uint256 indexed tokenId"),
  event("ApprovalForAll", "address indexed owner, address indexed operator, bool approved"),
  event("TransferSingle", "address indexed operator, address indexed from, address indexed to, uint256 id, uint256 value"),
  event("TransferBatch", "address indexed operator, address indexed from, address indexed to, uint256[] ids, uint256[] values"),
  event("OwnershipTransferred", "address indexed previousOwner, address indexed newOwner"),
  call("transfer", "address to, uint256 value", "bool"),
  call("approve", "address spender, uint256 value", "bool"),
  call("transferFrom", "address from, address to, uint256 value", "bool"),
  call("safeTransferFrom", "address from, address to, uint256 tokenId"),
  call("safeTransferFrom", "address from, address to, uint256 tokenId, bytes data"),
  call("setApprovalForAll", "address operator, bool approved"),
  call("safeTransferFrom", "address from, address to, uint256 id, uint256 value, bytes data"),
  call("safeBatchTransferFrom", "address from, address to, uint256[] ids, uint256[] values, bytes data"),
  view("name", "", "string"),
  view("symbol", "", "string"),
  view("decimals", "", "uint8"),
  view("totalSupply", "", "uint256"),
  view("balanceOf", "address owner", "uint256"),
  view("allowance", "address owner, address spender", "uint256"),
  view("ownerOf", "uint256 tokenId", "address"),
  view("tokenURI", "uint256 tokenId", "string"),
  view("uri", "uint256 id", "string"),
  view("supportsInterface", "bytes4 interfaceId", "bool"),
  error("Error", "string reason"),
  error("Panic", "uint256 code"),
];

const idOf = (entry) => (entry.type === "event" ? topicOf(entry) : selectorOf(entry));

const named = (entries) => entries.filter(({ type }) => ["event", "function", "error"].includes(type));

/** Entries by their topic or selector, whose kinds and numbers of topics tell those of one name apart. */
function byId(entries) {
  const known = new Map();
  for (const entry of named(entries)) {
    const id = idOf(entry);
    known.set(id, [...(known.get(id) ?? []), entry]);
  }
  return known;
}

let standards = new Map();
const given = new Map();

/** Learns the names of what standards and the ABIs in this browser have. */
export async function learnNames() {
  const stored = Object.keys(localStorage).filter((name) => name.startsWith(STORED));
  await learnSignatures([...STANDARDS, ...stored.flatMap((name) => storedAbi(name) ?? [])]);
  standards = byId(STANDARDS);
  given.clear();
}

const learnSignatures = (entries) => learn(named(entries).map(signatureOf), askPlainly);

/** The entry of the standards with this name; of several, the first. */
export const standard = (name) => STANDARDS.find((entry) => entry.name === name);

/** The ABI that this browser was given for an address, or null. */
export const abiOf = (address) => storedAbi(STORED + address.toLowerCase());

/** What is kept under a name; null where it is no list of entries, whoever wrote it. */
function storedAbi(name) {
  try {
    const abi = JSON.parse(localStorage.getItem(name));
    return Array.isArray(abi) ? abi : null;
  } catch {
    return null;
  }
}

/** Keeps an ABI for an address in this browser; null forgets it. */
export async function keepAbi(address, abi) {
  await learnSignatures(abi ?? []);
  const name = STORED + address.toLowerCase();
  if (abi) localStorage.setItem(name, JSON.stringify(abi));
  else localStorage.removeItem(name);
  given.delete(address.toLowerCase());
}

function givenFor(address) {
  const plain = address.toLowerCase();
  if (!given.has(plain)) given.set(plain, byId(abiOf(plain) ?? []));
  return given.get(plain);
}

/** What an address's ABI, or else a standard, has under a topic or selector. */
function entries(address, id) {
  return [...((address && givenFor(address).get(id)) ?? []), ...(standards.get(id) ?? [])];
}

/** The first of these entries by which something can be decoded, with the values; null if there is none. */
function firstDecoded(candidates, decodeBy) {
  for (const entry of candidates) {
    try {
      return { entry, values: decodeBy(entry) };
    } catch (failure) {
      if (!(failure instanceof Malformed)) throw failure;
    }
  }
  return null;
}

/** An event by its contract's ABI. */
export const eventOf = (log) => decodedBy(entries(log.address, log.topics[0]), log);

/** An event by the standards alone, whatever its contract's ABI calls its parts. */
export const standardEventOf = (log) => decodedBy(standards.get(log.topics[0]) ?? [], log);

function decodedBy(candidates, log) {
  const fitting = candidates.filter(({ type, inputs }) => type === "event" && inputs.filter((input) => input.indexed).length === log.topics.length - 1);
  return firstDecoded(fitting, (entry) => decodeEvent(entry, log));
}

const ofKind = (kind, address, data) => entries(address, data.slice(0, 10)).filter(({ type }) => type === kind);
const decodedCall = (entry, data) => decode(entry.inputs, `0x${data.slice(10)}`);

/** A call of a contract, by its ABI. */
export const callOf = (address, data) => firstDecoded(ofKind("function", address, data), (entry) => decodedCall(entry, data));

/** What a contract reverted with. */
export const errorOf = (address, data) => firstDecoded(ofKind("error", address, data), (entry) => decodedCall(entry, data));

/** A call's name, as far as it is known: the function's, or the selector. */
export function callName(address, data) {
  if (data.length < 10) return data === "0x" ? "" : data;
  return ofKind("function", address, data)[0]?.name ?? data.slice(0, 10);
}
