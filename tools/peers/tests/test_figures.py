"""Figures from what the tools of peers printed in real runs, cut short. No peer is needed.

python3 -m unittest discover tools/peers/tests
"""

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from peers import cometbft, etcd, hotstuff, ours  # noqa: E402
from peers.building import Trouble  # noqa: E402
from peers.figures import latencies, percentile, table  # noqa: E402


def recorded(name):
    return (HERE / "recorded" / name).read_text()


class Percentiles(unittest.TestCase):
    def test_a_percentile_is_a_value_that_was_seen(self):
        values = list(range(1, 101))
        self.assertEqual([percentile(values, share) for share in (0.5, 0.99, 1)], [50, 99, 100])
        self.assertEqual(percentile([7], 0.01), 7)

    def test_latencies_are_in_milliseconds(self):
        said = latencies([0.003, 0.001, 0.002])
        self.assertEqual(said, {"p50_ms": 2.0, "p99_ms": 3.0, "mean_ms": 2.0})


class Etcd(unittest.TestCase):
    def test_its_summary_has_the_figures(self):
        said = etcd.parse(recorded("etcd-benchmark.txt"))
        self.assertEqual(said, {
            "rate_committed": 300, "p50_ms": 1.6, "p99_ms": 6.9, "mean_ms": 1.8, "seconds": 3.0,
            "refused": 0,
        })

    def test_puts_that_failed_are_counted(self):
        errors = "\nError distribution:\n  [3]\tetcdserver: too many requests\n  [4]\tlost\n"
        self.assertEqual(etcd.parse(recorded("etcd-benchmark.txt") + errors)["refused"], 7)

    def test_without_a_summary_there_are_no_figures(self):
        with self.assertRaisesRegex(Trouble, "no figures in its summary"):
            etcd.parse("dial tcp 127.0.0.1:2379: connection refused")


class CometBft(unittest.TestCase):
    def test_latencies_are_of_the_rows_of_its_report(self):
        said = cometbft.parse(recorded("cometbft-sent.csv"), recorded("cometbft-report.csv"), 200)
        self.assertEqual(said, {
            "rate_committed": 3, "seconds": 3.0, "p50_ms": 80.8, "p99_ms": 130.2, "mean_ms": 87.9,
            "lost": 590,
        })

    def test_a_run_that_took_longer_than_its_sending_has_a_lower_rate(self):
        header, row, *_ = recorded("cometbft-report.csv").splitlines(keepends=True)
        fields = row.split(",")
        later = ",".join([fields[0], str(int(fields[1]) + 9_000_000_000), *fields[2:]])
        said = cometbft.parse("total_txs,2,count\n", header + row + later, 1)
        self.assertEqual((said["seconds"], said["lost"]), (9.1, 0))

    def test_without_a_row_nothing_is_committed(self):
        header = recorded("cometbft-report.csv").splitlines()[0]
        with self.assertRaisesRegex(Trouble, "no transaction is in a block"):
            cometbft.parse(recorded("cometbft-sent.csv"), header, 200)
