// The verifier of sources that the ledger's users have, on what hardhat compiled and deployed.
import { expect } from "chai";
import hre from "hardhat";
import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { deploy } from "../ledger.mjs";

const VERIFIER = fileURLToPath(new URL("../../../contracts/verify.mjs", import.meta.url));

/** What the verifier says of a contract, by the sources that a name is compiled from, with its exit code. */
async function verified({ target }, name) {
  const { sourceName } = await hre.artifacts.readArtifact(name);
  const inputs = await hre.artifacts.getBuildInfoPaths();
  const built = await hre.artifacts.getBuildInfo(`${sourceName}:${name}`);
  const input = inputs.find((path) => path.endsWith(`${built.id}.json`));
  return new Promise((resolve) => {
    const args = [VERIFIER, hre.network.config.url, target, input, name];
    execFile(process.execPath, args, (failure, said, complaint) => resolve({ code: failure?.code ?? 0, said, complaint }));
  });
}

describe("sources", () => {
  let coin;

  before(async () => {
    coin = await deploy("Coin");
  });

  it("are those of the code, whatever its constructor set", async () => {
    const { code, said, complaint } = await verified(coin, "Coin");
    expect(said, complaint).to.match(/^solc 0\.8\.30\S*: the same code\n$/);
    expect(code).to.equal(0);
  });

  it("of another contract are not", async () => {
    const { code, said, complaint } = await verified(coin, "Deed");
    expect(said, complaint).to.match(/: another code\n$/);
    expect(code).to.equal(1);
  });

  it("of an address without code are none's", async () => {
    const { code, complaint } = await verified({ target: `0x${"5a".repeat(20)}` }, "Coin");
    expect(complaint).to.contain("there is no code at");
    expect(code).to.equal(1);
  });
});
