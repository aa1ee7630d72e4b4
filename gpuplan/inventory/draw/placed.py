"""What stands on a host: from a stack's plan, or from the answer of `gpuplan pack --json`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from gpuplan.inventory.v1 import HostSpec, Inventory
from gpuplan.plan.drawing import Share
from gpuplan.plan.partitions import placed
from gpuplan.units import plural


@dataclass(slots=True)
class Placement:
    """Of one host. GPUs by number or address, other devices by address; CPUs by NUMA node. `notes`
    say what is placed on the host as a whole."""

    gpus: dict[int | str, list[Share]] = field(default_factory=dict)
    devices: dict[str, list[Share]] = field(default_factory=dict)
    reserved: dict[int, list[int]] = field(default_factory=dict)
    pinned: dict[int, list[tuple[str, list[int]]]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)

    def of_gpu(self, number: int, address: str | None) -> Sequence[Share]:
        return [*self.gpus.get(number, ()), *self.gpus.get(address or "", ())]

    def of(self, address: str | None) -> Sequence[Share]:
        return self.devices.get(address or "", ())


def of_plan(plan: Mapping[str, Any], name: str) -> Placement:
    """What the plan puts on host `name`."""
    placement = Placement()
    for host in plan.get("hosts", ()):
        if host["name"] == name:
            for node in host.get("numa_nodes", ()):
                kept = [cpu for core in node.get("reserved_cores", ()) for cpu in core["cpus"]]
                placement.reserved[node["node"]] = kept
    for guest in plan.get("virtual_machines", ()):
        if guest["host"] == name:
            _guest(placement, guest)
    for pool in () if placement.reserved else plan.get("node_pools", ()):
        if name in pool.get("node_names", ()):
            placement.notes += _pool(plan, pool)
            _cuts(placement, pool, name)
    return placement


def _cuts(placement: Placement, pool: Mapping[str, Any], name: str) -> None:
    """How a pool's node is cut; whose an instance is, the scheduler says."""
    for layout in pool.get("layouts", ()):
        for cut in layout["gpus"] if name in layout.get("node_names", ()) else ():
            instances = sorted(cut["instances"], key=lambda i: int(i["start"]))
            for gpu in cut["gpus"]:
                placement.gpus[int(gpu)] = [Share(part=_row(instances), owner="")]


def _row(instances: Sequence[Mapping[str, Any]]) -> str:
    """`1g.20gb@0,6 1g.10gb@2-5`: each profile with its first slices."""
    starts: dict[str, list[int]] = {}
    for instance in instances:
        starts.setdefault(str(instance["profile"]), []).append(int(instance["start"]))
    return " ".join(placed(profile, at) for profile, at in starts.items())


def _guest(placement: Placement, guest: Mapping[str, Any]) -> None:
    for cell in guest.get("cells", ()):
        cpus = [pin["cpu"] for pin in cell.get("pins", ())]
        placement.pinned.setdefault(cell["host_node"], []).append((guest["name"], cpus))
    for device in guest.get("devices", ()):
        address = device.get("parent") or device["address"]
        kind = placement.gpus if device["kind"] in {"gpu", "vgpu"} else placement.devices
        function = device["address"] if device.get("parent") else ""
        part = device.get("vgpu_type") or function
        kind.setdefault(address, []).append(Share(part=part, owner=guest["name"]))


def _pool(plan: Mapping[str, Any], pool: Mapping[str, Any]) -> Iterator[str]:
    """Which pods a pool's nodes get; on which node each runs, the cluster's scheduler says."""
    nodes = len(pool.get("node_names", ()))
    spread = "" if nodes == 1 else f" over {nodes} nodes, as the scheduler places them"
    for workload in plan.get("workloads", ()):
        if workload.get("node_pool") == pool["name"]:
            each = workload["gpus_per_node"]
            part = workload.get("partition")
            taken = f"one {part}" if part else plural(each, "GPU")
            pods = workload["replicas"] * workload["nodes_per_replica"]
            yield f"{workload['name']}: {pods} × {taken}{spread}"


def of_pack(answer: Mapping[str, Any], inventory: Inventory, name: str) -> Placement:
    """What the packer puts on host `name`. Raises KeyError, TypeError, ValueError where the answer
    is none."""
    placement = Placement()
    for row in answer["placed"]:
        if _host(row, inventory) == name:
            mode, start = row.get("part") or "", row.get("start")
            part = placed(mode, (start,)) if mode and start is not None else mode
            share = Share(part=part, owner=f"{row['request']}-{int(row['number'])}")
            for gpu in row["gpus"]:
                placement.gpus.setdefault(int(gpu), []).append(share)
    for shares in placement.gpus.values():
        shares.sort(key=lambda s: (_start(s.part), s.owner))
    return placement


def _start(part: str) -> int:
    number = part.rpartition("@")[2]
    return int(number) if number.isdecimal() else -1


def _host(row: Mapping[str, Any], inventory: Inventory) -> str | None:
    """The host's name: as the answer has it, else by its type's name and number."""
    if row.get("host_name"):
        return str(row["host_name"])
    kinds = [h for h in inventory.hosts if row["host_type"] in {_kind(h), *h.names}]
    names = [n for h in kinds for n in h.names]
    number = int(row["host"])
    return names[number] if 0 <= number < len(names) else None


def _kind(spec: HostSpec) -> str:
    """What the packer calls a kind of host."""
    count = sum(g.count or 1 for g in spec.gpus)
    return spec.node_type or (f"{count}x-{spec.gpus[0].type}" if spec.gpus else "")
