"""What a job, service or node must have at least, by hand: just enough is no finding, a unit less
is one that says both numbers."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations_with_replacement

import pytest

from gpuplan.findings import Verdict
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cluster import Cluster, GpuCores, Machine
from gpuplan.units import GIB, KIB, MIB
from tests.support.policy_samples import judge, stack, with_workload
from tests.support.samples import serving_plan

# Of the plan below: 3 replicas of 2 nodes, each of 4 GPUs, 13 cores, 10 GiB and a byte.
CORES, MEMORY = 13, 10 * GIB + 1
PART = (2560 * MIB + MIB, "B")  # a GPU's quarter, in whole mebibytes
KEPT, OWN = 4 * GIB, 64 * GIB  # of a machine, by the system


def beside(first: int, last: int, first_core: int, last_core: int) -> GpuCores:
    return GpuCores(first=first, last=last, first_core=first_core, last_core=last_core)


def machine(**changes: object) -> Machine:
    values: dict[str, object] = {
        "names": ("gpu-01", "gpu-02"),
        "gpu": "h100-sxm-80gb",
        "gpu_product": "NVIDIA-H100-80GB-HBM3",
        "gpus": 8,
        "sockets": 2,
        "cores": 112,
        "threads_per_core": 2,
        "memory_bytes": OWN,
        "kept_cores": 4,
        "kept_memory_bytes": KEPT,
        "gpu_cores": (beside(0, 3, 0, 55), beside(4, 7, 56, 111)),
    }
    return Machine(**(values | changes))  # type: ignore[arg-type]


def planned(*machines: Machine) -> Plan:
    plan = serving_plan()
    cluster = Cluster(
        controller="c", database="c", storage="/s", containers="pyxis", machines=machines
    )
    need = replace(plan.workloads[0].resources, cpu_cores=CORES, host_memory_bytes=MEMORY)
    return with_workload(
        replace(plan, cluster=cluster if machines else None),
        nodes_per_replica=2,
        gpus_per_node=4,
        resources=need,
    )


def told(plan: Plan, file: str, text: str, rule: str = "GP311") -> list[Verdict]:
    return [v for v in judge(stack(plan, **{file: text})) if v.rule == rule]


def numbers(plan: Plan, file: str, text: str) -> list[tuple[float | None, float | None, str]]:
    return [(v.requested, v.capacity, v.unit) for v in told(plan, file, text)]


@pytest.mark.parametrize(
    ("option", "enough", "less", "needed"),
    [
        ("--nodes", "2", {"1": 1, "1-2": None, "two": None}, (2, "nodes")),
        ("--gpus-per-node", "4", {"3": 3, "h100:3": 3}, (4, "GPUs")),
        ("--gpus-per-node", "h100:4", {"h100": None, "": None}, (4, "GPUs")),
        ("--gpus", "8", {"7": 7}, (8, "GPUs")),
        ("--cpus-per-gpu", "8", {"7": 7}, (8, "CPUs")),  # four cores of two threads
        ("--mem-per-gpu", "2561", {"2560": 2560 * MIB, "2560M": 2560 * MIB}, PART),
        ("--mem-per-gpu", "2622464K", {"2622463k": 2561 * MIB - KIB, "2g": 2 * GIB}, PART),
        ("--mem-per-gpu", "3G", {"2G": 2 * GIB, "0T": 0, "3.0G": None, "3B": None}, PART),
        ("--mem-per-gpu", "1T", {"G": None}, PART),
        ("--array", "0-2", {"0-1": 2, "7": 1, "0-3:2": None}, (3, "tasks")),
        ("--array", "1,5-6", {"1,5": 2, "1,": None}, (3, "tasks")),
        ("--array", "0-2%1", {"1-2%9": 2}, (3, "tasks")),
        ("--array", "9-11", {"9-10": 2, "2-1": 0}, (3, "tasks")),
    ],
)
def test_a_job_has_what_the_plan_gives_it(
    option: str, enough: str, less: dict[str, int | None], needed: tuple[int, str]
) -> None:
    plan = planned(machine(names=("other",), threads_per_core=8), machine())
    assert told(plan, "jobs/assistant.sbatch", f"#SBATCH {option}={enough}\n") == []
    for value, given in less.items():
        text = f"\n#SBATCH {option}={value}\n"
        [found] = told(plan, "jobs/assistant.sbatch", text)
        assert (found.requested, found.unit, found.capacity) == (*needed, given)
        assert (found.resource, found.path, found.line) == ("job/assistant", option, 2)


def test_a_core_of_machines_that_nobody_describes_is_one_cpu() -> None:
    text = "#SBATCH --cpus-per-gpu=3\n"
    for plan in (planned(), planned(machine(names=("other",)))):
        assert numbers(plan, "jobs/assistant.sbatch", text) == [(4, 3, "CPUs")]


SERVICES = {
    "compose.yaml": ("services:\n  assistant-2:\n", "mem_limit", "cpuset", '    {}: "{}"\n'),
    "quadlet/chat-assistant-2.container": (
        "[Container]\n\n", "--memory", "--cpuset-cpus", "PodmanArgs={}={}\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize("file", SERVICES)
def test_a_service_has_what_the_plan_gives_it(file: str) -> None:
    head, memory, cores, row = SERVICES[file]

    def said(name: str, value: str) -> list[tuple[float | None, float | None, str]]:
        return numbers(planned(), file, head + row.format(name, value))

    for value in (f"{MEMORY}", f"{10 * MIB + 1}k", f"{10 * KIB + 1}M", "11g", "11G", "1t"):
        assert said(memory, value) == [], value
    for value, given in ((MEMORY - 1, MEMORY - 1), ("10g", 10 * GIB), ("10240m", 10 * GIB)):
        assert said(memory, f"{value}") == [(MEMORY, given, "B")]
    assert said(memory, "11 g") == said(memory, "much") == [(MEMORY, None, "B")]
    for value in ("0-12", "0-5,7-13", "1,2,3,4-13", "0-9,5-12", "0-12,0-12", "${CPUS}"):
        assert said(cores, value) == [], value
    for value, given in (("0-11", 12), ("0-9,5-11", 12), ("0-5,0-5,6", 7), ("3", 1), ("5-4", 0)):
        assert said(cores, value) == [(CORES, given, "cores")], value
    assert said(cores, "0-12,x") == said(cores, "$CPUS") == [(CORES, None, "cores")]
    assert told(planned(), file, head + row.format("image", "x:1")) == []


def test_cpus_that_overlap_are_counted_once() -> None:
    """Against a set of them, of all pairs of short spans."""
    spans = [(a, b) for a in range(4) for b in range(a, 4)]
    for (a, b), (c, d) in combinations_with_replacement(spans, 2):
        count = len({*range(a, b + 1), *range(c, d + 1)})
        text = f"services:\n  assistant-0:\n    cpuset: {c}-{d},{a}-{b}\n"
        assert numbers(planned(), "compose.yaml", text) == [(CORES, count, "cores")]


@pytest.mark.parametrize(
    ("row", "found"),
    [
        ("assistant-0 0,1,2,3 - 13", []),
        ("assistant-0 0,1,2,3 - 12", [(CORES, 12, "cores")]),
        ("assistant-0 0,1,2,3 - x", [(CORES, None, "cores")]),
        ("assistant-0 0,1,2 - 14", [(4, 3, "GPUs")]),
        ("assistant-0 0,1,2,2 - 13", [(4, 3, "GPUs")]),
        ("assistant-0 0 - 1", [(CORES, 1, "cores"), (4, 1, "GPUs")]),
        ("assistant-2 0 - 13", [(4, 1, "GPUs")]),
        ("assistant-3 0 - 1", []),  # of no replica
        ("assistant-0 0,1,2,3 -", []),  # no row
    ],
)
def test_a_container_is_given_what_the_plan_gives_it(
    row: str, found: list[tuple[float, float | None, str]]
) -> None:
    text = f"table() {{\n    cat <<'END'\n{row}\nEND\n}}\n"
    assert numbers(planned(), "assign.sh", text) == found


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ("RealMemory=61440", []),
        ("RealMemory=61441", [(60 * GIB, 61441 * MIB, "B")]),
        ("RealMemory=60G", [(60 * GIB, None, "B")]),
        ("Gres=gpu:8", []),
        ("Gres=gpu:h100:9", [(8, 9, "GPUs")]),
        ("Gres=gpu:9", [(8, 9, "GPUs")]),
        ("Gres=gpu:h100:4,gpu:a100:5", [(8, 9, "GPUs")]),
        ("Gres=gpu:h100:4,gpu:1g.10gb:49", []),
        ("Gres=gpu:h100:8,shard:32", []),
        ("Gres=gpu:h100", []),
        (f"Gres=gpu:{'9' * 18}", [(8, 10**18 - 1, "GPUs")]),
        (f"Gres=gpu:{'9' * 19}", [(8, 10**18, "GPUs")]),
        ("CPUs=1", []),
    ],
)
def test_a_node_has_no_more_than_its_machine(
    fields: str, found: list[tuple[float, float | None, str]]
) -> None:
    plan = planned(machine(names=("other",), gpus=1, memory_bytes=KEPT), machine())
    assert numbers(plan, "etc/slurm.conf", f"NodeName=gpu-02 {fields}\n") == found
    assert numbers(plan, "etc/slurm.conf", f"NodeName=unknown {fields}\n") == []


def test_cores_of_gpus_are_those_beside_them() -> None:
    """Of all lines of up to eight devices: those of one half alone may have that half's cores."""
    plan = planned(machine())
    halves = {(0, 55): range(4), (56, 111): range(4, 8)}
    for first, last in combinations_with_replacement(range(8), 2):
        for (low, high), own in halves.items():
            files = f"/dev/nvidia[{first}-{last}]" if first < last else f"/dev/nvidia{first}"
            line = f"NodeName=gpu-01 Name=gpu File={files} Cores={low}-{high}\n"
            found = told(plan, "etc/gres.conf", line, "GP306")
            assert bool(found) == (not {first, last} <= {*own}), line
            assert [v.path for v in found] == [f"{files}.Cores" for _ in found]


