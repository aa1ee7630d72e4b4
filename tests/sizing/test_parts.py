"""What part of its GPU's rates and memory a partition has (NVIDIA MIG user guide, vGPU guide)."""

from __future__ import annotations

import pytest

from gpuplan.sizing.decide.tried import tried
from gpuplan.sizing.hardware.devices import Device, partitions, whole
from gpuplan.sizing.hardware.offers import Site
from gpuplan.units import GB
from tests.support.sizing_cases import CHAT_8B, NOTEBOOKS, site, sized, wanted

A100 = "a100-sxm-80gb"
SMALL = CHAT_8B.replace("meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-0.6B")


def parts(gpu: str, target: str = "kubernetes") -> dict[str, Device]:
    where = site(gpu, target=target)
    return {str(part.partition): part for part in partitions(where.gpus[0], where)}


def shares(part: Device) -> tuple[float, float]:
    return part.compute_share.value, part.bandwidth_share.value


@pytest.mark.parametrize(
    ("gpu", "of"),
    [
        (A100, {"1g.10gb": (1, 1), "1g.20gb": (1, 2), "2g.20gb": (2, 2), "3g.40gb": (3, 4)}),
        ("h200-sxm-141gb", {"1g.18gb": (1, 1), "1g.35gb": (1, 2), "3g.71gb": (3, 4)}),
    ],
)
def test_an_instance_has_its_seventh_of_compute_and_eighth_of_memory(
    gpu: str, of: dict[str, tuple[int, int]]
) -> None:
    found = parts(gpu)
    sizes = [(part.memory_bytes.value, shares(part)) for part in found.values()]
    assert sizes == sorted(sizes)
    for name, (compute, memory) in of.items():
        assert shares(found[name]) == pytest.approx((compute / 7, memory / 8)), name


def test_of_a_gpu_of_four_slices_each_is_a_fourth_of_both() -> None:
    found = parts("rtx-pro-6000-server")
    assert {name: shares(part) for name, part in found.items()} == {
        "1g.24gb": (0.25, 0.25),
        "2g.48gb": (0.5, 0.5),
    }


def test_a_guest_has_an_equal_share_of_turns_and_that_of_its_instance() -> None:
    turns, both = parts("l40s", "libvirt"), parts(A100, "libvirt")
    for found in (turns, both):
        for name, part in found.items():
            if name.count("-") == 1:
                assert shares(part) == pytest.approx((1 / part.per_gpu,) * 2), name
    assert turns["L40S-16C"].per_gpu == 3
    assert turns["L40S-16C"].memory_bytes.value == pytest.approx(16 * GB, rel=0.01)
    assert shares(both["A100DX-1-20C"]) == pytest.approx((1 / 7, 1 / 4))
    assert shares(both["A100DX-3-40C"]) == pytest.approx((3 / 7, 1 / 2))
    assert shares(both["A100DX-40C"]) == (0.5, 0.5)


def test_a_whole_gpu_has_all_of_it() -> None:
    (one,) = site(A100).gpus
    assert shares(whole(one)) == (1, 1)


@pytest.mark.parametrize("gpu", [A100, "h200-sxm-141gb"])
def test_a_service_on_a_part_reads_at_its_share_of_the_bandwidth(gpu: str) -> None:
    answer = sized(SMALL + "    tenancy: {isolation: shared}\n", site(gpu))
    entries = {e.quantity.removeprefix("work."): e for e in answer.evidence}
    of = {each.name: each.value for each in entries["bandwidth"].inputs}
    (chosen,) = (p for n, p in parts(gpu).items() if n == answer.workload.partition)
    assert of["bandwidth_share"] == chosen.bandwidth_share.value
    assert entries["bandwidth"].value == of["gpu_bandwidth"] * chosen.bandwidth_share.value


def test_users_get_the_smallest_part_that_holds_what_they_ask() -> None:
    wanted = NOTEBOOKS + "    tenancy: {isolation: shared}\n"
    for memory, part in (("9 GiB", "1g.10gb"), ("15 GiB", "1g.20gb"), ("30 GiB", "3g.40gb")):
        answer = sized(wanted.replace("9 GiB", memory), site(A100))
        assert answer.workload.partition == part


def weighed(text: str, where: Site) -> dict[str, list[int]]:
    """Tensor-parallel sizes by device."""
    found: dict[str, list[int]] = {}
    for _, group in tried(wanted(text), where):
        for made in group:
            name = made.device.partition or made.device.gpu.identifier
            found.setdefault(name, []).append(made.tensor_parallel_size)
    return found


@pytest.mark.parametrize(
    ("model", "room", "sizes"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 8, [1, 2, 4, 8]),
        ("meta-llama/Llama-3.1-8B-Instruct", 6, [1, 2, 4]),
        ("meta-llama/Llama-3.1-8B-Instruct", 1, [1]),
        ("Qwen/Qwen2.5-0.5B-Instruct", 8, [1, 2]),  # 14 heads
        ("Qwen/Qwen2.5-1.5B-Instruct", 8, [1, 2, 4]),  # 12 heads, 2 of keys
    ],
)
def test_a_service_is_weighed_on_powers_of_two_that_divide_its_heads_and_on_each_part(
    model: str, room: int, sizes: list[int]
) -> None:
    text = CHAT_8B.replace("meta-llama/Llama-3.1-8B-Instruct", model)
    where = site(A100, gpus_per_node=room)
    assert weighed(text, where) == {A100: sizes}
    shared = weighed(text + "    tenancy: {isolation: shared}\n", where)
    assert shared.pop(A100, sizes) == sizes
    assert shared == {name: [1] for name in parts(A100)}
