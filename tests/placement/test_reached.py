"""What a guest on several GPUs may count on: NVLink to each of them, and a port that carries what
its functions are to have."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.placement.api import Placement
from gpuplan.placement.place import place
from gpuplan.plan.model import Workload
from tests.support.placement_hosts import as_inventory, card, cards, host, numbers
from tests.support.placement_samples import l40s, offer, workload

B200 = "b200-sxm-180gb"


def board(*off: int) -> dict[str, Any]:
    """Eight B200 on two NUMA nodes with their module numbers; NVLink does not reach those `off`."""
    spec = host([0, 0, 0, 0, 1, 1, 1, 1], cores=64, memory=2048)
    for number, gpu in enumerate(spec["gpus"]):
        gpu |= {"type": B200, "module_id": number + 1, "pci_id": "10de:2901"}
    joined = [f"gpu{n}" for n in range(8) if n not in off]
    return spec | {"links": [{"between": joined, "link": "NV18"}]}


def on_board(work: Workload, spec: dict[str, Any], target: str = "libvirt") -> Placement:
    gpu = load_catalog().gpu(B200)
    assert gpu is not None
    changed = [offer(gpu, gpus_per_node=8, node_count=1, node_names=tuple(spec["names"]))]
    return place("rack", target, [work], changed, as_inventory(spec))


def b200(gpus: int) -> Workload:
    return replace(cards("tune", gpus=gpus), gpu=B200, node_pool=B200)


@pytest.mark.parametrize("off", range(8))
def test_a_gpu_off_the_fabric_is_in_no_group(off: int) -> None:
    for gpus in (2, 4):
        (machine,) = on_board(b200(gpus), board(off)).virtual_machines
        assert len(numbers(machine)) == gpus
        assert off not in numbers(machine)
    everything = on_board(b200(8), board(off))
    assert not everything.virtual_machines
    assert len(on_board(b200(8), board()).virtual_machines) == 1
    assert len(on_board(b200(1), board(off)).virtual_machines) == 1


def test_pods_that_may_get_such_a_gpu_are_told() -> None:
    def said(gpus: int, *off: int) -> list[str]:
        pods = workload("chat", gpu=B200, node_pool=B200, gpus_per_node=gpus)
        found = on_board(pods, board(*off), "kubernetes").diagnostics
        return [d.message for d in found if "NVLink does not reach" in d.message]

    assert said(4) == said(1, 2) == []
    (message,) = said(4, 2)
    assert "gpu2 of hv-1" in message


def networked(*nics: dict[str, Any], gpus: int = 2) -> Placement:
    spec = host([0, 0], names=["hv-1"], nics=list(nics), nodes=1)
    offers = [offer(l40s(), gpus_per_node=2)]
    work = [cards("tune", gpus=gpus)]
    return place("r", "libvirt", work, offers, as_inventory(spec), fabric_bytes_per_s=50e9)


def ports(placement: Placement) -> list[str]:
    (machine,) = placement.virtual_machines
    return [str(d.parent) for d in machine.devices if d.kind == "nic"]


def test_one_port_does_not_give_its_whole_rate_twice() -> None:
    """400 Gb/s for each of two GPUs: of two ports each gives one; of one alone each GPU was sized
    with half, which is what it gets."""
    rate = {"bandwidth": "400 Gb/s"}
    two = networked(card(0, 0, **rate), card(1, 0, **rate))
    wide = networked(card(0, 0, bandwidth="800 Gb/s"), card(1, 0, bandwidth="400 Gb/s"), gpus=2)
    assert not [d for d in wide.diagnostics if "the port" in d.message], "it carries both"
    assert len(set(ports(two))) == 2
    assert not [d for d in two.diagnostics if "the port" in d.message]
    one = networked(card(0, 0, **rate))
    assert not [d for d in one.diagnostics if "the port" in d.message]
    nics = card(0, 0, **rate), card(1, 0, functions=0, virtual_functions=0, **rate)
    for lame in (networked(*nics), networked(*nics[::-1])):
        (problem,) = (d for d in lame.diagnostics if "the port" in d.message)
        assert f"the port {nics[0]['address']} of hv-1 carries 50 GB/s" in problem.message
        assert "and 2 GPUs beside it, of 'tune' among others" in problem.message
        assert "are to have 50 GB/s each" in problem.message
        assert problem.label == "each gets 25 GB/s"
