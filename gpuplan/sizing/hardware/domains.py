"""NVLink domains of several nodes: which groups of nodes lie inside one."""

from __future__ import annotations

from gpuplan.sizing.hardware.devices import Device


def in_domain(device: Device, nodes: int, spares: int = 0) -> bool:
    """Whether so many nodes lie in one NVLink domain, wherever a group of them is put, with the
    `spares` that stand by for it, which replace none of another domain: those of a domain divide
    into such groups, or there is one domain alone."""
    offer, group = device.offer, nodes + spares
    if nodes < 2 or group > offer.nvlink_nodes:
        return False
    count = offer.node_count
    return offer.nvlink_nodes % group == 0 or (count is not None and count <= offer.nvlink_nodes)
