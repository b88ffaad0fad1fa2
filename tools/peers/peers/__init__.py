"""Systems that are measured beside Quorate, a module each.

A module has `NAME`, `NODES` (how many by default), `LIARS` (true if it survives nodes that lie, and
not only crashes), `BESIDE` (options of `quorate bench` that come closest to what it does),
`build()`, and `run(load, scene)`, which gives the figures that the system's own tool says.
"""

from . import cometbft, etcd, hotstuff

ALL = {peer.NAME: peer for peer in (hotstuff, cometbft, etcd)}
