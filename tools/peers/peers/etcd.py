"""etcd: Raft with a key-value store, in Go. Its nodes may crash, and may not lie.

The load is that of its own `tools/benchmark`, whose summary has the figures.
"""

import json
import re

from . import building
from .building import FOLDER, Trouble
from .scene import answer, free_ports

NAME = "etcd"
NODES = 3
LIARS = False
BESIDE = ["--service", "kv", "--durability", "fsync"]
VERSION = "v3.6.8"
MODULE = "go.etcd.io/etcd"
BIN = FOLDER / NAME / "bin"
KEYS = 100_000


def build():
    """Builds the server and its load tool."""
    parts = ["api", "client/pkg", "client", "pkg", "server", "etcdctl", "etcdutl", "tests"]
    folders = {"client": "client/v3"}
    modules = {f"{MODULE}/{part}/v3": folders.get(part, part) for part in parts}
    modules[f"{MODULE}/v3"] = "."
    packages = {"etcd": f"{MODULE}/server/v3", "benchmark": f"{MODULE}/v3/tools/benchmark"}
    building.go_build(NAME, VERSION, modules, packages)


def run(load, scene):
    """Puts to random keys by so many callers, each of which waits for its answer."""
    doors = start(load.nodes, scene)
    endpoints = ",".join(f"127.0.0.1:{port}" for port in doors)
    total = load.rate * load.seconds
    callers = ["--conns", min(load.callers, 100), "--clients", load.callers]
    puts = ["--total", total, "--rate", load.rate, "--val-size", load.bytes, "--key-size", 8]
    puts += ["--key-space-size", KEYS]
    cores = scene.cores()
    options = ["--endpoints", endpoints, "--precise", *callers, "put", *puts]
    text = scene.run("benchmark", BIN / "benchmark", *options, seconds=20 * load.seconds + 60)
    return {"rate_offered": load.rate, **parse(text), "cores_nodes": cores()}


def start(nodes, scene):
    """Starts nodes on loopback, and returns the ports of their clients once all have a leader."""
    ports = free_ports(2 * nodes)
    links, doors = ports[:nodes], ports[nodes:]
    cluster = ",".join(f"node-{i}=http://127.0.0.1:{port}" for i, port in enumerate(links))
    for i in range(nodes):
        link, door = (f"http://127.0.0.1:{port}" for port in (links[i], doors[i]))
        urls = ["--listen-peer-urls", link, "--initial-advertise-peer-urls", link]
        urls += ["--listen-client-urls", door, "--advertise-client-urls", door]
        options = ["--initial-cluster", cluster, "--data-dir", f"data-{i}", "--log-level", "error"]
        scene.start(f"node-{i}", BIN / "etcd", "--name", f"node-{i}", *urls, *options)
    scene.wait("all nodes to have a leader", lambda: all(map(healthy, doors)))
    return doors


def healthy(port):
    """Asks a node for its health: true if it has a leader and commits."""
    health = answer(f"http://127.0.0.1:{port}/health")
    return bool(health) and json.loads(health)["health"] == "true"


def parse(text):
    """Figures of its summary."""
    number = r"\s+([\d.e+-]+)"
    names = ["Requests/sec:", "Total:", "Average:", "50% in", "99% in"]
    found = [re.search(re.escape(name) + number, text) for name in names]
    if None in found:
        raise Trouble(f"no figures in its summary:\n{text[-500:]}")
    rate, seconds, *times = (float(match.group(1).rstrip(".")) for match in found)
    mean, p50, p99 = (round(1_000 * time, 1) for time in times)
    refused = sum(int(count) for count in re.findall(r"^  \[(\d+)\]\t", text, re.MULTILINE))
    figures = {"rate_committed": round(rate), "p50_ms": p50, "p99_ms": p99, "mean_ms": mean}
    return {**figures, "seconds": round(seconds, 1), "refused": refused}
