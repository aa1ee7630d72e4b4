"""Facts of the catalogue: sourced, as published, and of a piece."""

from __future__ import annotations

import re
import subprocess
import sys
from datetime import date

import pytest

from gpuplan.catalog.gpu_load import FACTS
from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.model import Fact, Gpu
from gpuplan.units import GIB, MIB

CATALOG = load_catalog()
CITATION = re.compile(r"catalog: [a-z]+/[\w.-]+\.yaml( [^()]+)? \(.+, (read )?20\d\d-\d\d-\d\d\)")


def gpu(identifier: str) -> Gpu:
    found = CATALOG.gpu(identifier)
    assert found is not None
    return found


def facts(found: Gpu) -> dict[str, Fact]:
    return {n: f for n in FACTS if isinstance(f := getattr(found, n), Fact)}


def test_loading_needs_neither_pydantic_nor_yaml() -> None:
    code = (
        "import sys; from gpuplan.catalog.load import load_catalog;"
        "assert load_catalog().gpu('h100-sxm-80gb');"
        "print(*sorted({'pydantic', 'ruamel', 'jinja2'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == []


@pytest.mark.parametrize("identifier", CATALOG.gpu_ids)
def test_every_fact_of_a_gpu_has_a_source_and_a_date(identifier: str) -> None:
    found = gpu(identifier)
    cited = [f.source for f in facts(found).values()]
    cited += [p.source for p in found.mig_profiles] + [t.source for t in found.vgpu_types]
    assert [c for c in cited if not CITATION.fullmatch(c)] == []
    for source in CATALOG.sources("gpus", identifier):
        assert source.where.startswith("https://") or re.match(r"[\w.-]+/[\w.-]+@", source.where)
        assert date.fromisoformat(source.date) >= date(2020, 1, 1)


# What the makers publish: dense bf16 TFLOP/s, GB/s of memory, W (datasheets of NVIDIA; sparse peaks
# halved).
@pytest.mark.parametrize(
    ("identifier", "bf16", "bandwidth", "watts"),
    [
        ("a100-pcie-80gb", 312, 1935, 300),
        ("a100-sxm-80gb", 312, 2039, 400),
        ("a30", 165, 933, 165),
        ("a40", 149.7, 696, 300),
        ("b200-sxm-180gb", 2250, 8000, 1000),
        ("h100-nvl-94gb", 835.5, 3900, 400),
        ("h100-pcie-80gb", 756, 2000, 350),
        ("h100-sxm-80gb", 989.5, 3350, 700),
        ("h200-sxm-141gb", 989.5, 4800, 700),
        ("l4", 121, 300, 72),
        ("l40s", 362, 864, 350),
        ("t4", 65, 320, 70),
    ],
)
def test_gpus_are_as_published(
    identifier: str, bf16: float, bandwidth: float, watts: float
) -> None:
    found = gpu(identifier)
    assert found.peak_bf16.value / 1e12 == pytest.approx(bf16, rel=0.005)
    assert found.memory_bytes_per_s.value / 1e9 == pytest.approx(bandwidth, rel=0.04)
    assert found.watts.value == watts


def test_memory_is_what_the_device_reports() -> None:
    assert gpu("h100-sxm-80gb").memory_bytes.value == 81559 * MIB
    assert gpu("h100-sxm-80gb").memory_bytes.unit == "B"


@pytest.mark.parametrize("identifier", CATALOG.gpu_ids)
def test_facts_of_a_gpu_go_together(identifier: str) -> None:
    found = gpu(identifier)
    assert all(f.value > 0 for f in facts(found).values())
    bf16 = found.peak_bf16.value
    fp4 = 8.5 if "GeForce" in found.name else 6.5  # GeForce cards accumulate BF16 at half rate
    for peak, most in ((found.peak_fp8, 2.1), (found.peak_fp4, fp4)):
        assert peak is None or bf16 < peak.value <= most * bf16
    assert found.peak_int8 is None or found.peak_int8.value <= 4.2 * bf16
    nvlink = found.nvlink_bytes_per_s
    assert nvlink is None or nvlink.value >= found.pcie_bytes_per_s.value
    assert found.product is None or re.fullmatch(r"[\w.-]{1,63}", found.product)


@pytest.mark.parametrize("identifier", CATALOG.gpu_ids)
def test_partitions_fit_the_gpu(identifier: str) -> None:
    found = gpu(identifier)
    memory = found.memory_bytes.value
    profiles = {p.name: p for p in found.mig_profiles}
    assert len(profiles) == len(found.mig_profiles)
    assert bool(profiles) == bool(found.mig_slices)
    for profile in profiles.values():
        assert max(profile.starts) + profile.memory_slices <= found.mig_slices
        assert profile.maximum <= len(profile.starts)
        assert profile.maximum * profile.memory_bytes <= memory
    assert len({t.name for t in found.vgpu_types}) == len(found.vgpu_types)
    for vgpu in found.vgpu_types:
        assert vgpu.maximum * vgpu.memory_bytes <= memory
        if vgpu.mig_profile:
            assert vgpu.memory_bytes <= profiles[vgpu.mig_profile].memory_bytes


def test_mig_geometry_of_h100() -> None:
    """NVIDIA MIG user guide: seven 1g instances, two 3g, one whole GPU of eight memory slices."""
    found = gpu("h100-sxm-80gb")
    profiles = {p.name: p for p in found.mig_profiles}
    assert found.mig_slices == 8
    assert (profiles["1g.10gb"].maximum, profiles["1g.10gb"].memory_slices) == (7, 1)
    assert profiles["3g.40gb"].starts == (0, 4)
    assert profiles["7g.80gb"].starts == (0,)


@pytest.mark.parametrize("identifier", CATALOG.gpu_ids)
def test_prices_are_dated_and_positive(identifier: str) -> None:
    prices = CATALOG.prices(identifier)
    for price in prices:
        assert 0 < price.usd_per_hour < 100
        date.fromisoformat(price.date)
        assert price.provider
        assert CITATION.fullmatch(price.source)
    assert [p.usd_per_hour for p in prices] == sorted(p.usd_per_hour for p in prices)
    assert (CATALOG.price(identifier) is None) == (not prices)


def test_nodes_are_of_known_gpus_and_could_be_built() -> None:
    found = [node for node in map(CATALOG.node, CATALOG.gpu_ids) if node]
    assert len(found) == sum(host.reference for host in CATALOG.hosts())
    for node in found:
        assert node.gpus >= 1
        assert node.cpu_cores % node.sockets == 0
        assert node.numa_nodes >= 1
        assert node.memory_bytes >= node.gpus * 32 * GIB
        assert CITATION.fullmatch(node.source)


@pytest.mark.parametrize(
    "task", ["inference", "batch", "training", "finetuning", "image", "notebook"]
)
def test_every_task_has_an_engine_with_an_exact_image(task: str) -> None:
    engine = CATALOG.default_engine(task)
    assert engine is not None
    assert task in engine.tasks
    assert CATALOG.engine(engine.name) == engine
    tag = engine.image.rpartition(":")[2]
    assert engine.version in tag
    assert CITATION.fullmatch(engine.source)


def test_operator_is_pinned() -> None:
    operator = CATALOG.component("gpu-operator")
    assert operator is not None
    assert operator.version == "v26.3.3"
    assert operator.driver == "580.126.20"


def test_what_is_not_there_is_none() -> None:
    assert CATALOG.gpu("h100") is None
    assert CATALOG.node("h100") is None
    assert CATALOG.price("h100") is None
    assert CATALOG.prices("h100") == ()
    assert CATALOG.component("operator") is None
    assert CATALOG.engine("vllm-2") is None
    assert CATALOG.default_engine("dreaming") is None
    assert CATALOG.sources("gpus", "h100") == ()
    assert CATALOG.notes("gpus", "h100") == ()
