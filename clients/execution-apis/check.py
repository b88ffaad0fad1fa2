"""Asks an EVM ledger what execution-apis' recorded exchanges ask, and compares the form of the answers: keys, types,
hexadecimal, null or not, and the codes of errors. Numbers and hashes are another chain's, and not compared.

    QUORATE=target/release/quorate check.py EXECUTION-APIS      a ledger of its own, on 12 ports from $BASE_PORT on
    QUORATE_RPC=http://127.0.0.1:8545 check.py EXECUTION-APIS   a new one with the genesis and a heartbeat_ms of 0
    check.py EXECUTION-APIS --genesis FILE                      writes the genesis

EXECUTION-APIS is a checkout of github.com/ethereum/execution-apis at the commit that differences.toml names. What
differs and is not listed there fails, and what is listed and does not differ.
"""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import tempfile
import time
import tomllib
import urllib.error
import urllib.request
from fnmatch import fnmatch
from itertools import product
from pathlib import Path

from chain import Chain, genesis
from shape import differences

PORT = os.environ.get("BASE_PORT", "21520")
QUORATE = os.environ.get("QUORATE", "target/release/quorate")
LISTS = Path(__file__).with_name("differences.toml")
NO_SUCH_METHOD = -32_601
SENDS = "eth_sendRawTransaction"
# Seconds until a ledger answers, or a transaction is in a block, at the most.
PATIENCE_S = 120


class Ledger:
    def __init__(self, url):
        self.url = url

    def ask(self, request):
        """The answer to a request, a result or an error."""
        headers = {"Content-Type": "application/json"}
        body = json.dumps({"jsonrpc": "2.0", "id": 1, **request}).encode()
        with urllib.request.urlopen(urllib.request.Request(self.url, body, headers), timeout=PATIENCE_S) as answer:
            return json.load(answer)

    def result(self, method, *params):
        answer = self.ask({"method": method, "params": params})
        if "error" in answer:
            sys.exit(f"{method}{params}: {answer['error']}")
        return answer["result"]

    def receipt(self, digest):
        return until(f"the receipt of {digest}", lambda: self.result("eth_getTransactionReceipt", digest))

    def is_there(self):
        with contextlib.suppress(urllib.error.URLError):
            return self.result("eth_chainId")


def until(what, ask):
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        if found := ask():
            return found
        time.sleep(0.1)
    sys.exit(f"{what} has not come in {PATIENCE_S} s")


@contextlib.contextmanager
def ledger(folder):
    """The one that the environment names, or a new one of four validators."""
    if url := os.environ.get("QUORATE_RPC"):
        yield Ledger(url)
        return
    with tempfile.TemporaryDirectory() as made, contextlib.ExitStack() as running:
        file, network = Path(made, "genesis.json"), Path(made, "net")
        file.write_text(json.dumps(genesis(folder)))
        options = ["--service", "evm", "--genesis", file, "--durability", "os", "--base-port", PORT, "--json"]
        written = json.loads(subprocess.check_output([QUORATE, "testnet", network, *options]))
        still(Path(written["committee"]))
        for config in written["configs"]:
            validator = subprocess.Popen([QUORATE, "run", "--config", config], stderr=subprocess.DEVNULL)
            running.callback(validator.wait)
            running.callback(validator.kill)
        own = Ledger(f"http://{written['gateways'][0]}")
        until("the ledger", own.is_there)
        yield own


def still(committee):
    """Has blocks come with transactions alone, so that the newest has some, and the next are yet to come."""
    text = committee.read_text()
    assert "heartbeat_ms = 1000" in text
    committee.write_text(text.replace("heartbeat_ms = 1000", "heartbeat_ms = 0"))


def exchanges(folder):
    """Requests and answers, each by the name of its file and its place there; what adds to the chain comes last."""
    for path in sorted(folder.glob("*/*.io"), key=lambda path: (SENDS in path.read_text(), path)):
        lines = path.read_text().splitlines()
        asked = [json.loads(line[3:]) for line in lines if line.startswith(">> ")]
        answered = [json.loads(line[3:]) for line in lines if line.startswith("<< ")]
        for index, (request, answer) in enumerate(zip(asked, answered, strict=True), 1):
            name = f"{path.parent.name}/{path.stem}"
            yield f"{name}#{index}" if len(asked) > 1 else name, request, answer


def compare(theirs, ours):
    """What differs in the form of an answer, each as one line."""
    if "error" in theirs and "error" in ours:
        code = theirs["error"]["code"], ours["error"]["code"]
        differs = [] if code[0] == code[1] else [f"error: {code[1]} instead of {code[0]}"]
        parts = [{key: answer["error"][key] for key in answer["error"] if key == "data"} for answer in (theirs, ours)]
        return differs + differences(*parts, "error")
    if "error" in ours:
        return [f"error {ours['error']['code']} instead of a result"]
    if "error" in theirs:
        return [f"a result instead of error {theirs['error']['code']}"]
    return differences(theirs["result"], ours["result"])


class Report:
    def __init__(self, lists):
        self.left_out = lists["left_out"]
        pairs = ((one, pair) for one in lists["difference"] for pair in product(one["in"], one["what"]))
        self.known = {pair: one["reason"] for one, pair in pairs}
        self.seen = set()
        self.counts = {"equal": 0, "differ as listed": 0, "left out": 0, "WRONG": 0}

    def add(self, name, method, answers):
        # What comes after a method that is left out in the same file depends on it.
        folder = name.split("/")[0]
        if folder not in self.left_out:
            self.judge(name, compare(*answers))
        elif method == folder and answers[1].get("error", {}).get("code") != NO_SUCH_METHOD:
            self.say("WRONG", name, ["left out as not served, but is"])
        else:
            self.say("left out", name, [self.left_out[folder]])

    def judge(self, name, lines):
        listed = {line: self.listed(name, line) for line in lines}
        self.seen.update(listed.values())
        if unlisted := [line for line in lines if not listed[line]]:
            self.say("WRONG", name, unlisted)
        elif lines:
            self.say("differ as listed", name, [f"{line} ({self.known[listed[line]]})" for line in lines])
        else:
            self.say("equal", name, [])

    def listed(self, name, line):
        """Where a line is listed for an exchange: the exchange's name there, or a pattern of it, and the line."""
        return next((pair for pair in self.known if pair[1] == line and fnmatch(name, pair[0])), None)

    def say(self, verdict, name, lines):
        self.counts[verdict] += 1
        print("\n    ".join([f"{verdict}: {name}", *lines]))

    def end(self):
        """Returns `True` if all is as the list says."""
        for name, line in sorted(self.known.keys() - self.seen):
            self.say("WRONG", name, [f"listed, but does not differ: {line}"])
        print(", ".join(f"{count} {verdict}" for verdict, count in self.counts.items()))
        return not self.counts["WRONG"]


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("checkout", type=Path, metavar="EXECUTION-APIS")
    arguments.add_argument("--genesis", type=Path, metavar="FILE")
    given = arguments.parse_args()
    folder = given.checkout / "tests"
    if given.genesis:
        given.genesis.write_text(json.dumps(genesis(folder), indent=2))
        return
    lists = tomllib.loads(LISTS.read_text())
    print(f"expected: execution-apis at {lists['commit']}")
    report = Report(lists)
    with ledger(folder) as own:
        chain = Chain(folder, own)
        for name, request, theirs in exchanges(folder):
            ours = own.ask({"method": request["method"], "params": chain.parameters(request, theirs)})
            report.add(name, request["method"], (theirs, ours))
    sys.exit(0 if report.end() else 1)


if __name__ == "__main__":
    main()
