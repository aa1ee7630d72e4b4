"""Azure: sizes as Aspire lists them (MIT), hardware as Azure's own node health checks expect it
(MIT), prices that Karpenter's provider is built from (Apache-2.0)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench.catalog.common import Page, Row, Source, instance_file, rate_file, real, usd

SIZES = Source(
    "sizes",
    "VM sizes of Azure Kubernetes Service, from Aspire",
    "microsoft/aspire",
    "59d405ff5a491bb191b1af881f2f657465521b3f",
    "src/Aspire.Hosting.Azure.Kubernetes/AksNodeVmSizes.Generated.cs",
    "2026-08-21",
)
CHECKS = Source(
    "checks",
    "Azure's node health checks, one file a size",
    "Azure/azurehpc-health-checks",
    "0e0a1ac26a64b32ac4dd7632a529638505d3314a",
    "conf",
    "2026-05-01",
)
PARTS = Page(
    "parts",
    "NV A10 v5 series: from a sixth of a GPU with 4 GiB to a whole one with 24 GiB",
    "https://github.com/MicrosoftDocs/azure-docs/blob/main/articles/virtual-machines/nva10v5-series.md",
    "2026-11-21",
)
PRICES = Source(
    "karpenter",
    "Karpenter's Azure price table",
    "Azure/karpenter-provider-azure",
    "352646f599290c3a6d2f9710fb535a7b288f88ed",
    "pkg/providers/pricing/zz_generated.pricing.go",
    "2026-06-18",
)
# What the end of a size's name says of its GPU.
GPUS = {
    "ads_A100_v4": "a100-pcie-80gb",
    "amsr_A100_v4": "a100-sxm-80gb",
    "asr_v4": "a100-sxm-40gb",
    "_A10_v4": "a10",
    "_A10_v5": "a10",
    "ads_H100_v5": "h100-nvl-94gb",
    "adis_H100_v5": "h100-nvl-94gb",
    "isr_H100_v5": "h100-sxm-80gb",
    "isr_H200_v5": "h200-sxm-141gb",
    "isr_MI300X_v5": "mi300x-192gb",
    "_T4_v3": "t4",
    "RTXPRO6000BSE_v6": "rtx-pro-6000-server",
}
WHOLE_A10_VCPUS = 36  # a machine with a part of an A10 has its share of them


def files(checkouts: Path) -> dict[str, str]:
    rows = list(_rows(checkouts))
    names = {str(row["name"]) for row in rows}
    notes = (
        "Cores and sockets are those that a machine sees, where a health check names them.",
        "Parts of an A10 are in the proportion of the vCPUs.",
        "Without sizes whose list names no GPU count or no exact GPU.",
        "Without the parts of an RTX PRO 6000: no source states their shares.",
    )
    sources = [SIZES, CHECKS, PARTS]
    rates = _rates(PRICES.text(checkouts), names)
    note = "On demand, by region; the table has no spot prices."
    return {
        "instances/azure.yaml": instance_file("azure", rows, sources, notes),
        "rates/azure.yaml": rate_file("azure", rates, PRICES, note),
    }


def _rows(checkouts: Path) -> Iterator[Row]:
    listed = re.findall(
        r"/// (Standard_N\w+) — (\d+) vCPUs — (\d+) GB RAM — (\d+) GPU", SIZES.text(checkouts)
    )
    for name, vcpus, memory, count in sorted(listed):
        gpu = next((g for end, g in GPUS.items() if name.endswith(end)), None)
        part = _part(name, int(vcpus))
        if gpu is None or (gpu == "rtx-pro-6000-server" and int(vcpus) < 144):
            continue
        seen = {} if part else _seen(checkouts, name)
        yield {
            "name": name,
            "gpu": gpu,
            "gpus": None if part else count,
            "fraction": part and f"1/{part}",
            "gpu_memory": part and f"{24 // part} GiB",
            "vcpus": vcpus,
            "memory": f"{memory} GiB",
            **seen,
            "source": "parts" if part else "checks" if seen else "sizes",
        }


def _part(name: str, vcpus: int) -> int | None:
    small = name.endswith("_A10_v5") and vcpus < WHOLE_A10_VCPUS
    return WHOLE_A10_VCPUS // vcpus if small else None


def _seen(checkouts: Path, name: str) -> dict[str, object]:
    """What the health check of a size expects, {} without one."""
    path = f"conf/{name.removeprefix('Standard_').lower()}.conf"
    listing = Source("x", "x", CHECKS.repository, CHECKS.commit, "conf/", "x").text(checkouts)
    if path.rpartition("/")[2] not in listing.split():
        return {}
    text = Source("x", "x", CHECKS.repository, CHECKS.commit, path, "x").text(checkouts)
    sockets, cores, threads = re.findall(r"check_hw_cpuinfo (\d+) (\d+) (\d+)", text)[0]
    links = Counter(re.findall(r"check_hw_ib (\d+) mlx5_ib", text))
    drives = re.findall(r"check_nvme_count (\d+)", text)
    fastest = max(links, key=int, default="")
    rdma = {"kind": "infiniband", "interfaces": links[fastest], "rate": f"{fastest} Gb/s"}
    return {
        "cores": cores,
        "threads_per_core": int(threads) // int(cores),
        "sockets": sockets,
        "nvme": {"count": drives[0]} if drives else None,
        "rdma": rdma if links else None,
    }


def _rates(text: str, names: set[str]) -> dict[str, dict[str, dict[str, str]]]:
    rates: dict[str, dict[str, dict[str, str]]] = {}
    for region, body in re.findall(
        r'initialOnDemandPrices\["([\w-]+)"\] = map\[string\]float64\{\n(.*?)^\t\}',
        text,
        re.M | re.S,
    ):
        for name, price in re.findall(r'"(\w+)":\s+([\d.]+)', body):
            if name in names and real(price):
                rates.setdefault(name, {}).setdefault("on_demand", {})[region] = usd(price)
    return rates
