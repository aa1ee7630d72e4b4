"""The cores that run what a hypervisor does for its guests."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.plan.site import Core, NumaNode


def helpers(nodes: Sequence[NumaNode], number: int) -> tuple[Core, ...]:
    """Cores for the emulators and I/O threads of guests on node `number`: those that the host keeps
    there, else those that it keeps on the nodes that are nearest."""
    home = next((node for node in nodes if node.node == number), None)
    if home is None or home.reserved_cores:
        return home.reserved_cores if home else ()
    far = dict(zip((node.node for node in nodes), home.distances, strict=False))
    keepers = [node for node in nodes if node.reserved_cores]
    least = min((far.get(node.node, 0) for node in keepers), default=0)
    near = (node for node in keepers if far.get(node.node, 0) == least)
    return tuple(core for node in near for core in node.reserved_cores)