@pytest.mark.parametrize(
    ("line", "near"),
    [
        ("File=/dev/nvidia[0-3] Cores=0-55", None),
        ("File=/dev/nvidia[0-3] Cores=55", None),
        ("File=/dev/nvidia[0-3] Cores=0-56", "0-55"),
        ("File=/dev/nvidia[4-7] Cores=55-111", "56-111"),
        ("File=/dev/nvidia[4-7] Cores=60,112", "56-111"),
        ("File=/dev/nvidia[0-7] Cores=0-111", "0-111"),
        ("File=/dev/nvidia[0-7] Cores=0-112", "0-111"),
        ("File=/dev/nvidia[0-3] Cores=all", "0-55"),
        ("File=/dev/nvidia[8-9] Cores=200", None),
        ("File=/dev/gpu Cores=200", None),
        ("File=/dev/nvidia[0-3]", None),
        ("AutoDetect=nvml Cores=200", None),
    ],
)
def test_cores_are_held_to_those_that_the_inventory_has_beside_the_gpus(
    line: str, near: str | None
) -> None:
    plan = planned(machine())
    found = told(plan, "etc/gres.conf", f"NodeName=gpu-01 {line}\n", "GP306")
    assert [v.message.rpartition("cores ")[2] for v in found] == ([near] if near else [])
    for other in (machine(gpu_cores=()), machine(names=("other",))):
        assert told(planned(other), "etc/gres.conf", f"NodeName=gpu-01 {line}\n", "GP306") == []


