"""Rules that hold what was written for a scheduler or for Compose to the plan."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from itertools import pairwise

from gpuplan.plan.model import Plan, Workload
from gpuplan.plan.outside.cluster import Machine
from gpuplan.plan.outside.objects import GPUS, JOB, NODE, SERVICE, SHARE, UNIT, Setting, Written
from gpuplan.policy.api import Finding, Subject
from gpuplan.units import KIB, MIB

LESS, MORE = "less than the plan gives it", "more than its machine has"
_NUMBERS = re.compile(r"\d+")
_SPAN = re.compile(r"(\d+)(?:-(\d+))?")
_MEMORY = re.compile(r"(\d+)([KMGT]?)", re.IGNORECASE)
MOST_DIGITS = 18
_UNITS = {"": 1, "K": KIB, "M": MIB, "G": 1024 * MIB, "T": 1024**2 * MIB}


def less_than_planned(subject: Subject) -> Iterator[Finding]:
    """A job, service or node has less than the plan gives it.

    Why: what was sized and judged is the plan. A script that was edited to ask for fewer cores or
    less memory starts, and its GPUs wait for the CPU or the kernel kills it; a node that is said to
    have more memory than it has is drained.

    Looks at: batch scripts (nodes, GPUs, cores and memory for each GPU, tasks of the array),
    `RealMemory` and `Gres` of the nodes in slurm.conf, `mem_limit` and `cpuset` of Compose's
    services, the GPUs and cores that assign.sh gives each, and what Podman's units have of both.

    Threshold: none; the plan's numbers. More than them is no finding, but for the memory and the
    GPUs of a node, of which it cannot have more than the inventory says.

    Fix: change the manifest (`overrides.cpu_cores_per_gpu`, `overrides.host_memory_per_gpu`) and
    compile again.

    Silent: about settings that a file does not have; about jobs and services that are not of the
    plan.
    """
    plan = subject.plan
    work = {w.name: w for w in plan.workloads}
    names = {f"{w.name}-{index}": w for w in plan.workloads for index in range(w.replicas)}
    machines = _machines(plan)
    for item in subject.written:
        if item.kind == JOB and item.name in work:
            yield from _job(item, work[item.name], plan)
        elif item.kind == SERVICE and item.name in names:
            yield from _memory(item, "mem_limit", names[item.name])
            yield from _processors(item, "cpuset", names[item.name])
        elif item.kind == SHARE and item.name in names:
            yield from _share(item, names[item.name])
        elif item.kind == UNIT and (own := _container(item, plan)) in names:
            yield from _memory(item, "--memory", names[own])
            yield from _processors(item, "--cpuset-cpus", names[own])
        elif item.kind == NODE and item.name in machines:
            yield from _node(item, machines[item.name])


def _job(item: Written, work: Workload, plan: Plan) -> Iterator[Finding]:
    gpus, need = work.gpus_per_node, work.resources
    pool = next(p for p in plan.node_pools if p.name == work.node_pool)
    threads = next(
        (m.threads_per_core for n, m in _machines(plan).items() if n in pool.node_names), 1
    )
    wanted = {
        "--nodes": (work.nodes_per_replica, "nodes"),
        "--gpus-per-node": (gpus, "GPUs"),
        "--gpus": (gpus * work.nodes_per_replica, "GPUs"),
        "--cpus-per-gpu": (math.ceil(need.cpu_cores / gpus) * threads, "CPUs"),
        "--mem-per-gpu": (math.ceil(need.host_memory_bytes / gpus / MIB) * MIB, "B"),
        "--array": (work.replicas, "tasks"),
    }
    for name, (least, unit) in wanted.items():
        setting = item.get(name)
        given = _given(setting) if setting else None
        if setting and (given is None or given < least):
            yield _finding(item, setting, given, (least, unit), LESS)


def _whole(digits: str) -> int:
    """A number that is longer than any that is meant is a large one, and no work."""
    return int(digits) if len(digits) <= MOST_DIGITS else 10**MOST_DIGITS


def _plain(text: str) -> int | None:
    return _whole(text) if text.isdecimal() else None


def _ends(match: re.Match[str]) -> tuple[int, int]:
    return _whole(match[1]), _whole(match[2] or match[1])


def _covered(spans: Iterable[tuple[int, int]]) -> int:
    """How many numbers stand in spans that may overlap."""
    count, after = 0, 0
    for first, last in sorted(spans):
        count += max(0, last + 1 - max(first, after))
        after = max(after, last + 1)
    return count


def _given(setting: Setting) -> int | None:
    """None where nobody can tell."""
    if setting.name == "--mem-per-gpu":
        match = _MEMORY.fullmatch(setting.value)
        unit = (match[2] or "M").upper() if match else ""
        return _whole(match[1]) * _UNITS[unit] if match else None
    if setting.name == "--array":
        spans = [_SPAN.fullmatch(p) for p in setting.value.partition("%")[0].split(",")]
        if not all(spans):
            return None
        return sum(_whole(s[2] or s[1]) - _whole(s[1]) + 1 for s in spans if s)
    return _plain(setting.value.rpartition(":")[2])


def _memory(item: Written, name: str, work: Workload) -> Iterator[Finding]:
    setting = item.get(name)
    match = _MEMORY.fullmatch(setting.value) if setting else None
    if setting is None:
        return
    given = _whole(match[1]) * _UNITS[match[2].upper()] if match else None
    least = work.resources.host_memory_bytes
    if given is None or given < least:
        yield _finding(item, setting, given, (least, "B"), LESS)


def _processors(item: Written, name: str, work: Workload) -> Iterator[Finding]:
    """A list that stands there has at least a thread of each core; a variable is assign.sh's."""
    setting = item.get(name)
    if setting is None or setting.value.startswith("${"):
        return
    spans = [_SPAN.fullmatch(part) for part in setting.value.split(",")]
    given = _covered(_ends(s) for s in spans if s) if all(spans) else None
    if given is None or given < work.resources.cpu_cores:
        yield _finding(item, setting, given, (work.resources.cpu_cores, "cores"), LESS)


