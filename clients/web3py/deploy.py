"""Deploys this project's token with web3.py and pays with it: deploy.py URL KEY."""

import json
import pathlib
import sys

from web3 import Web3

ARTEFACT = pathlib.Path(__file__).parents[2] / "contracts/artifacts/Token.json"


def main(url, key):
    ledger = Web3(Web3.HTTPProvider(url))
    account = ledger.eth.account.from_key(key)
    artefact = json.loads(ARTEFACT.read_text())

    def execute(call):
        nonce = ledger.eth.get_transaction_count(account.address, "pending")
        transaction = call.build_transaction({"from": account.address, "nonce": nonce})
        sent = ledger.eth.send_raw_transaction(account.sign_transaction(transaction).raw_transaction)
        return ledger.eth.wait_for_transaction_receipt(sent)

    token = ledger.eth.contract(abi=artefact["abi"], bytecode=artefact["bytecode"])
    created = execute(token.constructor("Token", "T", 10**24))
    token = ledger.eth.contract(created.contractAddress, abi=artefact["abi"])
    print(f"deployed at {token.address} in block {created.blockNumber}")
    other = Web3.to_checksum_address("0x" + "07" * 20)
    paid = execute(token.functions.transfer(other, 42))
    print(f"paid in block {paid.blockNumber}: {other} has {token.functions.balanceOf(other).call()}")


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit("usage: deploy.py URL KEY")
    main(*sys.argv[1:])
