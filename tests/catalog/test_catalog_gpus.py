"""GPUs of the catalogue: found by what machines say of them, cut as NVIDIA allows."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import combinations_with_replacement, pairwise

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.model import Gpu, MigEngines, MigProfile
from gpuplan.sharing.mig import layout
from gpuplan.units import GB, GIB, MIB

CATALOG = load_catalog()
GPUS = {name: found for name in CATALOG.gpu_ids if (found := CATALOG.gpu(name))}
MIG = {name: found for name, found in GPUS.items() if found.mig_profiles}
VGPU = {name: found for name, found in GPUS.items() if found.vgpu_types}


@pytest.mark.parametrize(
    ("product", "pci_id", "memory", "types"),
    [
        ("NVIDIA H100 80GB HBM3", None, None, ["h100-sxm-80gb"]),
        ("NVIDIA-H100-80GB-HBM3", "10DE:2330", 81559 * MIB, ["h100-sxm-80gb"]),  # a node label
        ("A100-SXM4-40GB", None, None, ["a100-sxm-40gb"]),  # as driver 450 prints it
        ("Tesla V100-SXM2-16GB", "10de:1db1", None, ["v100-sxm-16gb"]),
        ("Tesla V100-PCIE-32GB", "10de:1db6", None, ["v100-pcie-32gb"]),  # by its identifier
        (None, "1002:74a1", None, ["mi300x-192gb"]),
        (None, "1002:74a1", 192 * GB, ["mi300x-192gb"]),  # what it is sold as
        (None, "8086:e211", 24480 * MIB, ["arc-pro-b60-24gb"]),  # 7 % above its nominal size
        # One device, two boards; and two sizes of one board.
        (None, "10de:25b6", None, ["a16", "a2"]),
        ("NVIDIA A2", "10de:25b6", None, ["a2"]),
        (None, "10de:2bb3", None, ["rtx-pro-5000-48gb", "rtx-pro-5000-72gb"]),
        (None, "10de:2bb3", 73415 * MIB, ["rtx-pro-5000-72gb"]),
        # What nothing is like, or contradicts itself.
        ("NVIDIA GeForce RTX 3080", None, 12288 * MIB, []),
        ("NVIDIA L4", "10de:2330", None, []),
        ("NVIDIA H300", None, None, []),
        (None, None, None, []),
        (None, None, 80 * GIB, []),
    ],
)
def test_gpus_are_found_by_what_their_machine_says(
    product: str | None, pci_id: str | None, memory: int | None, types: list[str]
) -> None:
    assert list(CATALOG.match_gpus(product, pci_id, memory)) == types


def test_every_name_and_identifier_leads_to_its_gpu() -> None:
    for name, found in GPUS.items():
        assert found.product_names or found.pci_ids, name
        for product in found.product_names:
            assert CATALOG.match_gpus(product) == (name,)
        for pci_id in found.pci_ids:
            assert name in CATALOG.match_gpus(None, pci_id)
        if found.product:
            assert found.product in [p.replace(" ", "-") for p in found.product_names]


@pytest.mark.parametrize("name", GPUS)
def test_peaks_fall_with_precision(name: str) -> None:
    found = GPUS[name]
    rising = (found.peak_fp64, found.peak_fp32, found.peak_tf32, found.peak_bf16, found.peak_fp8)
    known = [f.value for f in rising if f]
    assert all(a <= b * 1.01 for a, b in pairwise(known))
    if found.peak_fp16 and found.compute_capability and float(found.compute_capability) >= 8:
        assert found.peak_fp16.value == pytest.approx(found.peak_bf16.value, rel=0.02)


@pytest.mark.parametrize("name", GPUS)
def test_links_are_as_fast_as_their_generation(name: str) -> None:
    found = GPUS[name]
    if found.pcie_link:
        lane = {3: 1, 4: 2, 5: 4, 6: 8}[found.pcie_link.generation] * GB
        assert found.pcie_bytes_per_s.value == lane * found.pcie_link.lanes
    fabric = found.nvlink_fabric
    if fabric and fabric.links and fabric.generation and found.nvlink_bytes_per_s:
        link = {2: 25, 3: 25, 4: 25, 5: 50}[fabric.generation] * GB
        assert found.nvlink_bytes_per_s.value == link * fabric.links


def multisets(profiles: tuple[MigProfile, ...], most: int) -> Iterator[tuple[MigProfile, ...]]:
    for size in range(1, most + 1):
        yield from combinations_with_replacement(profiles, size)


def places(wanted: tuple[MigProfile, ...], taken: int = 0) -> bool:
    """Whether the instances have starts that do not overlap."""
    if not wanted:
        return True
    first, rest = wanted[0], wanted[1:]
    bits = (((1 << first.memory_slices) - 1) << start for start in first.starts)
    return any(not b & taken and places(rest, taken | b) for b in bits)


def engines_suffice(wanted: tuple[MigProfile, ...], whole: MigEngines) -> bool:
    asked = [p.engines for p in wanted if p.engines]
    assert len(asked) == len(wanted)
    return all(
        sum(getattr(e, kind) for e in asked) <= getattr(whole, kind)
        for kind in ("nvdec", "nvenc", "jpeg", "ofa")
    )


def legal(found: Gpu) -> Iterator[tuple[str, ...]]:
    """Every layout by the numbers alone: starts, counts, engines."""
    plain = tuple(p for p in found.mig_profiles if not p.name.endswith("+gfx"))
    whole = max(found.mig_profiles, key=lambda p: p.compute_slices).engines
    assert whole is not None
    for wanted in multisets(plain, max(p.maximum for p in plain)):
        counts = Counter(p.name for p in wanted)
        if any(counts[p.name] > p.maximum for p in wanted):
            continue
        if engines_suffice(wanted, whole) and places(tuple(sorted(wanted, key=_widest))):
            yield tuple(sorted(counts.elements()))


def _widest(profile: MigProfile) -> int:
    return -profile.memory_slices


# Numbers of legal layouts: an enumeration of NVIDIA's rules, made apart from this repository.
@pytest.mark.parametrize(
    ("name", "count"),
    [("a30", 19), ("a100-sxm-40gb", 127), ("h100-sxm-80gb", 127), ("rtx-pro-6000-server", 56)],
)
def test_engines_and_starts_allow_the_layouts_that_there_are(name: str, count: int) -> None:
    found = GPUS[name]
    layouts = set(legal(found))
    assert len(layouts) == count
    profiles = {p.name: p for p in found.mig_profiles}
    assert all(layout([profiles[n] for n in names]) for names in layouts)


@pytest.mark.parametrize("name", MIG)
def test_mig_modes_go_with_the_generation(name: str) -> None:
    """NVIDIA MIG User Guide: Ampere resets and remembers, later ones do neither."""
    mode = MIG[name].mig_mode
    assert mode is not None
    ampere = MIG[name].architecture == "ampere"
    assert (mode.resets, mode.persists) == (ampere, ampere)


@pytest.mark.parametrize("name", MIG)
def test_instances_have_no_more_than_the_gpu(name: str) -> None:
    found = MIG[name]
    for profile in found.mig_profiles:
        assert profile.maximum * profile.memory_slices <= found.mig_slices
        if profile.sm_count and found.sm_count:
            assert profile.sm_count * profile.maximum <= found.sm_count


@pytest.mark.parametrize("name", VGPU)
def test_vgpus_of_several_sizes_stand_at_places_of_their_own(name: str) -> None:
    found = VGPU[name]
    host = found.vgpu_host
    assert host is not None
    turing = found.architecture == "turing"
    assert host.interface == ("mediated-device" if turing else "virtual-function")
    for vgpu in (*found.vgpu_types, *found.vgpu_graphics):
        assert (vgpu.mixed_maximum is None) or (host.mixed_size and vgpu.mig_profile is None)
        assert (vgpu.mixed_maximum or 0) <= vgpu.maximum
        if vgpu.placements:
            assert host.region is not None
            assert vgpu.placement_size is not None
            assert len(vgpu.placements) == vgpu.mixed_maximum
            assert max(vgpu.placements) + vgpu.placement_size <= host.region
            assert all(b - a >= vgpu.placement_size for a, b in pairwise(vgpu.placements))


def test_placements_of_an_h100() -> None:
    """NVIDIA AI Enterprise 5.0 User Guide, appendix B.2."""
    types = {t.name: t for t in GPUS["h100-sxm-80gb"].vgpu_types}
    assert types["H100XM-16C"].maximum == 5
    assert types["H100XM-16C"].placements == (0, 24, 40, 64)
    assert types["H100XM-8C"].placements == (0, 12, 20, 32, 40, 52, 60, 72)
    assert types["H100XM-1-10C"].placements == ()


def test_some_gpus_take_one_size_only() -> None:
    for name in ("t4", "rtx-a5000"):
        host = GPUS[name].vgpu_host
        assert host is not None
        assert host.mixed_size is False
    b200 = GPUS["b200-sxm-180gb"].vgpu_host
    assert b200 is not None
    assert b200.mixed_size is None  # no source says it


BOARDS = {n: g.fabric_board for n, g in GPUS.items() if g.fabric_board}


@pytest.mark.parametrize("name", BOARDS)
def test_a_board_of_eight_has_halves_pairs_and_singles_that_nest(name: str) -> None:
    board = BOARDS[name]
    assert board is not None
    sets = [set(p.modules) for p in board.partitions]
    assert sorted(map(len, sets)) == [1] * 8 + [2] * 4 + [4, 4, 8]
    assert all(a <= b or b <= a or not a & b for a in sets for b in sets)
    assert "Fabric Manager" in board.source


def test_numbers_and_pairs_differ_from_board_to_board() -> None:
    """NVIDIA Fabric Manager User Guide, default partitions."""
    pairs = {
        name: [(p.number, p.modules) for p in board.partitions if len(p.modules) == 2]
        for name, board in BOARDS.items()
        if board
    }
    assert pairs["a100-sxm-80gb"] == [(11, (1, 2)), (12, (3, 4)), (13, (5, 6)), (14, (7, 8))]
    assert pairs["h100-sxm-80gb"] == [(3, (1, 3)), (4, (2, 4)), (5, (5, 7)), (6, (6, 8))]
    assert pairs["b200-sxm-180gb"] == [(4, (1, 2)), (5, (3, 4)), (6, (5, 6)), (7, (7, 8))]
