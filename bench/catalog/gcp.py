"""Google Cloud: machine types of the cost calculator by Cyclenerd (Apache-2.0), prices that
Karpenter's provider starts with (Apache-2.0)."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path

from bench.catalog.common import Row, Source, instance_file, rate_file, real, usd

TYPES = Source(
    "types",
    "Google Cloud machine types of the cost calculator gcosts",
    "Cyclenerd/google-cloud-pricing-cost-calculator",
    "dac31281f2a4575f0a8bff20ac04fc71a5ff2190",
    "build/gcp.yml",
    "2026-08-20",
)
MACHINES = Source(
    "machines",
    "Google Cloud machine types, as gcosts lists them",
    TYPES.repository,
    TYPES.commit,
    "tools/machinetypes.csv",
    TYPES.date,
)
PRICES = Source(
    "karpenter",
    "Karpenter's GCP price table",
    "cloudpilot-ai/karpenter-provider-gcp",
    "417f047b117521aba6d3ab120dac538a92161bf4",
    "pkg/providers/pricing/initial-prices.json",
    "2026-08-06",
)
GPUS = {
    "a100": "a100-sxm-40gb",
    "a100-80gb": "a100-sxm-80gb",
    "h100-80gb": "h100-sxm-80gb",
    "l4": "l4",
    "rtx6000": "rtx-pro-6000-server",
}
# Series that only the list of machine types has: their GPU is Google's documentation's, and the
# number of GPUs stands in the name.
SERIES = {
    "a3-edgegpu": "h100-sxm-80gb",
    "a3-ultragpu": "h200-sxm-141gb",
    "a4-highgpu": "b200-sxm-180gb",
    "a4x-highgpu": "gb200-186gb",
}
DRIVE_GB = 375  # a local SSD is one partition of this size
WHOLE_GB = 96  # of the GPU that the parts are of


def files(checkouts: Path) -> dict[str, str]:
    rows = [*_rows(TYPES.text(checkouts)), *_newer(MACHINES.text(checkouts))]
    names = {str(row["name"]) for row in rows}
    notes = (
        "Types with local SSDs that come with them; others take them as an option.",
        "GPUs of a3-edge, a3-ultra, a4, a4x: docs.cloud.google.com/compute/docs/gpus, 2026-11-21.",
    )
    note = "On demand and spot, by region."
    return {
        "instances/gcp.yaml": instance_file("gcp", rows, [TYPES, MACHINES], notes),
        "rates/gcp.yaml": rate_file("gcp", _rates(PRICES.text(checkouts), names), PRICES, note),
    }


def _rows(text: str) -> Iterator[Row]:
    for name, body in re.findall(r"^    ([ag]\d-[\w-]+):\n((?:      .*\n)+)", text, re.M):
        fields = dict(re.findall(r"^      ([\w-]+): ([\d.]+)", body, re.M))
        kind = next((k for k in fields if k in GPUS), None)
        if kind is None:
            continue
        count = float(fields[kind])
        part = round(1 / count) if count < 1 else None
        ssd = int(float(fields.get("local-ssd", 0)))
        yield {
            "name": name,
            "gpu": GPUS[kind],
            "gpus": None if part else int(count),
            "fraction": part and f"1/{part}",
            "gpu_memory": part and f"{WHOLE_GB // part} GB",
            "vcpus": fields["cpu"],
            "memory": f"{float(fields['ram']):g} GiB",
            "nvme": {"count": ssd // DRIVE_GB, "size": f"{ssd} GB"} if ssd else None,
            "source": "types",
        }


def _newer(text: str) -> Iterator[Row]:
    for line in csv.DictReader(text.splitlines(), delimiter=";"):
        name = line["NAME"]
        series = next((s for s in SERIES if name.startswith(s)), None)
        count = re.search(r"-(\d+)g", name)
        if series and count:
            yield {
                "name": name,
                "gpu": SERIES[series],
                "gpus": count[1],
                "vcpus": line["CPUS"],
                "memory": f"{float(line['MEMORY_GB']):g} GiB",
                "source": "machines",
            }


def _rates(text: str, names: set[str]) -> dict[str, dict[str, dict[str, str]]]:
    rates: dict[str, dict[str, dict[str, str]]] = {}
    for region, kinds in json.loads(text)["prices"].items():
        for kind, prices in kinds.items():
            for name, price in prices.items():
                if name in names and real(price):
                    rates.setdefault(name, {}).setdefault(kind, {})[region] = usd(price)
    return rates
