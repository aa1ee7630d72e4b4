"""Names as Slurm reads them: GPU types, features, times."""

from __future__ import annotations

import math
import re

from gpuplan.plan.partitions import PartitionName
from gpuplan.units import GIB

_NOT_OF_A_WORD = re.compile(r"[^a-z0-9]+")
_SIZE = re.compile(r"([0-9]+)gb")
UNLIMITED = "UNLIMITED"


def word(text: str) -> str:
    """A free text as a feature's name; empty where nothing of it can stand in one."""
    return _NOT_OF_A_WORD.sub("_", text.casefold()).strip("_")


def gpu_type(identifier: str, product: str) -> str:
    """What jobs ask for: `h100`, `rtx_pro_6000`. The first words of the catalogue's name that stand
    together in the product's too, so that Slurm finds the type in the name NVML gives."""
    words, named = word(identifier).split("_"), f"_{word(product)}_"
    for count in range(len(words), 0, -1):
        start = "_".join(words[:count])
        if f"_{start}_" in named:
            return start
    return "_".join(words)


def instance_type(profile: PartitionName, memory_bytes: int) -> str:
    """What jobs ask for of a GPU that is cut: `1g.10gb`. Slurm 24.11 names an instance by NVML: its
    slices, and its memory in GiB, rounded up, which is not always the profile's own number (an
    H200's `1g.18gb` has 16.0 GiB), and has no extension (`+me`). Where no source has the memory, it
    is the number itself in GB, and the profile's name stays."""
    slices, _, size = profile.partition("g.")
    base = _SIZE.match(size)
    nominal = int(base[1]) if base else 0
    if memory_bytes == nominal * 10**9:
        return f"{slices}g.{nominal}gb"
    return f"{slices}g.{math.ceil(memory_bytes / GIB)}gb"


def reservation(job: str) -> str:
    """No workload's name has a `_`."""
    return f"{job}_reserved"


def minutes(seconds: float) -> str:
    """A time limit of at least so long: `1-02:03:00`."""
    days, rest = divmod(math.ceil(seconds / 60), 24 * 60)
    clock = f"{rest // 60:02}:{rest % 60:02}:00"
    return f"{days}-{clock}" if days else clock
