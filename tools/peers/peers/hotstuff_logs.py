"""Prints what asonnino/hotstuff's own parser reads in the logs of a folder, as JSON: its summary,
and the latencies behind its mean. A program of its own, for the parser has a pool of processes that
it ends by signals, and those are the user's in a run.

python3 hotstuff_logs.py CHECKOUT/benchmark FOLDER
"""

import contextlib
import json
import sys
from pathlib import Path


def samples(sent, received, commits):
    """Latencies in seconds of sampled transactions, as its `_end_to_end_latency` has them: from
    the client's sending to the earliest commit of the batch that a node put it into."""
    return [
        commits[batch] - times[transaction]
        for times, batches in zip(sent, received)
        for transaction, batch in batches.items()
        if batch in commits
    ]


def main(benchmark, folder):
    sys.path.insert(0, benchmark)
    from benchmark.logs import LogParser

    logs = [[file.read_text() for file in sorted(Path(folder).glob(f"{kind}-*.log"))]
            for kind in ("client", "node")]
    with contextlib.redirect_stdout(sys.stderr):
        parser = LogParser(*logs, 0)
    seen = samples(parser.sent_samples, parser.received_samples, parser.commits)
    print(json.dumps({"summary": parser.result(), "samples": seen}))


if __name__ == "__main__":
    main(*sys.argv[1:])
