"""AMD's tools, from their text to hosts of an inventory; texts have the form of AMD's examples."""

from __future__ import annotations

import json
from typing import Any

import pytest

from gpuplan.inventory.readers.registry import likely
from gpuplan.inventory.run import Imported, imported
from gpuplan.inventory.texts import Text
from gpuplan.source import SourceDocument

SMI = """\
CPU: 0
    SMU:
        FW_VERSION: 85.103.0
GPU: {number}
    ASIC:
        MARKET_NAME: AMD Instinct MI300X{behind}
        VENDOR_ID: 0x1002
        VENDOR_NAME: Advanced Micro Devices, Inc. [AMD/ATI]
        DEVICE_ID: 0x74a1
        ASIC_SERIAL: 0xBA6524093004B8B2
        NUM_COMPUTE_UNITS: 304
    BUS:
        BDF: 0000:{bus}:00.0
        MAX_PCIE_WIDTH: 16
        MAX_PCIE_SPEED: 32 GT/s
        PCIE_INTERFACE_VERSION: Gen 5
        SLOT_TYPE: OAM
    LIMIT:
        MAX_POWER: 750 W
        SLOWDOWN_EDGE_TEMPERATURE: N/A
    DRIVER:
        NAME: amdgpu
        VERSION: 6.10.5
    VRAM:
        TYPE: HBM3
        SIZE: 196592 MB
        MAX_BANDWIDTH: 5300 GB/s
    NUMA:
        NODE: {node}
        AFFINITY: {node}
"""
LIST = """\
GPU: 0
    BDF: 0000:83:00.0
    UUID: 9fff74b9-0000-1000-8044-4a2fb30adeb0
    KFD_ID: 43855
    NODE_ID: 9

GPU: 1
    BDF: 0000:8b:00.0
    UUID: b7ff74b9-0000-1000-80d1-81671a192e45
    KFD_ID: 27976
"""
ROCM = """\
============================ ROCm System Management Interface ============================
Driver version: 6.7.0
====================================== Product Info ======================================
GPU[0]\t\t: Card Series: \t\tAMD Instinct MI300X OAM
GPU[0]\t\t: Card Model: \t\t0x74a1
GPU[0]\t\t: Card Vendor: \t\tAdvanced Micro Devices, Inc. [AMD/ATI]
GPU[0]\t\t: GFX Version: \t\tgfx942
GPU[0]\t\t: PCI Bus: 0000:63:00.0
GPU[0]\t\t: VRAM Total Memory (B): 206141652992
GPU[0]\t\t: (Topology) Numa Node: 1
GPU[1]\t\t: Card Series: \t\t0x74a1
GPU[1]\t\t: Card Model: \t\t0x74a1
GPU[1]\t\t: PCI Bus: 0000:64:00.0
=================================== End of ROCm SMI Log ===================================
"""
BOTH = (
    SMI.format(number=0, bus="05", node=0, behind="")
    + "\n"
    + SMI.format(number=1, bus="85", node=1, behind=" OAM: 750W SKU")
)


def host(*texts: str) -> dict[str, Any]:
    (found,) = (answer(*texts).data or {})["hosts"]
    return dict(found)


def answer(*texts: str) -> Imported:
    given = [
        Text(place="", document=SourceDocument(f"text {n}", text)) for n, text in enumerate(texts)
    ]
    return imported(given, "rack", likely)


def test_static_says_what_each_gpu_is_and_where() -> None:
    gpus = host(BOTH)["gpus"]
    assert [g["type"] for g in gpus] == ["mi300x-192gb", "mi300x-192gb"]
    assert [g["address"] for g in gpus] == ["0000:05:00.0", "0000:85:00.0"]
    assert [g["numa_node"] for g in gpus] == [0, 1]


def test_json_says_what_the_text_does() -> None:
    one = {
        "gpu": 0,
        "asic": {"market_name": "AMD Instinct MI300X VF", "device_id": "0x74a1"},
        "bus": {"bdf": "0000:05:00.0", "max_pcie_width": 16, "pcie_interface_version": "Gen 5"},
        "vram": {"type": "HBM3", "size": {"value": 196592, "unit": "MB"}},
        "driver": {"version": "6.10.5"},
        "numa": {"node": 0, "affinity": 0},
    }
    text = SMI.format(number=0, bus="05", node=0, behind="").replace(
        "        MAX_POWER: 750 W\n", ""
    )
    (gpu,) = host(text)["gpus"]
    for tree in ([one], {"gpu_data": [one]}):
        (found,) = host(json.dumps(tree, indent=4))["gpus"]
        assert {k: v for k, v in found.items() if k != "product"} == {
            k: v for k, v in gpu.items() if k != "product"
        }


def test_list_alone_names_places_and_asks_for_the_product() -> None:
    found = answer(LIST)
    assert [g["address"] for g in (found.data or {})["hosts"][0]["gpus"]] == [
        "0000:83:00.0",
        "0000:8b:00.0",
    ]
    assert any("product" in p.message or "type" in p.message for p in found.problems)


def test_the_older_tool_says_it_too_and_a_number_is_no_name() -> None:
    found = host(ROCM)
    assert [g["type"] for g in found["gpus"]] == ["mi300x-192gb", "mi300x-192gb"]
    assert [g["address"] for g in found["gpus"]] == ["0000:63:00.0", "0000:64:00.0"]
    assert found["gpus"][0]["numa_node"] == 1


@pytest.mark.parametrize("text", [BOTH, LIST, ROCM])
def test_each_text_is_of_one_reader(text: str) -> None:
    assert len([r for r in likely(text) if r.recognises(text)]) == 1


@pytest.mark.parametrize("text", [BOTH, ROCM])
@pytest.mark.parametrize("cut", range(0, 1200, 37))
def test_what_is_cut_off_makes_nothing_up(text: str, cut: int) -> None:
    whole = {(g["address"], g["type"]) for g in host(text)["gpus"]}
    found = answer(text[: len(text) - cut]).data
    gpus = found["hosts"][0].get("gpus", []) if found else []
    known = {(g["address"], g["type"]) for g in gpus if "address" in g and g["type"] != "unknown"}
    assert known <= whole


def test_a_value_that_is_none_is_said_with_its_place() -> None:
    found = answer(BOTH.replace("BDF: 0000:05:00.0", "BDF: 5"))
    (problem,) = (p for p in found.problems if p.rule == "GP063")
    assert problem.message == (
        "amd-smi says '5' for the address of GPU 0, which is not a PCI address"
    )
