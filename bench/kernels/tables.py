"""Operator tables of aiconfigurator-core: where they are, and how a kernel is fitted to one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pandas as pd

from bench.kernels import surfaces

ENGINES = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
CACHE = {"bfloat16": ("bf16", 2), "fp8": ("fp8", 1)}

Table = pd.DataFrame
Peaks = dict[str, float]
Kernel = Iterator[tuple[str, surfaces.Row]]


def version(path: Path) -> list[int]:
    name = path.parent.name.replace("rc", ".").replace("post", "")
    return [int("".join(c for c in part if c.isdigit()) or 0) for part in name.split(".")]


def versions(folder: Path, family: str, engine: str, table: str) -> list[Table]:
    """All versions of a table, oldest first."""
    paths = sorted(folder.glob(f"{family}/{engine}/*/{table}_perf.parquet"), key=version)
    return [pd.read_parquet(p) for p in paths]


def fit(d: Table, peaks: Peaks, peak: str) -> surfaces.Row:
    """`d` has columns bytes, flop and latency (ms)."""
    columns = (d[c].to_numpy(dtype=float) for c in ("bytes", "flop", "latency"))
    return surfaces.plain(*columns, peaks["bandwidth"], peaks[peak])
