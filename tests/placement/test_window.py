"""The host window: what is sized is what a pod or a guest is given, and what `explain` prints."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from fractions import Fraction
from math import ceil
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ruamel.yaml import YAML

from gpuplan.diagnostics import Severity
from gpuplan.kubernetes.lower import lower
from gpuplan.pipeline import Compiled, Result, compile_files
from gpuplan.plan import window
from gpuplan.plan.model import Plan, VirtualMachine
from gpuplan.sizing.evidence.formula import evaluate
from gpuplan.units import GB, GIB
from tests.support.placement_hosts import host

ROOT = Path(__file__).parents[2]
POLICIES = YAML(typ="safe").load((ROOT / "policies" / "builtin.yaml").read_text("utf-8"))


def manifest(target: str, users: int, isolation: str, **overrides: Any) -> dict[str, Any]:
    return {
        "apiVersion": "gpuplan.dev/v1",
        "name": "lab",
        "platform": {"target": target, "inventory": "hosts.yaml"},
        "workloads": [
            {
                "name": "desk",
                "task": "notebook",
                "notebook": {"users": users, "gpu_memory": "5 GiB"},
                "tenancy": {"isolation": isolation},
                "overrides": {name: value for name, value in overrides.items() if value},
            }
        ],
    }


def compiled(folder: Path, document: dict[str, Any], *hosts: dict[str, Any]) -> Result:
    inventory = {"apiVersion": "gpuplan.dev/inventory/v1", "name": "rack", "hosts": list(hosts)}
    (folder / "hosts.yaml").write_text(json.dumps(inventory), encoding="utf-8")
    (folder / "lab.yaml").write_text(json.dumps(document), encoding="utf-8")
    return compile_files([folder / "lab.yaml"])


def guests(folder: Path, spec: dict[str, Any], **overrides: Any) -> tuple[Result, Plan]:
    """One user a GPU, each with the whole of it."""
    document = manifest("libvirt", len(spec["gpus"]), "gpu", **overrides)
    result = compiled(folder, document, spec)
    assert result.stacks, [p.message for p in result.problems]
    return result, result.stacks[0].plan


def said(result: Result, rule: str) -> list[str]:
    return [p.message for p in result.problems if p.rule == rule]


def cores(machine: VirtualMachine) -> int:
    return sum(len(c.pins) for c in machine.cells) // machine.threads_per_core


def same_everywhere(result: Result) -> None:
    """Every guest and every pod has what its workload's record says, and the evidence too."""
    (stack,) = result.stacks
    plan = stack.plan
    (desk,) = plan.workloads
    evidence = {e.quantity: e.value for e in plan.evidence}
    given = (evidence["desk.cpu_cores"], evidence["desk.host_memory_bytes"])
    assert given == (desk.resources.cpu_cores, desk.resources.host_memory_bytes)
    texts = {f.path: f.text for f in stack.files}
    for machine in plan.virtual_machines:
        assert (cores(machine), machine.memory_bytes) == given
        domain = ET.fromstring(texts[f"hypervisor/libvirt/{machine.name}.xml"])
        memory, cpus = domain.find("memory"), domain.find("vcpu")
        assert memory is not None
        assert cpus is not None
        unit = {"GiB": GIB, "MiB": GIB >> 10, "KiB": GIB >> 20}[memory.get("unit") or ""]
        assert int(memory.text or 0) * unit == given[1]
        assert int(cpus.text or 0) == given[0] * machine.threads_per_core
    for item in lower(plan).objects if plan.target == "kubernetes" else ():
        if item.kind == "StatefulSet":
            pod = item.tree["spec"]["template"]["spec"]["containers"][0]["resources"]
            assert pod["requests"]["memory"].removesuffix("Gi") == str(int(given[1]) // GIB)
            threads = plan.node_pools[0].threads_per_core or 1
            assert pod["requests"]["cpu"] == str(int(given[0]) * threads)


# --- cores ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("node", "gpus", "each"), [(32, 2, 6), (14, 2, 6), (13, 2, 5), (10, 2, 4)])
def test_a_gpu_gets_six_cores_or_its_part_of_the_node(
    tmp_path: Path, node: int, gpus: int, each: int
) -> None:
    result, plan = guests(tmp_path, host([0] * gpus, nodes=1, cores=node))
    assert {cores(m) for m in plan.virtual_machines} == {each}
    assert said(result, "GP044") == []
    same_everywhere(result)


def test_scarce_cores_are_shared_and_said(tmp_path: Path) -> None:
    """Node 1 has least for each of its GPUs, and guests are the same on both."""
    spec = host([0, 1, 1], nodes=2, cores=9)
    result, plan = guests(tmp_path, spec)
    assert {cores(m) for m in plan.virtual_machines} == {3}
    assert said(result, "GP044") == [
        "'desk' gets 3 instead of 4 to 8 cores per GPU: that is its part of node 1 of hv-1"
    ]
    same_everywhere(result)


def test_four_cores_are_enough_and_three_are_said(tmp_path: Path) -> None:
    """A host keeps two cores of a node of ten, or of eight."""
    for node, scarce in ((10, False), (8, True)):
        result, _ = guests(tmp_path, host([0, 0], nodes=1, cores=node))
        assert bool(said(result, "GP044")) is scarce


def test_overrides_win_and_nothing_is_said_of_them(tmp_path: Path) -> None:
    spec = host([0, 0], nodes=1, cores=40, memory=256)
    result, plan = guests(tmp_path, spec, cpu_cores_per_gpu=12, host_memory_per_gpu="100.5 GiB")
    assert {cores(m) for m in plan.virtual_machines} == {12}
    assert {m.memory_bytes for m in plan.virtual_machines} == {101 * GIB}, "whole pages"
    assert said(result, "GP044") == []
    same_everywhere(result)


def test_an_override_that_no_node_has_is_refused_with_numbers(tmp_path: Path) -> None:
    document = manifest("libvirt", 2, "gpu", cpu_cores_per_gpu=12)
    result = compiled(tmp_path, document, host([0, 0], nodes=1, cores=20))
    (message,) = said(result, "GP041")
    assert message.endswith("cores of node 0: 12 asked, 12 of 18 taken, 6 short")


# --- memory --------------------------------------------------------------------------------------


def test_memory_is_the_gpus_own_in_whole_pages(tmp_path: Path) -> None:
    """An L40S reports 46,068 MiB."""
    result, plan = guests(tmp_path, host([0, 0], nodes=1, memory=512))
    assert {m.memory_bytes for m in plan.virtual_machines} == {45 * GIB}
    same_everywhere(result)


def test_scarce_memory_is_shared_and_said(tmp_path: Path) -> None:
    """100 GiB − 8 GiB for the host leave 23 GiB a GPU, of which 1 GiB is outside its guest."""
    result, plan = guests(tmp_path, host([0] * 4, nodes=1, memory=100))
    assert {m.memory_bytes for m in plan.virtual_machines} == {22 * GIB}
    (warning,) = said(result, "GP044")
    assert warning == (
        "'desk' gets 22 GiB instead of 45 GiB of memory per GPU: that is its part of node 0 of hv-1"
    )
    same_everywhere(result)


def test_below_sixteen_gb_a_gpu_there_is_no_guest(tmp_path: Path) -> None:
    """16 GB are 15 pages. Three guests of 15 and 1 GiB fit 52 GiB, a fourth does not."""
    result = compiled(tmp_path, manifest("libvirt", 4, "gpu"), host([0] * 4, nodes=1, memory=60))
    (message,) = said(result, "GP041")
    assert message == (
        "no room for 1 of 4 guests of 'desk' on hv-1: memory of node 0: 16 GiB asked, 48 GiB of "
        "52 GiB taken, 12 GiB short"
    )


def test_guests_are_equal_on_hosts_that_are_not(tmp_path: Path) -> None:
    small = host([0, 0], nodes=1, memory=64, cores=12) | {"names": ["small"]}
    document = manifest("libvirt", 2, "gpu")
    document["workloads"].append(document["workloads"][0] | {"name": "second"})
    result = compiled(tmp_path, document, host([0, 0], nodes=1), small)
    plan = result.stacks[0].plan
    assert len({m.host for m in plan.virtual_machines}) == 2
    assert {m.memory_bytes for m in plan.virtual_machines} == {27 * GIB}
    assert [w.resources.host_memory_bytes for w in plan.workloads] == [27 * GIB] * 2
    assert "node 0 of small" in said(result, "GP044")[0]


# --- everywhere the same -------------------------------------------------------------------------


@st.composite
def specs(draw: st.DrawFn) -> dict[str, Any]:
    nodes = draw(st.integers(1, 3))
    functions = {
        number: {"virtual_functions": [f"0000:{16 + number:02x}:{f // 8 + 1:02x}.{f % 8}"
                                       for f in range(8)]}
        for number in range(8)
    }  # fmt: skip
    spec = host(
        [draw(st.integers(0, nodes - 1)) for _ in range(draw(st.integers(1, 5)))],
        nodes=nodes,
        cores=draw(st.integers(4, 40)),
        memory=draw(st.sampled_from([24, 64, 96.5, 200, 511.3])),
        threads=draw(st.sampled_from([1, 2])),
        gpu=functions,
    )
    if draw(st.booleans()):
        spec["hypervisor"] |= {"reserved_cores": 3, "reserved_memory": "5 GiB"}
    return spec


@settings(max_examples=40)
@given(
    specs(),
    st.sampled_from(["gpu", "shared"]),
    st.sampled_from([None, None, 1, 5, 9]),
    st.sampled_from([None, None, "3 GiB", "20.5 GiB", "40 GB"]),
)
def test_what_is_explained_is_what_guests_get(
    tmp_path_factory: pytest.TempPathFactory,
    spec: dict[str, Any],
    isolation: str,
    cores_per_gpu: int | None,
    host_memory_per_gpu: str | None,
) -> None:
    document = manifest(
        "libvirt", len(spec["gpus"]), isolation,
        cpu_cores_per_gpu=cores_per_gpu, host_memory_per_gpu=host_memory_per_gpu,
    )  # fmt: skip
    result = compiled(tmp_path_factory.mktemp("window"), document, spec)
    if not result.stacks:
        assert any(p.severity is Severity.ERROR for p in result.problems)
        return
    same_everywhere(result)
    (desk,) = result.stacks[0].plan.workloads
    if desk.partition is None and cores_per_gpu is None:
        assert 1 <= desk.resources.cpu_cores <= window.MOST_CORES
    if desk.partition is None and host_memory_per_gpu is None:
        assert desk.resources.host_memory_bytes >= window.LEAST_MEMORY_BYTES


@settings(max_examples=15)
@given(specs(), st.sampled_from([None, 5]), st.sampled_from([None, "20.5 GiB"]))
def test_what_is_explained_is_what_pods_get(
    tmp_path_factory: pytest.TempPathFactory,
    spec: dict[str, Any],
    cores_per_gpu: int | None,
    host_memory_per_gpu: str | None,
) -> None:
    del spec["hypervisor"]
    document = manifest(
        "kubernetes",
        1,
        "gpu",
        cpu_cores_per_gpu=cores_per_gpu,
        host_memory_per_gpu=host_memory_per_gpu,
    )
    result = compiled(tmp_path_factory.mktemp("window"), document, spec)
    if result.stacks:
        same_everywhere(result)


@pytest.mark.parametrize("name", sorted(p.stem for p in (ROOT / "examples").glob("*.yaml")))
def test_every_example_gives_what_it_explains(name: str) -> None:
    stacks = compile_files([ROOT / "examples" / f"{name}.yaml"]).stacks
    assert stacks
    for stack in stacks:
        gives_what_it_explains(stack)


def gives_what_it_explains(stack: Compiled) -> None:
    evidence = {e.quantity: e.value for e in stack.plan.evidence}
    for work in stack.plan.workloads:
        assert evidence[f"{work.name}.cpu_cores"] == work.resources.cpu_cores
        assert evidence[f"{work.name}.host_memory_bytes"] == work.resources.host_memory_bytes
        assert work.resources.host_memory_bytes % GIB == 0
        for machine in stack.plan.virtual_machines:
            if machine.workload == work.name:
                given = (cores(machine), machine.memory_bytes)
                assert given == (work.resources.cpu_cores, work.resources.host_memory_bytes)


# --- one place -----------------------------------------------------------------------------------


def test_the_built_in_policies_check_the_same_window() -> None:
    rules = POLICIES["rules"]
    assert rules["GP301"]["thresholds"]["minimum"] == window.LEAST_CORES
    assert rules["GP302"]["thresholds"]["maximum"] == window.MOST_CORES
    memory = rules["GP303"]["thresholds"]
    assert memory["minimum_gigabytes"] * GB == window.USUAL_MEMORY_BYTES
    assert memory["error_below_gigabytes"] * GB == window.LEAST_MEMORY_BYTES


def test_a_share_of_a_gpu_has_its_share_of_cores_and_memory() -> None:
    assert window.cores_of(4, Fraction(3, 4)) == 3
    assert window.cores_of(4, Fraction(1, 7)) == 1, "at least one"
    assert window.bytes_of(32 * GB, Fraction(1, 7)) == ceil(32 * GB / 7)
    assert window.pages(16 * GB) == 15


@pytest.mark.parametrize(
    ("formula", "inputs", "value"),
    [
        (window.KEPT_MEMORY, {"memory": 640, "fraction": 1 / 16, "minimum": 8}, 40),
        (window.KEPT_MEMORY, {"memory": 64, "fraction": 1 / 16, "minimum": 8}, 8),
        (window.KEPT_BY_KUBELET, {"memory": 640, "fraction": 1 / 10}, 64),
        (window.CORES_PART, {"cores": 56, "kept_cores": 2, "gpus": 4}, 13),
        (window.MEMORY_PART, {"memory": 100, "kept_memory": 4, "gpus": 4}, 24),
        (window.CORES, {"wanted_cores": 6, "cores_for_a_gpu": 9, "per_gpu": 2}, 3),
        (window.CORES, {"wanted_cores": 6, "cores_for_a_gpu": 5, "per_gpu": 2}, 2),
        (window.CORES, {"wanted_cores": 6, "cores_for_a_gpu": 9, "per_gpu": 7}, 1),
        (window.CORES_ANYWHERE, {"wanted_cores": 7, "per_gpu": 2}, 3),
        (window.CORES_ANYWHERE, {"wanted_cores": 6, "per_gpu": 7}, 1),
        (window.ALL_CORES, {"cores_per_device": 6, "devices": 4}, 24),
        (window.ALL_MEMORY, {"memory_per_device": 5, "page": 2, "devices": 3}, 18),
    ],
)
def test_the_windows_formulas_by_hand(formula: str, inputs: dict[str, float], value: float) -> None:
    assert evaluate(formula, inputs) == value


@pytest.mark.parametrize(
    ("gpu_memory", "free", "per_gpu", "value"),
    [
        (80, 200, 1, 80),  # the GPU's own
        (20, 200, 1, 32),  # what is usual
        (81, 200, 2, 42),  # of half a GPU, in pages of two
        (80, 71, 1, 70),  # what the host has, beside what a guest needs
        (80, 71, 3, 22),
        (80, 9, 1, 16),  # the least
        (80, 9, 3, 6),
    ],
)
def test_memory_of_a_device_is_the_gpus_between_the_least_and_what_the_host_has(
    gpu_memory: float, free: float, per_gpu: int, value: float
) -> None:
    inputs = {
        "least_memory": 16,
        "usual_memory": 32,
        "gpu_memory": gpu_memory,
        "memory_for_a_gpu": free,
        "guest_overhead": 1,
        "per_gpu": per_gpu,
        "page": 2,
    }
    assert evaluate(window.MEMORY, inputs) == value
    if free == 200:
        names = ("usual_memory", "gpu_memory", "per_gpu", "page")
        anywhere = {name: inputs[name] for name in names}
        assert evaluate(window.MEMORY_ANYWHERE, anywhere) == value
