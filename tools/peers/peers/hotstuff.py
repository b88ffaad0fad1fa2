"""asonnino/hotstuff: two-chain HotStuff (Jolteon) with Ed25519, in Rust.

Its logs are read by its own parser, `benchmark/benchmark/logs.py`, as `fab local` does.
"""

import json
import os
import re
import shutil
import sys
from pathlib import Path

from . import building
from .building import FOLDER, Trouble
from .figures import latencies
from .scene import free_ports, listens

NAME = "hotstuff"
NODES = 4
LIARS = True
BESIDE = ["--service", "log", "--durability", "os"]
COMMIT = "dc01ac8626a64342f6a76ae6f8914535dd090bdd"
ORIGIN = "https://github.com/asonnino/hotstuff"
SOURCE = FOLDER / NAME / "source"
PARSER = Path(__file__).with_name("hotstuff_logs.py")
BIN = SOURCE / "target" / "release"
# Its client sends so many bursts a second.
BURSTS = 20
# As in its fabfile: batches of `fab remote`, and the delays of `fab local`, which are shorter.
PARAMETERS = {
    "consensus": {"timeout_delay": 1_000, "sync_retry_delay": 10_000},
    "mempool": {
        "gc_depth": 50,
        "sync_retry_delay": 5_000,
        "sync_retry_nodes": 3,
        "batch_size": 500_000,
        "max_batch_delay": 10,
    },
}


def build():
    """Builds it from a clone of GitHub's repository, or of a checkout."""
    building.need("git", "install git")
    building.need("cargo", "install Rust from https://rustup.rs")
    if "LIBCLANG_PATH" not in os.environ:
        building.need("clang", "RocksDB wants it: apt-get install clang, or set LIBCLANG_PATH")
    if not SOURCE.exists():
        building.command("git", "clone", building.checkout(NAME) or ORIGIN, SOURCE)
    building.command("git", "checkout", "--quiet", "--detach", COMMIT, cwd=SOURCE)
    shutil.copy(Path(__file__).with_name("hotstuff.lock"), SOURCE / "Cargo.lock")
    # RocksDB of that time leaves out a header that compilers since GCC 13 want to be named.
    flags = f"{os.environ.get('CXXFLAGS', '')} -include cstdint".strip()
    options = ["--release", "--locked", "--features", "benchmark", "--target-dir", BIN.parent]
    building.command("cargo", "build", *options, cwd=SOURCE / "node", env={"CXXFLAGS": flags})
    building.built(NAME, building.describe(SOURCE))


def run(load, scene):
    """A client for each node, as in `fab local`; all are stopped when the time is over."""
    share = load.rate // load.nodes // BURSTS * BURSTS
    if not share:
        raise Trouble(f"--rate: {BURSTS} for each node at least, for each has a client in bursts")
    ports = free_ports(3 * load.nodes)
    fronts = [f"127.0.0.1:{port}" for port in ports[load.nodes : 2 * load.nodes]]
    configure(load.nodes, ports, scene)
    for i in range(load.nodes):
        files = ["--keys", f"key-{i}.json", "--committee", "committee.json", "--store", f"db-{i}"]
        run_node = ["-vv", "run", *files, "--parameters", "parameters.json"]
        scene.start(f"node-{i}", BIN / "node", *run_node)
    scene.wait("all nodes to listen", lambda: all(map(listens, ports)))
    for i, front in enumerate(fronts):
        options = ["--size", load.bytes, "--rate", share, "--timeout", 1_000, "--nodes", *fronts]
        scene.start_tool(f"client-{i}", BIN / "client", front, *options)
    sends = "Start sending transactions"
    scene.wait("clients to send", lambda: all(sends in scene.log(tool) for tool in scene.tools))
    cores = scene.cores()
    scene.last(load.seconds)
    used = cores()
    nodes = list(scene.nodes)
    scene.stop()
    parser = [sys.executable, PARSER, SOURCE / "benchmark", scene.folder]
    figures = parse(scene.run("parser", *parser, seconds=300), [scene.log(node) for node in nodes])
    return {"rate_offered": share * load.nodes, **figures, "cores_nodes": used}


def configure(nodes, ports, scene):
    """Keys, the committee and parameters, in the forms of its `config.py`."""
    names = []
    for i in range(nodes):
        scene.run(f"keys-{i}", BIN / "node", "keys", "--filename", f"key-{i}.json", seconds=10)
        names.append(json.loads((scene.folder / f"key-{i}.json").read_text())["name"])
    address = [f"127.0.0.1:{port}" for port in ports]
    consensus, mempool = {}, {}
    for i, name in enumerate(names):
        member = {"name": name, "stake": 1}
        consensus[name] = {**member, "address": address[i]}
        front, other = address[nodes + i], address[2 * nodes + i]
        mempool[name] = {**member, "transactions_address": front, "mempool_address": other}
    committee = {
        "consensus": {"authorities": consensus, "epoch": 1},
        "mempool": {"authorities": mempool, "epoch": 1},
    }
    (scene.folder / "committee.json").write_text(json.dumps(committee))
    (scene.folder / "parameters.json").write_text(json.dumps(PARAMETERS))


def parse(said, nodes):
    """Figures of its own parser, and of the nodes' logs. It has no percentiles: they are of the
    samples that its mean is of."""
    read = json.loads(said.splitlines()[-1])
    if not read["samples"]:
        raise Trouble("nothing was committed")
    figures = {**latencies(read["samples"]), **summary(read["summary"])}
    return {**figures, "slowest_share": slowest_share(nodes)}


def summary(text):
    """Rate, mean and seconds from the summary that `fab local` prints."""
    line = r"{}: ([\d,]+) "
    names = ["End-to-end TPS", "End-to-end latency", "Execution time"]
    found = [re.search(line.format(name), text) for name in names]
    if None in found:
        raise Trouble(f"no figures in its summary:\n{text}")
    rate, mean, seconds = (int(match.group(1).replace(",", "")) for match in found)
    return {"rate_committed": rate, "mean_ms": mean, "seconds": seconds}


def slowest_share(logs):
    """Batches that the slowest node committed, beside the quickest: its parser takes the earliest
    commit of any node, and so does not notice one that is left behind."""
    counts = [len(set(re.findall(r"Committed B\d+ -> ([^ ]+=)", log))) for log in logs]
    return round(min(counts) / max(counts), 3)
