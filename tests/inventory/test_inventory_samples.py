"""Outputs of several tools of one real machine, put together."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.inventory.readers.registry import likely
from gpuplan.inventory.run import imported
from tests.inventory.test_inventory_import import codes, given, load, messages

SAMPLES = Path(__file__).with_name("inventory_samples")


def sample(*names: str) -> dict[str, str]:
    return {name: (SAMPLES / name).read_text(encoding="utf-8") for name in names}


RTX = tuple(f"texts/{n}-2x-rtx4090.txt" for n in ("lscpu", "topo", "smi-q", "cmdline"))


def test_a_workstation_with_two_gpus() -> None:
    answer = imported(given(sample(*RTX), "ws"), "test", likely)
    assert "GP065" not in codes(answer.problems)
    [host] = load(answer)
    assert (host.sockets, host.threads_per_core, host.cpu_vendor) == (1, 2, "intel")
    assert [g.type for g in host.gpus] == ["rtx-4090-24gb"] * 2
    assert [g.address for g in host.gpus] == ["0000:17:00.0", "0000:bc:00.0"]
    assert [g.numa_node for g in host.gpus] == [0, 0]
    assert [g.module_id for g in host.gpus] == [None, None]  # both say 1
    assert [(k.link, k.between) for k in host.links] == [("SYS", ["gpu0", "gpu1"])]
    assert host.kernel_parameters is None  # none of those bears on placement


def test_tools_that_saw_other_cpus_contradict_each_other() -> None:
    files = sample("texts/lscpu-power9.txt", "texts/numactl-power9.txt")
    answer = imported(given(files, "p9"), "test", likely)
    [host] = load(answer)
    assert not host.numa_nodes
    found = messages(answer.problems, "GP065")
    assert any("the CPUs of NUMA node 8" in m and "88-175" in m for m in found)
    numactl_alone = imported(given(dict([[*files.items()][1]]), "p9"), "test", likely)
    [host] = load(numactl_alone)
    assert [n.node for n in host.numa_nodes] == [None, 8]


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*/*")), ids=lambda p: p.name)
def test_every_sample_makes_an_inventory_that_loads(path: Path) -> None:
    answer = imported(given({path.name: path.read_text(encoding="utf-8")}), "test", likely)
    if answer.text:
        load(answer)
    else:
        assert codes(answer.problems) & {"GP061", "GP068"}
    assert not codes(answer.problems) & {"GP001", "GP002", "GP003", "GP004", "GP005"}


def test_a_cluster_makes_a_host_of_each_node() -> None:
    answer = imported(given(sample("trees/kubectl-nodes.json")), "test", likely)
    hosts = load(answer)
    assert [h.names[0] for h in hosts] == ["gpu-01", "gpu-02", "gpu-03"]
    assert (hosts[0].gpus[0].type, hosts[0].gpus[0].count) == ("h100-sxm-80gb", 8)


def test_switches_of_a_virtual_machine_come_from_its_topology_file() -> None:
    [host] = load(imported(given(sample("trees/nccl-ndv5.xml")), "test", likely))
    assert len({g.switch for g in host.gpus}) == 8
    assert [g.switch for g in host.gpus] == [n.switch for n in host.nics]
