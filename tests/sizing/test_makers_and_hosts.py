"""What a site's own machines change of a plan: the maker of its GPUs, and the NUMA nodes of hosts
that are listed."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.inventory.v1 import HostSpec
from gpuplan.plan import window
from gpuplan.sizing.data import serving
from gpuplan.sizing.evidence.formula import Ledger
from gpuplan.sizing.hardware.locality import Locality, localities
from gpuplan.sizing.physics.serving.scopes import engine_constants
from gpuplan.source import Origin
from gpuplan.units import GIB

AT = Origin("inventory.yaml", ("hosts", 0))


@pytest.mark.parametrize("engine", sorted(serving.ENGINE))
def test_on_gpus_of_another_maker_an_engine_has_its_own_overheads_and_rates(engine: str) -> None:
    """What was measured of that maker stands in the place of the engine's, or on it as a factor."""
    usual = engine_constants(engine, False, "nvidia")  # noqa: FBT003
    other = engine_constants(engine, False, "amd")  # noqa: FBT003
    amd = serving.VENDOR["amd"]
    assert usual.keys() == other.keys()
    for name, quantity in usual.items():
        value = quantity.value
        if name in serving.FACTORS:
            value *= amd.get(name, 1.0)
        elif name in serving.ENGINE[engine] and name.endswith("overhead"):
            value = amd.get(name, value * amd["overhead"])
        elif name == "interference":
            value *= amd[name]
        assert other[name].value == pytest.approx(value), name
    changed = {n for n in usual if other[n] != usual[n]}
    assert {"matmul_factor", "interference", "scaling_overhead", "step_overhead"} <= changed
    assert not {"attention_factor", "first_overhead"} & changed
    assert all(", amd" in other[name].source for name in changed)


@pytest.mark.parametrize("engine", sorted(serving.ENGINE))
def test_a_server_that_starts_for_each_measurement_has_all_of_its_first_work(engine: str) -> None:
    """Others see a part of it; latent attention has launches and an overhead of its own."""
    usual, fresh, latent = (
        engine_constants(engine, latent, "nvidia", restarted)
        for latent, restarted in ((False, False), (False, True), (True, False))
    )
    own, first = serving.ENGINE[engine], serving.FIRST_TOKEN[engine]
    assert fresh["gathering"].value == 0
    assert usual["gathering"].value == first["gathering"]
    seen = {n for n in first if n in usual and usual[n].value != fresh[n].value} - {"gathering"}
    assert seen
    for name in seen:
        assert usual[name].value == pytest.approx(first[name] * first["settled"]), name
        assert fresh[name].value == first[name]
    eager = fresh["eager_seconds"].value / usual["eager_seconds"].value
    assert eager == pytest.approx(own["captured"])
    assert usual["eager_attention"].value == 1
    assert latent["eager_attention"].value == pytest.approx(1 + serving.FACTORS["eager_latent"])
    more = latent["layer_overhead"].value - usual["layer_overhead"].value
    assert more == pytest.approx(serving.LATENT_OVERHEAD)


# --- hosts ----------------------------------------------------------------------------------------


def host(gpus: list[dict[str, object]], **hypervisor: object) -> HostSpec:
    """Two NUMA nodes of 8 and 6 threads of 4 and 3 cores."""
    nodes = [
        {"cpus": "0-7", "memory": "100 GiB"},
        {"cpus": "8-13", "memory": "60 GiB"},
    ]
    known: dict[str, object] = {"hypervisor": hypervisor} if hypervisor else {}
    return HostSpec.model_validate(
        {"names": ["hv-1"], "threads_per_core": 2, "numa_nodes": nodes, "gpus": gpus, **known}
    )


def read(spec: HostSpec, *, guests: bool) -> list[Locality]:
    return list(localities(spec, AT, guests=guests))


ON_BOTH: list[dict[str, object]] = [
    {"type": "l40s", "numa_node": 0},
    {"type": "l40s", "count": 3, "numa_node": 1},
    {"type": "l4", "numa_node": 1},
]


def test_each_numa_node_of_a_host_has_its_own_gpus_cores_and_memory() -> None:
    first, second = read(host(ON_BOTH), guests=True)
    assert (first.gpus, first.cores, first.memory_bytes) == (1, 4, 100 * GIB)
    assert (second.gpus, second.cores, second.memory_bytes) == (4, 3, 60 * GIB)
    assert (first.name, second.name) == ("node 0 of hv-1", "node 1 of hv-1")
    assert "numa_nodes[1]" in second.source
    assert first.stated_cores is first.stated_memory_bytes is first.stated_pages is None


def test_all_gpus_are_on_the_only_node_whether_or_not_it_is_said() -> None:
    spec = host([{"type": "l40s", "count": 2}, {"type": "l4"}])
    alone = spec.model_copy(update={"numa_nodes": spec.numa_nodes[:1]})
    assert [node.gpus for node in read(alone, guests=True)] == [3]
    assert [node.gpus for node in read(spec, guests=True)] == [0, 0]


def test_what_a_host_reserves_is_kept_of_each_node_and_pages_are_of_guests() -> None:
    spec = host(
        ON_BOTH,
        disk_path="/d",
        bridge="br0",
        reserved_cores=1,
        reserved_memory="9 GiB",
        hugepages=70,
    )
    for guests in (True, False):
        for node in read(spec, guests=guests):
            assert node.guests == guests
            assert (node.stated_cores, node.stated_memory_bytes) == (1, 9 * GIB)
            assert node.stated_pages == (70 if guests else None)


def test_cores_that_hosts_keep_are_those_of_guests() -> None:
    """Of a host without GPUs on its second node, that one keeps the cores of both."""
    spec = host([{"type": "l40s", "numa_node": 0}])
    guests, pods = read(spec, guests=True), read(spec, guests=False)
    assert sum(node.kept_cores for node in guests) == 4
    assert all(node.usual_cores is None for node in pods)
    assert replace(pods[0], numa_nodes=None).kept_cores == 2


def test_it_is_told_why_a_host_keeps_so_many_cores() -> None:
    """Of a host without GPUs on its second node, of one that states it, of one without nodes."""
    first, _ = read(host([{"type": "l40s", "numa_node": 0}]), guests=True)
    both, _ = read(host(ON_BOTH), guests=True)
    stated, _ = read(host(ON_BOTH, reserved_cores=1, disk_path="/d", bridge="br0"), guests=True)
    words = {
        first: "cores of NUMA nodes without GPUs for the host, where there are enough",
        both: "cores of each NUMA node for the host",
        replace(both, numa_nodes=None): "one NUMA node, where the platform names none",
        stated: "reserved_cores",
    }
    for node, expected in words.items():
        ledger = Ledger("work")
        assert node.core_part(ledger, "part") is not None
        (kept,) = (i for i in ledger.entries["work.part"].inputs if i.name == "kept_cores")
        assert expected in kept.source
        assert kept.value == node.kept_cores


def test_a_guest_takes_memory_beside_its_own_and_a_pod_none() -> None:
    (guest, _), (pod, _) = (read(host(ON_BOTH), guests=is_guest) for is_guest in (True, False))
    assert guest.overhead.value == window.GUEST_OVERHEAD_BYTES > 0
    assert "KubeVirt" in guest.overhead.source
    assert (pod.overhead.value, pod.overhead.source) == (0, "constant: none of a pod")