@pytest.mark.parametrize(
    ("file", "wrong", "right"),
    [
        (
            "etc/gres.conf",
            "NodeName=gpu-01 File=/dev/nvidia[0-3] Cores=99",
            (
                "NodeName=gpu-02 File=/dev/nvidia[0-3] Cores=0-55",
                "NodeName=gpu-02 File=/dev/nvidia[8-9] Cores=0-55",
                "NodeName=gpu-02 File=/dev/nvidia[4-7]",
                "NodeName=gpu-02 AutoDetect=nvml",
                "NodeName=other File=/dev/nvidia[0-3] Cores=99",
            ),
        ),
        (
            "etc/slurm.conf",
            "NodeName=gpu-01 Gres=gpu:9",
            ("NodeName=gpu-02 Gres=gpu:1", "NodeName=other Gres=gpu:9", "PartitionName=p Nodes=a"),
        ),
        (
            "assign.sh",
            "table() {\nassistant-0 0 - 13",
            ("echo a b c d", "table() {\nassistant-1 0,1,2,3 - 13", "table() {\nother 0 - 1"),
        ),
    ],
)
def test_what_is_in_order_or_nobodys_hides_nothing_beside_it(
    file: str, wrong: str, right: tuple[str, ...]
) -> None:
    plan = planned(machine())
    for rows in ((*right, wrong), (wrong, *right)):
        judged = judge(stack(plan, **{file: "\n".join(rows)}))
        assert [v.rule for v in judged] == ["GP306" if "gres" in file else "GP311"], rows


def test_gpus_of_two_numa_nodes_with_the_same_cores_are_one_place() -> None:
    both = (beside(0, 3, 0, 55), beside(4, 7, 0, 55))
    line = "NodeName=gpu-01 File=/dev/nvidia[0-7] Cores=0-55\n"
    assert told(planned(machine(gpu_cores=both)), "etc/gres.conf", line, "GP306") == []
    assert told(planned(machine()), "etc/gres.conf", line, "GP306") != []
