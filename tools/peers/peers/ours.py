"""Quorate beside a peer: `quorate bench`, with options that come closest to what the peer does."""

import json
import os
import shutil

from .building import ROOT, Trouble


def program():
    """The binary: a release build, or what the user names."""
    path = os.environ.get("QUORATE", str(ROOT / "target" / "release" / "quorate"))
    if not shutil.which(path):
        raise Trouble(f"{path} is no program: cargo build --release, or set QUORATE")
    return os.path.abspath(shutil.which(path))


class Beside:
    """Quorate beside a peer, as a peer itself: a committee that survives as many faults."""

    NAME = "quorate"

    def __init__(self, peer):
        self.peer = peer

    def run(self, load, scene):
        """A committee and its load, which are one command."""
        nodes = validators(self.peer, load.nodes)
        argv = ["bench", "-n", nodes, "--rate", load.rate, "--duration", load.seconds]
        argv += ["--tx-bytes", load.bytes, *self.peer.BESIDE]
        argv += ["--dir", "committee", "--no-bounds", "--quiet", "--report", "result.json"]
        scene.run("bench", program(), *argv, seconds=5 * load.seconds + 120)
        return parse((scene.folder / "result.json").read_text())


def validators(peer, nodes):
    """Members of a committee that survives as many faults: crashes alone take fewer nodes."""
    return nodes if peer.LIARS else 3 * ((nodes - 1) // 2) + 1


def parse(text):
    """Its result in the peers' terms."""
    said = json.loads(text)
    config, cpu, took = said["config"], said["cpu_seconds"], said["latency_ms"]
    return {
        "version": f"{config['machine']['version']} ({config['machine']['commit']})",
        "nodes": config["validators"],
        "rate_offered": round(said["offered_tps"]),
        "rate_committed": round(said["committed_tps"]),
        "seconds": config["duration_s"],
        **{f"{name}_ms": round(took[name], 1) for name in ("p50", "p99", "mean")},
        "cores_nodes": None if cpu is None else round(cpu / config["duration_s"], 2),
    }
