"""Figures from what the tools of peers printed in real runs, cut short. No peer is needed.

python3 -m unittest discover tools/peers/tests
"""

import sys
import unittest
from pathlib import Path

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parent))

from peers import cometbft, etcd, hotstuff, hotstuff_logs, ours  # noqa: E402
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


class HotStuff(unittest.TestCase):
    def test_rate_and_mean_are_of_its_summary_and_percentiles_of_its_samples(self):
        quick, behind = (recorded(f"hotstuff-node-{i}.log") for i in (0, 3))
        said = hotstuff.parse(recorded("hotstuff-parser.json"), [quick, quick, quick])
        self.assertEqual(said, {
            "rate_committed": 400, "mean_ms": 264, "seconds": 4, "p50_ms": 14.0, "p99_ms": 973.0,
            "slowest_share": 1.0,
        })
        self.assertEqual(hotstuff.slowest_share([quick, behind]), 0.0)

    def test_a_sample_runs_from_its_sending_to_the_commit_of_its_batch(self):
        sent = [{0: 10.0, 1: 11.0}, {0: 20.0}]
        received = [{0: "a=", 1: "lost="}, {0: "b="}]
        commits = {"a=": 10.5, "b=": 22.0}
        self.assertEqual(hotstuff_logs.samples(sent, received, commits), [0.5, 2.0])

    def test_a_summary_of_another_form_is_refused(self):
        with self.assertRaisesRegex(Trouble, "no figures in its summary"):
            hotstuff.summary(" End-to-end TPS: 960 tx/s\n")

    def test_without_a_commit_there_are_no_latencies(self):
        with self.assertRaisesRegex(Trouble, "nothing was committed"):
            hotstuff.parse('{"summary": "", "samples": []}', [])


class Ours(unittest.TestCase):
    def test_its_result_is_in_the_peers_terms(self):
        self.assertEqual(ours.parse(recorded("quorate-bench.json")), {
            "version": "0.1.0 (6e3914cdb4)", "nodes": 4, "rate_offered": 300,
            "rate_committed": 79, "seconds": 3, "p50_ms": 3098.6, "p99_ms": 4395.0,
            "mean_ms": 2839.6, "cores_nodes": 0.17,
        })

    def test_a_committee_survives_as_many_faults_as_the_peer(self):
        sizes = [(hotstuff, 10), (cometbft, 4), (etcd, 3), (etcd, 5)]
        self.assertEqual([ours.validators(*size) for size in sizes], [10, 4, 4, 7])


class Tables(unittest.TestCase):
    def test_rows_are_in_the_order_of_rates(self):
        row = {
            "peer": "etcd", "version": "v3.6.8", "nodes": 3, "rate_offered": 2000,
            "rate_committed": 1990, "p50_ms": 1.5, "p99_ms": 9.0, "mean_ms": 2.0,
            "cores_nodes": 1.1, "others_share": 0.254,
        }
        lower = {**row, "rate_offered": 300, "others_share": None}
        self.assertEqual(table([row, lower]).splitlines()[2:], [
            "| etcd v3.6.8 | 3 | 300 | 1,990 | 1.5 | 9.0 | 2.0 | 1.1 | - |",
            "| etcd v3.6.8 | 3 | 2,000 | 1,990 | 1.5 | 9.0 | 2.0 | 1.1 | 25% |",
        ])
