"""Oracle Cloud: bare-metal shapes as Oracle's node health checks expect them (UPL-1.0)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from bench.catalog.common import Row, Source, instance_file, size

CHECKS = Source(
    "checks",
    "Oracle's node health checks by shape",
    "oracle-quickstart/oci-hpc",
    "b5285a68fa0a3b39ebf9e7ffdcb4987018bbf3cf",
    "playbooks/roles/nhc/templates/oci.nhc.conf.j2",
    "2026-05-19",
)
# The part of a shape's name before the number of its GPUs.
GPUS = {
    "A10": "a10",
    "A100-v2": "a100-sxm-80gb",
    "B200": "b200-sxm-180gb",
    "B300": "b300-sxm-288gb",
    "B4": "a100-sxm-40gb",
    "4": "a100-sxm-40gb",
    "GB200": "gb200-186gb",
    "GB200-v2": "gb200-186gb",
    "GB200-v3": "gb200-186gb",
    "GB300": "gb300-288gb",
    "H100": "h100-sxm-80gb",
    "H200": "h200-sxm-141gb",
    "L40S-NC": "l40s",
    "MI300X": "mi300x-192gb",
    "MI355X": "mi355x-288gb",
    "MI355X-v0": "mi355x-288gb",
    "MI355X-v1": "mi355x-288gb",
}
MAX_SOCKETS = 8  # the checks of Grace machines have their number of cores there


def files(checkouts: Path) -> dict[str, str]:
    rows = sorted(_rows(CHECKS.text(checkouts)), key=lambda row: str(row["name"]))
    notes = (
        "vCPUs and threads are those with simultaneous multithreading on.",
        "RDMA counts the links of the fastest kind.",
    )
    return {"instances/oci.yaml": instance_file("oci", rows, [CHECKS], notes)}


def _rows(text: str) -> Iterator[Row]:
    head = r"\{% (?:el)?if ('BM[^%]*?) %\}\n"
    parts = re.split(head, text)
    for names, body in zip(parts[1::2], parts[2::2], strict=True):
        for name in re.findall(r"'(BM\.[\w.-]+)' in", names):
            kind, _, count = name.removeprefix("BM.GPU").removeprefix(".").rpartition(".")
            if kind in GPUS:
                yield {"name": name, "gpu": GPUS[kind], "gpus": count, **_hardware(body)}


def _hardware(text: str) -> dict[str, object]:
    sockets, cores, threads = map(int, re.findall(r"check_hw_cpuinfo (\d+) (\d+) (\d+)", text)[0])
    known = sockets <= MAX_SOCKETS
    links = Counter(re.findall(r"check_hw_ib (\d+)", text))
    fastest = max(links, key=int, default="")
    drives = len(set(re.findall(r"smart-log /dev/(nvme\d+)n1", text)))
    kilobytes = int(re.findall(r"check_hw_physmem (\d+)kB", text)[0])
    rdma = {"kind": "roce", "interfaces": links[fastest], "rate": f"{fastest} Gb/s"}
    return {
        "vcpus": threads if known else None,
        "cores": cores if known else None,
        "threads_per_core": round(threads / cores) if known else None,
        "sockets": sockets if known else None,
        "memory": size(kilobytes / 1024),
        "nvme": {"count": drives} if drives else None,
        "rdma": rdma if fastest else None,
        "source": "checks",
    }
