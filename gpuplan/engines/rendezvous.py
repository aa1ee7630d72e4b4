"""Where the processes of a run under torchrun meet."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.engines.launch import Argument, Indexed
from gpuplan.plan.model import Workload

RENDEZVOUS_PORT = 29500  # torchrun's own default


def rendezvous(workload: Workload, first: str) -> Iterator[Argument]:
    """A run on one node meets there: its target need not give `first` a name that resolves."""
    yield f"--nnodes={workload.nodes_per_replica}"
    if workload.nodes_per_replica == 1:
        yield "--standalone"
        return
    yield Indexed(before="--node-rank=")
    yield f"--master-addr={first}"
    yield f"--master-port={RENDEZVOUS_PORT}"
