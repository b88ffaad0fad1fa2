"""Quorate beside a peer: `quorate bench`, with options that come closest to what the peer does."""

import json
import os
import shlex
import subprocess

from . import machine
from .building import ROOT, Trouble
from .figures import result

NAME = "quorate"


def measure(peer, load):
    """One result under the same load, of a committee that survives as many faults."""
    program = os.environ.get("QUORATE", ROOT / "target" / "release" / "quorate")
    # Whoever only survives crashes needs fewer nodes for a fault.
    nodes = load.nodes if peer.LIARS else 3 * ((load.nodes - 1) // 2) + 1
    here = load._replace(nodes=nodes)
    argv = [program, "bench", "-n", here.nodes, "--rate", here.rate, "--duration", here.seconds]
    argv += ["--tx-bytes", here.bytes, *peer.BESIDE, "--no-bounds", "--json", "--quiet"]
    argv = [str(argument) for argument in argv]
    look = machine.Look()
    try:
        ended = subprocess.run(argv, capture_output=True, text=True)
    except OSError as error:
        raise Trouble(f"{program}: {error.strerror}; cargo build --release, or set QUORATE")
    if ended.returncode:
        raise Trouble(f"`{shlex.join(argv)}` failed:\n{ended.stderr.strip()}")
    return parse(ended.stdout, here, look.end())


def parse(text, load, seen):
    """The result in the peers' terms."""
    said = json.loads(text)
    at = said["config"]["machine"]
    cpu = said["cpu_seconds"]
    figures = {
        "rate_offered": round(said["offered_tps"]),
        "rate_committed": round(said["committed_tps"]),
        "seconds": load.seconds,
        **{f"{name}_ms": round(said["latency_ms"][name], 1) for name in ("p50", "p99", "mean")},
        "cores_nodes": None if cpu is None else round(cpu / load.seconds, 2),
        **seen,
    }
    version = f"{at['version']} ({at['commit']})"
    return result(NAME, version, load, figures)
