"""The running ledger, taken from the environment, and the accounts and contracts that the tests use."""

import json
import os
from pathlib import Path

import pytest
from eth_account import Account
from web3 import HTTPProvider, Web3
from web3.middleware import SignAndSendRawMiddlewareBuilder

ARTEFACTS = Path(__file__).resolve().parents[2] / "contracts" / "artifacts"
SETTINGS = {
    "QUORATE_RPC": "the HTTP URL of the ledger's JSON-RPC",
    "QUORATE_WS": "its WebSocket URL",
    "QUORATE_KEYS": "private keys of funded accounts, 0x and hexadecimal, separated by commas",
}
ETHER = 10**18
SUPPLY = 1_000_000 * ETHER


def pytest_configure():
    for name, meaning in SETTINGS.items():
        if not os.environ.get(name):
            raise pytest.UsageError(f"{name} is not set: {meaning}")
    if len(keys()) < 2:
        raise pytest.UsageError(f"QUORATE_KEYS holds {len(keys())} keys; this suite uses the first two")


def keys():
    return os.environ["QUORATE_KEYS"].split(",")


@pytest.fixture(scope="session")
def ws_url():
    return os.environ["QUORATE_WS"]


@pytest.fixture(scope="session")
def owner():
    return Account.from_key(keys()[0])


@pytest.fixture(scope="session")
def other():
    return Account.from_key(keys()[1])


@pytest.fixture(scope="session")
def w3(owner, other):
    """A client that signs what these two accounts send."""
    client = Web3(HTTPProvider(os.environ["QUORATE_RPC"]))
    client.middleware_onion.inject(SignAndSendRawMiddlewareBuilder.build([owner, other]), layer=0)
    return client


@pytest.fixture(scope="session")
def mined(w3):
    """Waits for a transaction's receipt."""
    return lambda digest: w3.eth.wait_for_transaction_receipt(digest, timeout=120, poll_latency=0.05)


@pytest.fixture(scope="session")
def deploy(w3, owner, mined):
    """Deploys a contract by its artefact; gives the contract and the receipt."""

    def run(name, *arguments):
        artefact = json.loads((ARTEFACTS / f"{name}.json").read_text())
        factory = w3.eth.contract(abi=artefact["abi"], bytecode=artefact["bytecode"])
        receipt = mined(factory.constructor(*arguments).transact({"from": owner.address}))
        assert receipt["status"] == 1
        deployed = w3.eth.contract(address=receipt["contractAddress"], abi=artefact["abi"])
        assert w3.eth.get_code(deployed.address).to_0x_hex() == artefact["deployedBytecode"]
        return deployed, receipt

    return run


@pytest.fixture(scope="session")
def token(deploy):
    return deploy("Token", "Quorate", "QRT", SUPPLY)[0]


@pytest.fixture
def stranger():
    """The address of an account that nobody has used."""
    return Account.create().address
