"""CometBFT with the key-value store that comes inside its node, in Go.

The load is that of its own `test/loadtime`; latencies are those of that tool's report.
"""

import csv
import io
import json
import re

from . import building
from .building import FOLDER, Trouble
from .figures import latencies
from .scene import answer, free_ports

NAME = "cometbft"
NODES = 4
LIARS = True
BESIDE = ["--service", "kv", "--durability", "fsync"]
VERSION = "v0.40.0"
MODULE = "github.com/cometbft/cometbft"
BIN = FOLDER / NAME / "bin"
# Against its defaults: no waiting after a commit, gossip and flushes at once, no bound by rate, no
# index of transactions, a mempool that does not overflow in a second, and a block as soon as there
# is something to put into it, or each second.
TUNED = {
    "CONSENSUS_TIMEOUT_COMMIT": "0s",
    "CONSENSUS_SKIP_TIMEOUT_COMMIT": "true",
    "CONSENSUS_PEER_GOSSIP_SLEEP_DURATION": "2ms",
    "CONSENSUS_CREATE_EMPTY_BLOCKS_INTERVAL": "1s",
    "P2P_FLUSH_THROTTLE_TIMEOUT": "1ms",
    "P2P_SEND_RATE": "512000000",
    "P2P_RECV_RATE": "512000000",
    "MEMPOOL_SIZE": "200000",
    "MEMPOOL_CACHE_SIZE": "400000",
    "MEMPOOL_RECHECK": "false",
    "TX_INDEX_INDEXER": "null",
}


def build():
    """Builds the node and both halves of its load tool."""
    packages = {
        "cometbft": f"{MODULE}/cmd/cometbft",
        "load": f"{MODULE}/test/loadtime/cmd/load",
        "report": f"{MODULE}/test/loadtime/cmd/report",
    }
    building.go_build(NAME, VERSION, {MODULE: "."}, packages)


def run(load, scene):
    """The load on all nodes, each its part; then the report from what node 0 stored."""
    share = load.rate // load.nodes
    if not share:
        raise Trouble("--rate: one for each node at least")
    doors = start(load.nodes, scene)
    endpoints = ",".join(f"ws://127.0.0.1:{port}/websocket" for port in doors)
    options = ["-c", 1, "-T", load.seconds + 1, "-r", share, "-s", load.bytes]
    cores = scene.cores()
    send = ["--broadcast-tx-method", "sync", "--endpoints", endpoints]
    send += ["--stats-output", "sent.csv"]
    scene.run("load", BIN / "load", *options, *send, seconds=load.seconds + 60)
    scene.wait("mempools to empty", lambda: not any(map(waiting, doors)), 2 * load.seconds + 60)
    used = cores()
    heights = [height(port) for port in doors]
    # The report leaves out the last two blocks, which are empty then.
    end = max(heights) + 2
    scene.wait("two more blocks", lambda: height(doors[0]) > end)
    scene.stop()
    data = scene.folder / "node0" / "data"
    scene.run("report", BIN / "report", "--data-dir", data, "--csv", "report.csv", seconds=120)
    files = [(scene.folder / name).read_text() for name in ("sent.csv", "report.csv")]
    figures = parse(*files, share * load.nodes)
    behind = {"slowest_share": round(min(heights) / max(heights), 3)}
    return {"rate_offered": share * load.nodes, **figures, "cores_nodes": used, **behind}


def start(nodes, scene):
    """Starts nodes on loopback, and returns the ports of their RPC once all follow one chain."""
    tool = BIN / "cometbft"
    files = ["testnet", "--v", nodes, "--o", scene.folder, "--populate-persistent-peers=false"]
    scene.run("testnet", tool, *files, seconds=30)
    homes = [scene.folder / f"node{i}" for i in range(nodes)]
    ids = [scene.run(f"id-{i}", tool, "show-node-id", "--home", homes[i], seconds=10).strip()
           for i in range(nodes)]
    ports = free_ports(2 * nodes)
    links, doors = ports[:nodes], ports[nodes:]
    peers = ",".join(f"{name}@127.0.0.1:{port}" for name, port in zip(ids, links))
    for i, home in enumerate(homes):
        options = {
            "PROXY_APP": "kvstore",
            "LOG_LEVEL": "error",
            "P2P_LADDR": f"tcp://127.0.0.1:{links[i]}",
            "P2P_PERSISTENT_PEERS": peers,
            "RPC_LADDR": f"tcp://127.0.0.1:{doors[i]}",
            **TUNED,
        }
        env = {f"CMT_{name}": value for name, value in options.items()}
        scene.start(f"node-{i}", tool, "node", "--home", home, env=env)
    scene.wait("a first block of each node", lambda: all(height(port) > 0 for port in doors))
    return doors


def height(port):
    """A node's height, zero before it answers."""
    status = answer(f"http://127.0.0.1:{port}/status")
    return int(json.loads(status)["result"]["sync_info"]["latest_block_height"]) if status else 0


def waiting(port):
    """Transactions in a node's mempool."""
    count = answer(f"http://127.0.0.1:{port}/num_unconfirmed_txs")
    return int(json.loads(count)["result"]["n_txs"]) if count else 1


def parse(stats, report, rate):
    """Figures of its statistics and of its report in CSV, which has a row for each transaction in a
    block: the time of the next block, when it was committed, and how long after its making.

    What is sent comes in bursts, a second's each, and the last one's second counts.
    """
    sent = re.search(r"^total_txs,(\d+)", stats, re.MULTILINE)
    rows = list(csv.DictReader(io.StringIO(report)))
    if not sent or not rows:
        raise Trouble("no transaction is in a block")
    committed = [int(row["block_time"]) / 1e9 for row in rows]
    took = [int(row["duration_ns"]) / 1e9 for row in rows]
    span = max(committed) - min(end - one for end, one in zip(committed, took))
    seconds = max(span, int(sent.group(1)) / rate)
    figures = {"rate_committed": round(len(rows) / seconds), "seconds": round(seconds, 1)}
    return {**figures, **latencies(took), "lost": int(sent.group(1)) - len(rows)}
