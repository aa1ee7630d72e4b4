"""AWS: the tables that Karpenter's provider is built from (Apache-2.0)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from bench.catalog.common import Row, Source, instance_file, rate_file, real, size, usd

REPOSITORY = "aws/karpenter-provider-aws"
COMMIT = "1d927085dd81a9df9301e613f371dac5b4d16bfe"
TYPES = Source(
    "types",
    "Karpenter's list of AWS instance types",
    REPOSITORY,
    COMMIT,
    "website/content/en/docs/reference/instance-types.md",
    "2026-08-21",
)
CORES = Source(
    "cores",
    "AWS DescribeInstanceTypes, as Karpenter recorded it",
    REPOSITORY,
    COMMIT,
    "pkg/fake/zz_generated.describe_instance_types.go",
    "2026-08-21",
)
PRICES = {
    "prices": "pkg/providers/pricing/zz_generated.pricing_aws.go",
    "gov": "pkg/providers/pricing/zz_generated.pricing_aws_us_gov.go",
}
# The name on the label, and the memory of a GPU in MiB where a name has several.
GPUS = {
    ("a100", 40960): "a100-sxm-40gb",
    ("a100", 81920): "a100-sxm-80gb",
    ("a10g", None): "a10g",
    ("b200", None): "b200-sxm-180gb",
    ("b300", None): "b300-sxm-288gb",
    ("h100", None): "h100-sxm-80gb",
    ("h200", None): "h200-sxm-141gb",
    ("l4", None): "l4",
    ("l40s", None): "l40s",
    ("rtx-pro-server-6000", None): "rtx-pro-6000-server",
    ("t4", None): "t4",
    ("v100", 32768): "v100-sxm-32gb",
}
LABEL = "karpenter.k8s.aws/instance-"
WHOLE_L4 = 22888  # MiB, as the same table has it


def files(checkouts: Path) -> dict[str, str]:
    rows = list(_rows(TYPES.text(checkouts), _cores(CORES.text(checkouts))))
    names = {str(row["name"]) for row in rows}
    notes = (
        "vCPUs are threads; cores where AWS's own description was recorded.",
        "Without the GPUs that the catalogue does not have: Radeon Pro V520, T4G, RTX PRO 4500.",
        "The table knows no GPUs of p3 and p6e types.",
    )
    rates: dict[str, dict[str, dict[str, str]]] = {}
    for path in PRICES.values():
        text = Source("x", "x", REPOSITORY, COMMIT, path, "x").text(checkouts)
        _collect(text, names, rates)
    source = Source(
        "karpenter",
        "Karpenter's AWS price tables",
        REPOSITORY,
        COMMIT,
        PRICES["prices"],
        "2026-07-20",
    )
    note = f"The prices of us-gov regions are in {Path(PRICES['gov']).name}, of the same day."
    return {
        "instances/aws.yaml": instance_file("aws", rows, [TYPES, CORES], notes),
        "rates/aws.yaml": rate_file("aws", rates, source, note),
    }


def _rows(text: str, cores: dict[str, tuple[int, int]]) -> Iterator[Row]:
    for name, body in re.findall(r"^### `(\S+)`\n(.*?)(?=^##+ `|^## |\Z)", text, re.M | re.S):
        table = dict(re.findall(r"^ \|([^|]+)\|([^|]+)\|$", body, re.M))
        label = {k.removeprefix(LABEL): v for k, v in table.items() if k.startswith(LABEL)}
        memory = int(label.get("gpu-memory", 0))
        kind = label.get("gpu-name", "")
        gpu = GPUS.get((kind, memory)) or GPUS.get((kind, None))
        if gpu is None or label.get("gpu-manufacturer") != "nvidia":
            continue
        physical, threads = cores.get(name, (None, None))
        count = int(label["gpu-count"])
        nvme = {"size": f"{label['local-nvme']} GB"} if "local-nvme" in label else None
        efa = table.get("vpc.amazonaws.com/efa")
        yield {
            "name": name,
            "gpu": gpu,
            "gpus": count or None,
            "fraction": None if count else f"1/{round(WHOLE_L4 / memory)}",
            "gpu_memory": None if count else f"{memory} MiB",
            "vcpus": label["cpu"],
            "cores": physical,
            "threads_per_core": threads,
            "memory": size(int(label["memory"])),
            "nvme": nvme,
            "network": _rate(label.get("network-bandwidth")),
            "rdma": efa and {"kind": "efa", "interfaces": efa},
            "allocatable": {
                "cpu": table["cpu"],
                "memory": table["memory"].replace("Mi", " MiB"),
                "gpus": table.get("nvidia.com/gpu"),
            },
            "source": "cores" if physical else "types",
        }


def _rate(megabits: str | None) -> str | None:
    return megabits and f"{int(megabits) / 1000:g} Gb/s"


def _cores(text: str) -> dict[str, tuple[int, int]]:
    """Physical cores, and threads of each, by type."""
    by_type = {}
    for block in text.split("InstanceType:")[1:]:
        name = re.match(r'\s+"(\S+)"', block)
        cores = re.search(r"DefaultCores:\s+aws.Int32\((\d+)\)", block)
        vcpus = re.search(r"DefaultVCpus:\s+aws.Int32\((\d+)\)", block)
        if name and cores and vcpus:
            by_type[name[1]] = (int(cores[1]), int(vcpus[1]) // int(cores[1]))
    return by_type


def _collect(text: str, names: set[str], rates: dict[str, dict[str, dict[str, str]]]) -> None:
    for region, body in re.findall(r'^\t"([\w-]+)": \{\n(.*?)^\t\}', text, re.M | re.S):
        for name, price in re.findall(r'"([\w.-]+)": ([\d.]+)', body):
            if name in names and real(price):
                rates.setdefault(name, {}).setdefault("on_demand", {})[region] = usd(price)
