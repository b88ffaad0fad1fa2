"""Figures of a run, under the same names for all systems."""

import math
from collections import namedtuple

from . import machine
from .scene import Scene

# Nodes, operations offered a second, seconds of load, bytes of an operation, and callers of etcd's
# load tool.
Load = namedtuple("Load", "nodes rate seconds bytes callers")


def percentile(values, share):
    """The value that a share of all values does not exceed: the nearest rank."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def latencies(seconds):
    """p50, p99 and mean in milliseconds of single latencies in seconds."""
    milliseconds = [1_000 * value for value in seconds]
    return {
        "p50_ms": round(percentile(milliseconds, 0.50), 1),
        "p99_ms": round(percentile(milliseconds, 0.99), 1),
        "mean_ms": round(sum(milliseconds) / len(milliseconds), 1),
    }


# What a result begins with, in the order in which it is read.
ORDER = "peer version nodes bytes rate_offered rate_committed p50_ms p99_ms mean_ms seconds".split()


def measure(system, version, load):
    """Runs a system under load: one result. Figures may know the version better."""
    look = machine.Look()
    with Scene(system.NAME) as scene:
        figures = system.run(load, scene)
    said = {"peer": system.NAME, "version": version, "nodes": load.nodes, "bytes": load.bytes}
    said = {**said, **figures, **look.end(), "machine": machine.here()}
    return {name: said[name] for name in [*ORDER, *(more for more in said if more not in ORDER)]}


def table(results):
    """Results as a table in Markdown, a row each, by rate."""
    columns = {
        "system": lambda r: f"{r['peer']} {r['version']}",
        "nodes": lambda r: r["nodes"],
        "offered/s": lambda r: f"{r['rate_offered']:,}",
        "committed/s": lambda r: f"{r['rate_committed']:,}",
        "p50 ms": lambda r: r["p50_ms"],
        "p99 ms": lambda r: r["p99_ms"],
        "mean ms": lambda r: r["mean_ms"],
        "cores": lambda r: r["cores_nodes"],
        "others": lambda r: "-" if r["others_share"] is None else f"{r['others_share']:.0%}",
    }
    ordered = sorted(results, key=lambda r: (r["rate_offered"], r["peer"]))
    rows = [list(columns), ["---"] * len(columns)]
    rows += [[str(cell(each)) for cell in columns.values()] for each in ordered]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in rows)
