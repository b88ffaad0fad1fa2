"""What Ethereum's executable specification (execution-specs) comes to in cases of ethereum/tests: whether the end that
a test expects is the specification's. It shares no code with the ledger, and judges where the two differ.

    verdicts.py FILE...                                 each case of these files
    QUORATE=target/release/quorate verdicts.py --sample 200 --seed 1 FOLDER     as many that the ledger passes

A case agrees if the root over all accounts and the hash of the logs are the test's, and if the transaction is refused
where the test says so. Exit code 1: one does not.
"""

import argparse
import json
import os
import random
import subprocess
import sys
from pathlib import Path

from ethereum_spec_tools.evm_tools.statetest import read_test_cases, run_test_case
from ethereum_spec_tools.evm_tools.t8n import ForkCache

QUORATE = os.environ.get("QUORATE", "target/release/quorate")


def cases(path, fork):
    return [case for case in read_test_cases(str(path)) if case.fork_name == fork]


def passed_whole(path, fork):
    """Whether the ledger passes every case of a file."""
    asked = [QUORATE, "evm-tests", "--json", "--fork", fork, path]
    summary = json.loads(subprocess.run(asked, capture_output=True, check=False).stdout or "{}")
    return bool(summary) and not any(summary[reason] for reason in ("unreadable", "failed", "left_out"))


def sample(folder, fork, size, seed):
    """Cases drawn from all that are for a fork, but for those in files that the ledger does not pass as a whole."""
    everything = [case for path in sorted(folder.rglob("*.json")) for case in cases(path, fork)]
    random.Random(seed).shuffle(everything)
    whole = {}
    for case in everything:
        if size and whole.setdefault(case.path, passed_whole(case.path, fork)):
            size -= 1
            yield case


def verdict(case, forks):
    """Nothing where the specification comes to the test's end; otherwise, what it comes to."""
    result = run_test_case(case, forks)
    expected = {"hash": result.state_root, "logs": result.logs_hash}
    differing = [f"{key} is 0x{found.hex()}" for key, found in expected.items() if case.post[key] != "0x" + found.hex()]
    if bool(result.rejected) != ("expectException" in case.post):
        differing.append(f"refused: {result.rejected}")
    return differing


def main():
    arguments = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    arguments.add_argument("paths", nargs="+", type=Path, metavar="PATH")
    arguments.add_argument("--fork", default="Cancun")
    arguments.add_argument("--sample", type=int, metavar="CASES")
    arguments.add_argument("--seed", type=int, default=1)
    given = arguments.parse_args()
    if given.sample:
        chosen = sample(given.paths[0], given.fork, given.sample, given.seed)
    else:
        chosen = (case for path in given.paths for case in cases(path, given.fork))
    counts = {"agrees": 0, "DIFFERS": 0}
    with ForkCache() as forks:
        for case in chosen:
            differing = verdict(case, forks)
            word = "DIFFERS" if differing else "agrees"
            counts[word] += 1
            at = case.post["indexes"]
            place = f"data {at['data']}, gas {at['gas']}, value {at['value']}"
            print("\n    ".join([f"{word}: {case.path}: {case.key} ({place})", *differing]), flush=True)
    print(", ".join(f"{count} {word}" for word, count in counts.items()))
    sys.exit(1 if counts["DIFFERS"] or not counts["agrees"] else 0)


if __name__ == "__main__":
    main()