def _share(item: Written, work: Workload) -> Iterator[Finding]:
    gpus, cores = item.get("gpus"), item.get("cores")
    if cores is not None:
        given = _plain(cores.value)
        if given is None or given < work.resources.cpu_cores:
            yield _finding(item, cores, given, (work.resources.cpu_cores, "cores"), LESS)
    if gpus is not None:
        count = len(set(gpus.value.split(",")))
        if count < work.gpus_per_node:
            yield _finding(item, gpus, count, (work.gpus_per_node, "GPUs"), LESS)


def _container(item: Written, plan: Plan) -> str:
    """The container that a unit of Podman's starts."""
    return item.name.removeprefix(f"{plan.name}-").removesuffix(".container")


def _node(item: Written, machine: Machine) -> Iterator[Finding]:
    memory, gpus = item.get("RealMemory"), item.get("Gres")
    most = machine.memory_bytes - machine.kept_memory_bytes
    if memory is not None:
        number = _plain(memory.value)
        said = None if number is None else number * MIB
        if said is None or said > most:
            yield _finding(item, memory, said, (most, "B"), f"{MORE} without the system's")
    if gpus is not None:
        parts = [part.split(":") for part in gpus.value.split(",")]
        whole = [p for p in parts if p[0] == "gpu" and "." not in "".join(p[:-1])]
        count = sum(_plain(p[-1]) or 0 for p in whole)
        if count > machine.gpus:
            yield _finding(item, gpus, count, (machine.gpus, "GPUs"), MORE)


def _finding(
    item: Written, setting: Setting, given: int | None, limit: tuple[int, str], relation: str
) -> Finding:
    """`relation` is the text between what is given and the limit, a number with its unit."""
    wanted, unit = limit
    shown = f"{wanted // MIB} MiB" if unit == "B" else f"{wanted} {unit}"
    return Finding(
        resource=f"{item.kind}/{item.name}",
        path=setting.name,
        message=f"{item.kind} {item.name} has {setting.name} {setting.value}, {relation}: {shown}",
        help="change the manifest and compile again",
        requested=wanted,
        capacity=given,
        unit=unit,
        file=item.file,
        line=setting.line,
    )


def remote_cores(subject: Subject) -> Iterator[Finding]:
    """A node's GPUs are bound to cores that are not beside them.

    Why: Slurm gives a job the cores that gres.conf says are beside its GPUs. Where that is wrong,
    every transfer between host memory and GPU crosses the link between the sockets.

    Looks at: `Cores` of each line of gres.conf with device files, against the cores of the NUMA
    node on which the inventory has those GPUs.

    Threshold: none. Source: facts of the inventory (`numactl -H`, `nvidia-smi topo -m`).

    Fix: correct `numa_node` of the GPUs in the inventory, and compile again.

    Silent: for GPUs whose NUMA node the inventory does not state, and for nodes that are cut, whose
    GPUs slurmd asks NVML for.
    """
    machines = _machines(subject.plan)
    for item in subject.written:
        files, cores = item.get("File"), item.get("Cores")
        machine = machines.get(item.name.partition(":")[0]) if item.kind == GPUS else None
        if machine is None or files is None or cores is None or not machine.gpu_cores:
            continue
        numbers = [_whole(n) for n in _NUMBERS.findall(files.value)]
        near = [
            (c.first_core, c.last_core)
            for c in machine.gpu_cores
            if numbers and c.first <= max(numbers) and min(numbers) <= c.last
        ]
        if not near:
            continue
        low, high = min(a for a, _ in near), max(b for _, b in near)
        spans = [_SPAN.fullmatch(part) for part in cores.value.split(",")]
        ends = [_ends(s) for s in spans if s]
        outside = not all(spans) or any(a < low or b > high for a, b in ends)
        if outside or not _together(near):
            yield Finding(
                resource=f"node/{item.name.partition(':')[0]}",
                path=f"{files.value}.Cores",
                message=f"{files.value} of node {item.name.partition(':')[0]} is bound to cores"
                f" {cores.value}; the inventory has it beside cores {low}-{high}",
                help="correct the inventory and compile again",
                file=item.file,
                line=cores.line,
            )


def _together(spans: list[tuple[int, int]]) -> bool:
    """A line of GPUs of two NUMA nodes binds each to the cores of both."""
    return all(a == b for a, b in pairwise(spans))


def _machines(plan: Plan) -> dict[str, Machine]:
    every = plan.cluster.machines if plan.cluster else ()
    return {name: machine for machine in every for name in machine.names}
