"""Smaller clouds: the tables that SkyPilot publishes (Apache-2.0).

Rows whose form of GPU is not stated (`A100`, `H100` where a cloud has both) are left out.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping
from pathlib import Path

from bench.catalog.common import Row, Source, instance_file, rate_file, real, size, usd

COMMITS = {
    "hyperstack": "fdc9d908ab0b2af9f468f139fb3f662c8c6b3257",
    "lambda": "0f4070387edc953d7004cff197940e1918a1d6aa",
    "nebius": "0082b0435f3912ae4c566856b272455cc78f4f61",
    "verda": "000c1d0bf24621f4ac37cfa585f0897c1aa1d9cf",
}
GPUS: dict[str, Mapping[str, str]] = {  # by accelerator, or by what follows COUNTx_ in the name
    "hyperstack": {
        "A100-80G-PCIe": "a100-pcie-80gb",
        "A100-80G-PCIe-NVLink": "a100-pcie-80gb",
        "H100-80G-PCIe": "h100-pcie-80gb",
        "H100-80G-PCIe-NVLink": "h100-pcie-80gb",
        "H100-80G-SXM5": "h100-sxm-80gb",
        "L40": "l40",
        "RTX-A4000": "rtx-a4000",
        "RTX-A6000": "rtx-a6000",
    },
    "lambda": {
        "a10": "a10",
        "a100_sxm4": "a100-sxm-40gb",
        "a100_80gb_sxm4": "a100-sxm-80gb",
        "a6000": "rtx-a6000",
        "b200_sxm6": "b200-sxm-180gb",
        "gh200": "gh200-96gb",
        "h100_pcie": "h100-pcie-80gb",
        "h100_sxm5": "h100-sxm-80gb",
    },
    "nebius": {
        "B200": "b200-sxm-180gb",
        "H100": "h100-sxm-80gb",
        "H200": "h200-sxm-141gb",
        "L40S": "l40s",
    },
    "verda": {
        "B200": "b200-sxm-180gb",
        "B300": "b300-sxm-288gb",
        "RTX-6000-Ada": "rtx-6000-ada",
    },
}
NOTES = ("The commit carries no date that could be looked up.",)
SMALLEST = "A machine whose memory differs by region has the least here."


def files(checkouts: Path) -> dict[str, str]:
    texts = {}
    for provider in COMMITS:
        texts.update(_provider(provider, checkouts))
    return texts


def _provider(provider: str, checkouts: Path) -> dict[str, str]:
    table = Source(
        "skypilot",
        f"SkyPilot catalogue, {provider}",
        "skypilot-org/skypilot-catalog",
        COMMITS[provider],
        f"catalogs/v8/{provider}/vms.csv",
        read="2026-11-21",
    )
    rows: dict[str, Row] = {}
    least: dict[str, float] = {}
    rates: dict[str, dict[str, dict[str, str]]] = {}
    notes = list(NOTES)
    for line in csv.DictReader(table.text(checkouts).splitlines()):
        name = line["InstanceType"]
        gpu = _gpu(provider, line["AcceleratorName"], name)
        if gpu is None:
            continue
        memory = float(line["MemoryGiB"])
        if least.setdefault(name, memory) != memory and SMALLEST not in notes:
            notes.append(SMALLEST)
        least[name] = min(least[name], memory)
        rows[name] = {
            "name": name,
            "gpu": gpu,
            "gpus": int(float(line["AcceleratorCount"])),
            "vcpus": int(float(line["vCPUs"])),
            "memory": size(least[name] * 1024),
            "source": "skypilot",
        }
        for kind, column in (("on_demand", "Price"), ("spot", "SpotPrice")):
            if line[column] and real(line[column]):
                prices = rates.setdefault(name, {}).setdefault(kind, {})
                prices[line["Region"].lower()] = usd(line[column])
    return {
        f"instances/{provider}.yaml": instance_file(provider, rows.values(), [table], notes),
        f"rates/{provider}.yaml": rate_file(provider, rates, table, NOTES[0]),
    }


def _gpu(provider: str, accelerator: str, name: str) -> str | None:
    known = GPUS[provider]
    return known.get(accelerator) or known.get(name.partition("x_")[2])
