// Compiles a contract's sources again, and compares the code with that at an address.
//
//   node verify.mjs RPC ADDRESS INPUT [CONTRACT]
//
// INPUT is a compiler's standard JSON input, or a file with one as `input` (Hardhat's build info); CONTRACT may be left out where it has one alone.
// It exits with 1 where the code is another.
import { readFileSync } from "node:fs";
import solc from "solc";

const OUTPUTS = ["abi", "evm.deployedBytecode"];

function compiled(path) {
  const file = JSON.parse(readFileSync(path, "utf8"));
  const input = file.input ?? file;
  input.settings = { ...input.settings, outputSelection: { "*": { "*": OUTPUTS } } };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  const errors = (output.errors ?? []).filter(({ severity }) => severity === "error");
  if (errors.length > 0) throw new Error(errors.map(({ formattedMessage }) => formattedMessage).join("\n"));
  return Object.values(output.contracts).flatMap((contracts) => Object.entries(contracts));
}

function chosen(contracts, name) {
  const fitting = contracts.filter(([each, { evm }]) => evm.deployedBytecode.object && (name === undefined || each === name));
  if (fitting.length !== 1) throw new Error(`name one contract of ${contracts.map(([each]) => each).join(", ")}`);
  return fitting[0][1].evm.deployedBytecode;
}

async function codeAt(rpc, address) {
  const body = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_getCode", params: [address, "latest"] });
  const response = await fetch(rpc, { method: "POST", headers: { "content-type": "application/json" }, body });
  const { result, error } = await response.json();
  if (error) throw new Error(error.message);
  if (result === "0x") throw new Error(`there is no code at ${address}`);
  return result.slice(2);
}

/** Compilers end code with their metadata, whose length the last two bytes tell. */
function withoutMetadata(code) {
  const length = 2 * (parseInt(code.slice(-4), 16) + 2);
  return length < code.length ? code.slice(0, -length) : code;
}

/** Zeroes where the constructor puts constants. */
function masked(code, references) {
  const all = Object.values(references ?? {}).flat();
  return all.reduce((digits, { start, length }) => digits.slice(0, 2 * start) + "00".repeat(length) + digits.slice(2 * (start + length)), code);
}

const [rpc, address, path, name] = process.argv.slice(2);
if (!path) throw new Error("usage: verify.mjs RPC ADDRESS INPUT [CONTRACT]");
const { object, immutableReferences } = chosen(compiled(path), name);
const code = await codeAt(rpc, address);
const same = code.length === object.length && masked(code, immutableReferences) === masked(object, immutableReferences);
const alike = same || withoutMetadata(masked(code, immutableReferences)) === withoutMetadata(masked(object, immutableReferences));
console.log(`solc ${solc.version()}: ${same ? "the same code" : alike ? "the same code but for the metadata" : "another code"}`);
process.exitCode = alike ? 0 : 1;
