"""Why a workload has a whole GPU or a part of one: `gpuplan explain STACK WORKLOAD.partition`.

Pure functions over the plan's plain tree.
"""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.wording import Tree
from gpuplan.units import format_quantity

ISOLATION = {
    "shared": "anyone may be beside it, on parts of one GPU too",
    "gpu": "only its own team is on its GPUs",
    "node": "only its own team is on its nodes",
    "vm": "anyone may be beside it, but it runs in virtual machines of its own",
}
WAYS = {
    "whole": "a whole GPU, which nobody else has a part of",
    "mig": "a MIG instance: compute, bandwidth and memory of its own",
    "best-effort": "turns on the whole GPU with the others on it, as the driver gives them; "
    "memory of its own",
    "turns": "turns on the whole GPU with the others on it, in equal shares; memory of its own",
}
LICENSED = "NVIDIA vGPU (AI Enterprise) on {gpus}: {cost}"
UNPRICED = "the cost per year is unknown; platform.vgpu_subscription may state it"
PRICED = "${total:,.0f} a year, ${each:,.0f} of a GPU, which its workloads pay once ({source})"
UNLICENSED = "none of NVIDIA's vGPU"
LOST = "live migration, and snapshots of a running guest: the guest owns its devices"
KEPT = "nothing"


def partition_facts(plan: Tree, work: Tree) -> Iterator[tuple[str, str]]:
    """What the choice rests on and what it costs, each with its name."""
    devices = [
        (d, _gpu(plan, m, d))
        for m in plan.get("virtual_machines", ())
        if m["workload"] == work["name"]
        for d in m["devices"]
        if d["kind"] in ("gpu", "vgpu")
    ]
    yield "task", str(work["task"])
    yield "isolation", f"{work['isolation']}: {ISOLATION[work['isolation']]}"
    yield "size", _size(plan, work)
    yield "gets", WAYS[_way(plan, work, devices)]
    if any(d["kind"] == "vgpu" for d, _ in devices):
        count = len({(m, a) for m, a in _shared(plan, work)})
        gpus = f"{count} GPU{'s' * (count > 1)}"
        yield "licence", LICENSED.format(gpus=gpus, cost=_licence_cost(plan, work))
    else:
        yield "licence", UNLICENSED
    yield "lost", LOST if devices else KEPT
    others = [a for a in work.get("alternatives", ()) if a["gpu"] == work["gpu"]]
    named = dict.fromkeys(str(a.get("partition") or "a whole GPU") for a in others)
    if named:
        yield "instead", f"overrides.partition takes another part; weighed: {', '.join(named)}"
    elif work.get("partition"):
        yield "instead", "overrides.partition takes another part, by MIG profile or vGPU type"


def _licence_cost(plan: Tree, work: Tree) -> str:
    name = f"{work['name']}.vgpu_subscription_usd_per_year"
    for entry in plan.get("evidence", ()):
        if entry["quantity"] == name:
            each = next(i for i in entry["inputs"] if i["name"] == "usd_per_gpu_year")
            return PRICED.format(total=entry["value"], each=each["value"], source=each["source"])
    return UNPRICED


def _shared(plan: Tree, work: Tree) -> Iterator[tuple[str, str]]:
    """Host and address of each GPU that the workload has a part of."""
    for machine in plan.get("virtual_machines", ()):
        if machine["workload"] == work["name"]:
            for device in machine["devices"]:
                if device["kind"] == "vgpu":
                    yield machine["host"], device.get("parent") or device["address"]


def _gpu(plan: Tree, machine: Tree, device: Tree) -> Tree:
    """The host's GPU that a guest's device is, or is a part of."""
    host = next(h for h in plan.get("hosts", ()) if h["name"] == machine["host"])
    address = device.get("parent") or device["address"]
    return next(d for d in host["devices"] if d["address"] == address)


def _way(plan: Tree, work: Tree, devices: list[tuple[Tree, Tree]]) -> str:
    from gpuplan.plan.site import HOST_SETTINGS

    if not work.get("partition"):
        return "whole"
    if not devices or devices[0][1].get("instances"):
        return "mig"
    names = {m["host"] for m in plan["virtual_machines"] if m["workload"] == work["name"]}
    left = [h for h in plan["hosts"] if "vgpu-scheduler" not in h.get("settings", HOST_SETTINGS)]
    return "best-effort" if names & {h["name"] for h in left} else "turns"


def _size(plan: Tree, work: Tree) -> str:
    budget = work.get("memory") or {}
    asked = sum(budget.get(n, 0) for n in budget if n.endswith("_bytes") and n not in _LIMITS)
    given = budget.get("capacity_bytes", 0)
    text = f"{format_quantity(asked, 'B')} needed, {format_quantity(given, 'B')} given"
    pools = [p for p in plan["node_pools"] if p["name"] == work.get("node_pool")]
    per = [
        s["per_gpu"]
        for p in pools
        for s in p.get("partitions", ())
        if s["name"] == work.get("partition")
    ]
    return f"{text}, {per[0]} on a GPU" if per else text


_LIMITS = ("capacity_bytes", "usable_bytes")
