// OpenZeppelin's contracts, used as their documentation has them.
import { expect } from "chai";
import { ETHER, blocksUntil, deploy, ethers, mined, others, owner } from "../ledger.mjs";

const [alice, bob, carol] = others;
const { MaxUint256, ZeroAddress } = ethers;

/** What a wallet signs for a contract under EIP-712, as the contract describes itself under EIP-5267. */
async function signed(signer, contract, types, message) {
  const { name, version, chainId, verifyingContract } = await contract.eip712Domain();
  return signer.signTypedData({ name, version, chainId, verifyingContract }, types, message);
}

describe("ERC-20", () => {
  const PERMIT = {
    Permit: [
      { name: "owner", type: "address" },
      { name: "spender", type: "address" },
      { name: "value", type: "uint256" },
      { name: "nonce", type: "uint256" },
      { name: "deadline", type: "uint256" },
    ],
  };
  let coin;

  before(async () => {
    coin = await deploy("Coin");
  });

  async function permit(value, deadline) {
    const message = { owner: alice.address, spender: bob.address, value, nonce: await coin.nonces(alice), deadline };
    const { v, r, s } = ethers.Signature.from(await signed(alice, coin, PERMIT, message));
    return coin.connect(bob).permit(alice.address, bob.address, value, deadline, v, r, s);
  }

  it("is minted by its owner alone", async () => {
    await expect(coin.mint(alice.address, ETHER)).to.emit(coin, "Transfer").withArgs(ZeroAddress, alice.address, ETHER);
    await expect(coin.connect(alice).mint(alice.address, 1n))
      .to.be.revertedWithCustomError(coin, "OwnableUnauthorizedAccount")
      .withArgs(alice.address);
    expect(await coin.totalSupply()).to.equal(ETHER);
  });

  it("is transferred, and no more than there is", async () => {
    await expect(coin.connect(alice).transfer(bob.address, 10n)).to.changeTokenBalances(coin, [alice, bob], [-10n, 10n]);
    await expect(coin.connect(bob).transfer(alice.address, 11n))
      .to.be.revertedWithCustomError(coin, "ERC20InsufficientBalance")
      .withArgs(bob.address, 10n, 11n);
  });

  it("is spent by whom its holder approved", async () => {
    await expect(coin.connect(alice).approve(bob.address, 5n))
      .to.emit(coin, "Approval")
      .withArgs(alice.address, bob.address, 5n);
    const spend = coin.connect(bob).transferFrom(alice.address, carol.address, 3n);
    await expect(spend).to.changeTokenBalances(coin, [alice, carol], [-3n, 3n]);
    await expect(coin.connect(bob).transferFrom(alice.address, carol.address, 3n))
      .to.be.revertedWithCustomError(coin, "ERC20InsufficientAllowance")
      .withArgs(bob.address, 2n, 3n);
  });

  it("is spent by a permit that its holder only signed", async () => {
    await mined(permit(9n, MaxUint256));
    expect(await coin.allowance(alice, bob)).to.equal(9n);
    expect(await coin.nonces(alice)).to.equal(1n);
    await expect(permit(9n, 1n)).to.be.revertedWithCustomError(coin, "ERC2612ExpiredSignature").withArgs(1n);
  });
});

describe("ERC-721", () => {
  let deed;

  before(async () => {
    deed = await deploy("Deed");
    await mined(deed.mint(alice.address, 1n));
  });

  it("has an owner and a place where it is described", async () => {
    expect(await deed.ownerOf(1n)).to.equal(alice.address);
    expect(await deed.tokenURI(1n)).to.equal("ipfs://deeds/1");
    await expect(deed.ownerOf(2n)).to.be.revertedWithCustomError(deed, "ERC721NonexistentToken").withArgs(2n);
  });

  it("goes to a contract that takes it, and to no other", async () => {
    const send = deed.connect(alice).getFunction("safeTransferFrom(address,address,uint256)");
    await expect(send(alice.address, deed.target, 1n))
      .to.be.revertedWithCustomError(deed, "ERC721InvalidReceiver")
      .withArgs(deed.target);
    const chest = await deploy("Chest");
    await expect(send(alice.address, chest.target, 1n))
      .to.emit(deed, "Transfer")
      .withArgs(alice.address, chest.target, 1n);
    expect(await deed.ownerOf(1n)).to.equal(chest.target);
  });

  it("is moved by whom its owner approved", async () => {
    await mined(deed.mint(alice.address, 3n));
    await expect(deed.connect(bob).transferFrom(alice.address, bob.address, 3n))
      .to.be.revertedWithCustomError(deed, "ERC721InsufficientApproval")
      .withArgs(bob.address, 3n);
    await mined(deed.connect(alice).approve(bob.address, 3n));
    await expect(deed.connect(bob).transferFrom(alice.address, bob.address, 3n)).to.changeTokenBalances(
      deed,
      [alice, bob],
      [-1n, 1n],
    );
  });
});

