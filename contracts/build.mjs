// Compiles src/*.sol into artifacts/. With --check it writes nothing and fails if an artefact is not what its
// source gives.
import { readFileSync, writeFileSync } from "node:fs";
import solc from "solc";

const CONTRACTS = ["Token", "Exchange", "Collectible", "Items", "Workshop"];

const SETTINGS = {
  evmVersion: "cancun",
  optimizer: { enabled: true, runs: 200 },
  metadata: { bytecodeHash: "none" },
};

const OUTPUTS = ["abi", "evm.bytecode.object", "evm.deployedBytecode.object", "storageLayout"];

function compile(contract) {
  const file = `src/${contract}.sol`;
  const input = {
    language: "Solidity",
    sources: { [file]: { content: readFileSync(local(file), "utf8") } },
    settings: { ...SETTINGS, outputSelection: { [file]: { [contract]: OUTPUTS } } },
  };
  const found = (path) => ({ contents: readFileSync(local(path), "utf8") });
  const output = JSON.parse(solc.compile(JSON.stringify(input), { import: found }));
  if (output.errors?.length) {
    throw new Error(output.errors.map((error) => error.formattedMessage).join("\n"));
  }
  return output.contracts[file][contract];
}

function artefact(contract) {
  const { abi, evm, storageLayout } = compile(contract);
  return {
    contract,
    compiler: solc.version(),
    evmVersion: SETTINGS.evmVersion,
    settings: SETTINGS,
    abi,
    bytecode: `0x${evm.bytecode.object}`,
    deployedBytecode: `0x${evm.deployedBytecode.object}`,
    storageLayout,
  };
}

function local(path) {
  return new URL(path, import.meta.url);
}

const check = process.argv.includes("--check");
for (const contract of CONTRACTS) {
  const path = `artifacts/${contract}.json`;
  const text = `${JSON.stringify(artefact(contract), null, 2)}\n`;
  if (!check) {
    writeFileSync(local(path), text);
  } else if (readFileSync(local(path), "utf8") !== text) {
    console.error(`${path} is not what src/${contract}.sol gives; run: npm run build`);
    process.exitCode = 1;
  }
}
