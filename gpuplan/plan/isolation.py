"""Whom a workload shares nodes and GPUs with: one rule for sizing, placement, packing and pods.

`shared`: anyone. `gpu`: only its own tenant is on its GPUs. `node`: only its own tenant is on its
nodes. `vm`: anyone, but it runs in virtual machines of its own.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

Isolation = Literal["shared", "gpu", "node", "vm"]
Neighbours = Literal["shared", "gpu", "node"]

_STRICTEST: tuple[Isolation, ...] = ("vm", "node", "gpu", "shared")


def strictest(isolations: Iterable[Isolation]) -> Isolation:
    asked = set(isolations)
    return next(i for i in _STRICTEST if i in asked)


def neighbours(isolation: Isolation) -> Neighbours:
    """What it asks of those beside it; a virtual machine asks nothing of them."""
    return "shared" if isolation == "vm" else isolation


def own_node(isolation: Isolation) -> bool:
    """Whether no other tenant is on its nodes."""
    return isolation == "node"


def own_gpu(isolation: Isolation) -> bool:
    """Whether no other tenant is on its GPUs, though one may be on its nodes."""
    return isolation == "gpu"


def own_pool(isolation: Isolation, *, partitioned: bool) -> bool:
    """Whether its tenant has node pools of its own: a scheduler counts instances, and does not know
    which of them are on one GPU."""
    return own_node(isolation) or (own_gpu(isolation) and partitioned)


def share_a_gpu(one: Isolation, another: Isolation, *, same_tenant: bool) -> bool:
    """Whether two workloads may be on parts of one GPU."""
    return same_tenant or not (own_gpu(one) or own_gpu(another))


def guarded(isolation: Isolation) -> bool:
    """Whether it may be on a time slice, where nothing keeps others from its memory: its own tenant
    alone is on the GPU."""
    return own_gpu(isolation) or own_node(isolation)
