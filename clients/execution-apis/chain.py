"""The chain of the exchanges: a genesis of ours with its accounts, and its transactions on a ledger of ours."""

import json

import rlp
from eth_account import Account
from eth_utils import keccak
from rlp.codec import consume_length_prefix

# Blobs, which are not taken.
REFUSED = {3}
# The sender's key as hive's hivechain publishes it (cmd/hivechain/accounts.go): it signs something in the place of what
# is not taken, for else the sender's next transactions would wait for ever.
SENDER = Account.from_key("0x4552dbe6ca4699322b5d923d0c9bcdd24644f5db8bf89a085b67c6c49b8a1b91")
FORKS = (
    *("homesteadBlock", "eip150Block", "eip155Block", "eip158Block", "byzantiumBlock", "constantinopleBlock"),
    *("petersburgBlock", "istanbulBlock", "berlinBlock", "londonBlock", "shanghaiTime", "cancunTime", "pragueTime"),
)
# Where a request names a block by its number.
BLOCK_AT = {
    "debug_getRawBlock": 0,
    "debug_getRawHeader": 0,
    "debug_getRawReceipts": 0,
    "debug_traceBlockByNumber": 0,
    "eth_call": 1,
    "eth_createAccessList": 1,
    "eth_estimateGas": 1,
    "eth_feeHistory": 1,
    "eth_getBalance": 1,
    "eth_getBlockByNumber": 0,
    "eth_getBlockReceipts": 0,
    "eth_getBlockTransactionCountByNumber": 0,
    "eth_getCode": 1,
    "eth_getProof": 2,
    "eth_getStorageAt": 2,
    "eth_getStorageValues": 1,
    "eth_getTransactionCount": 1,
    "eth_getUncleCountByBlockNumber": 0,
    "eth_simulateV1": 1,
    "trace_block": 0,
}


def genesis(folder):
    """Their accounts under the rules of Prague from the first block on."""
    theirs = json.loads((folder / "genesis.json").read_text())
    config = {"chainId": theirs["config"]["chainId"], **dict.fromkeys(FORKS, 0), "unprotectedTransactions": True}
    fields = ("timestamp", "extraData", "gasLimit", "coinbase", "alloc")
    return {"config": config, "difficulty": "0x0", **{field: theirs[field] for field in fields}}


class Block:
    """A block of theirs, and where its transactions are here."""

    def __init__(self, header, transactions, *_):
        self.parent = "0x" + header[0].hex()
        self.number = int.from_bytes(header[8], "big")
        self.time = int.from_bytes(header[11], "big")
        self.hash = "0x" + keccak(rlp.encode(header)).hex()
        self.raw = [one if isinstance(one, bytes) else rlp.encode(one) for one in transactions]
        # Of each of them, here.
        self.receipts = []


def first(block):
    return block.receipts[0]


def last(block):
    """After it, the state is theirs."""
    return block.receipts[-1]


def told_in(text):
    """Picks the first transaction that a text tells of, or else the last."""
    return lambda block: next((one for one in block.receipts if one["transactionHash"] in text), last(block))


def blocks(folder):
    data, at = (folder / "chain.rlp").read_bytes(), 0
    while at < len(data):
        _, _, length, begin = consume_length_prefix(data, at)
        yield Block(*rlp.decode(data[at : begin + length]))
        at = begin + length


class Chain:
    """Their chain on a ledger of ours, and what is called differently here."""

    def __init__(self, folder, ledger):
        self.ledger = ledger
        self.id = int(ledger.result("eth_chainId"), 16)
        self.blocks = list(blocks(folder))
        for block in self.blocks:
            self.bring(block)
        newest, of_theirs = ledger.result("eth_getBlockByNumber", "latest", False), self.blocks[-1]
        number, time = (int(newest[key], 16) for key in ("number", "timestamp"))
        # How far our newest block is beyond theirs.
        self.later = {"number": number - of_theirs.number, "time": time - of_theirs.time}

    def bring(self, block):
        """Sends a block's transactions, and waits for them: no block of ours holds those of two of theirs."""
        hashes = [self.send(raw) for raw in block.raw]
        block.receipts = [self.ledger.receipt(digest) for digest in hashes]

    def send(self, raw):
        if raw[0] in REFUSED:
            raw = self.instead_of(raw)
        return self.ledger.result("eth_sendRawTransaction", "0x" + raw.hex())

    def instead_of(self, raw):
        nonce = int.from_bytes(rlp.decode(raw[1:])[1], "big")
        transfer = {"to": SENDER.address, "value": 0, "gas": 21_000, "gasPrice": 10**9}
        return SENDER.sign_transaction({"chainId": self.id, "nonce": nonce, **transfer}).raw_transaction

    def parameters(self, request, answer):
        """A request's parameters, with the blocks that they name exchanged for ours."""
        method, theirs = request["method"], request.get("params", [])
        if method.endswith("AndIndex"):
            return self.place(*theirs)
        pick = told_in(json.dumps(answer))
        if method == "eth_getLogs":
            picks = {"fromBlock": first, "toBlock": last, "blockHash": pick}
            return [{key: self.block(value, picks[key]) if key in picks else value for key, value in theirs[0].items()}]
        if method == "eth_simulateV1":
            theirs = [self.simulated(theirs[0]), *theirs[1:]]
        at = BLOCK_AT.get(method)
        return [self.block(one, pick) if index == at else self.hash(one, pick) for index, one in enumerate(theirs)]

    def block(self, named, pick):
        """Our name of a block that theirs names by its number or hash: it holds the transaction that is picked."""
        number = as_number(named)
        if number is None:
            return self.hash(named, pick)
        if number > len(self.blocks):
            return hex(number + self.later["number"])
        return pick(self.blocks[number - 1])["blockNumber"] if number else named

    def simulated(self, theirs):
        """Blocks to simulate, as far beyond our newest block as they are beyond theirs."""
        blocks = [{**block, "blockOverrides": self.shifted(block)} for block in theirs["blockStateCalls"]]
        return {**theirs, "blockStateCalls": blocks}

    def shifted(self, block):
        overrides = block.get("blockOverrides", {})
        named = overrides.keys() & self.later.keys()
        return {**overrides, **{key: hex(int(overrides[key], 16) + self.later[key]) for key in named}}

    def hash(self, named, pick):
        if named == self.blocks[0].parent:
            return self.ledger.result("eth_getBlockByNumber", "0x0", False)["hash"]
        found = [block for block in self.blocks if block.hash == named]
        return pick(found[0])["blockHash"] if found else named

    def place(self, named, index):
        """Where the transaction is here that is at a place of theirs."""
        block = next(one for one in self.blocks if named in (one.hash, hex(one.number)))
        receipt = block.receipts[int(index, 16)]
        return [receipt["blockHash" if named == block.hash else "blockNumber"], receipt["transactionIndex"]]


def as_number(named):
    """A block's number, unless it is named by a word or a hash, or in a form that is none."""
    is_number = isinstance(named, str) and named.startswith("0x") and len(named) < 18
    return int(named, 16) if is_number else None