describe("Governor", () => {
  const AGAINST = 0n;
  const FOR = 1n;
  const SUCCEEDED = 4n;
  const EXECUTED = 7n;
  const BALLOT = {
    Ballot: [
      { name: "proposalId", type: "uint256" },
      { name: "support", type: "uint8" },
      { name: "voter", type: "address" },
      { name: "nonce", type: "uint256" },
    ],
  };
  /** Blocks: enough for three votes though one came every second, which is the ledger's heartbeat. */
  const PERIOD = 40n;
  const DELAY = 1n;
  /** Seconds between the queue and the deed. */
  const TIMELOCK = 1n;

  let coin;
  let timelock;
  let council;
  let proposal;
  let id;

  /** A coin whose owner is the timelock, of whom alice has 3, bob 2 and carol 1, who vote for themselves. */
  before(async () => {
    coin = await deploy("Coin");
    for (const [index, voter] of [carol, bob, alice].entries()) {
      await mined(coin.mint(voter.address, BigInt(index + 1) * ETHER));
      await mined(coin.connect(voter).delegate(voter.address));
    }
    timelock = await deploy("TimelockController", TIMELOCK, [], [ZeroAddress], owner.address);
    council = await deploy("Council", coin.target, timelock.target, DELAY, PERIOD);
    await mined(timelock.grantRole(await timelock.PROPOSER_ROLE(), council.target));
    await mined(coin.transferOwnership(timelock.target));
  });

  it("takes a proposal", async () => {
    const mint = coin.interface.encodeFunctionData("mint", [carol.address, 10n * ETHER]);
    const described = [[coin.target], [0n], [mint]];
    proposal = [...described, ethers.id("Ten for Carol")];
    id = await council.hashProposal(...proposal);
    await expect(council.connect(alice).propose(...described, "Ten for Carol")).to.emit(council, "ProposalCreated");
  });

  it("counts votes, one of them signed alone", async () => {
    const opens = await council.proposalSnapshot(id);
    await blocksUntil(({ number }) => number >= opens);
    await mined(council.connect(alice).castVote(id, FOR));
    await mined(council.connect(bob).castVote(id, AGAINST));
    const ballot = { proposalId: id, support: FOR, voter: carol.address, nonce: await council.nonces(carol) };
    const signature = await signed(carol, council, BALLOT, ballot);
    await expect(council.castVoteBySig(id, FOR, carol.address, signature))
      .to.emit(council, "VoteCast")
      .withArgs(carol.address, id, FOR, ETHER, "");
    const { againstVotes, forVotes } = await council.proposalVotes(id);
    expect([againstVotes, forVotes]).to.deep.equal([2n * ETHER, 4n * ETHER]);
    expect(await council.hasVoted(id, bob)).to.equal(true);
  });

  it("takes no vote when its blocks are over", async () => {
    const ends = await council.proposalDeadline(id);
    await blocksUntil(({ number }) => number >= ends);
    expect(await council.state(id)).to.equal(SUCCEEDED);
    await expect(council.connect(bob).castVote(id, FOR)).to.be.revertedWithCustomError(
      council,
      "GovernorUnexpectedProposalState",
    );
  });

  it("queues what was decided, and does it", async () => {
    await expect(council.queue(...proposal)).to.emit(council, "ProposalQueued");
    const due = await council.proposalEta(id);
    await blocksUntil(({ timestamp }) => timestamp >= due);
    await expect(council.execute(...proposal)).to.changeTokenBalances(coin, [carol, bob], [10n * ETHER, 0n]);
    expect(await council.state(id)).to.equal(EXECUTED);
    await expect(coin.mint(owner.address, 1n))
      .to.be.revertedWithCustomError(coin, "OwnableUnauthorizedAccount")
      .withArgs(owner.address);
  });
});
