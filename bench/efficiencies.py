"""Measured operators → gpuplan/sizing/data/kernels_*.py: three numbers a kernel.

    PYTHONPATH=. python bench/efficiencies.py FOLDER     # aiconfigurator_core/systems/data

A kernel takes `launch + sqrt((bytes / (bandwidth × read))² + (flop / (peak × compute))²)` seconds.
This fits launch, read and compute to the tables of aiconfigurator-core 0.12.0 (Apache-2.0), for
each GPU type with tables. The median residual stays beside them. Needs pandas, pyarrow and scipy.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.optimize import least_squares

from gpuplan.catalog.load import load_catalog

OUTPUT = Path(__file__).parent.parent / "gpuplan/sizing/data"
MODULES = {
    "ampere_ada": {"a100-sxm-80gb": "a100_sxm", "l40s": "l40s"},
    "hopper": {"h100-sxm-80gb": "h100_sxm", "h200-sxm-141gb": "h200_sxm"},
    "blackwell": {
        "b200-sxm-180gb": "b200_sxm",
        "b300-sxm-288gb": "b300_sxm",
        "rtx-pro-6000-server": "rtx_pro_6000_server",
    },
    "grace_blackwell": {"gb200-186gb": "gb200", "gb300-288gb": "gb300"},
}
HEADER = '''"""Measured kernels, written by bench/efficiencies.py.

Key: kernel, GPU, engine, number format (or GPUs of an all-reduce). Row: seconds to launch, fraction
of the peak bandwidth and of the dense peak that it reaches (an all-reduce: bus bytes/s, and 1),
median residual of the fit. Source: tables of aiconfigurator-core 0.12.0 (NVIDIA, Apache-2.0).
"""

from __future__ import annotations

KERNELS: dict[tuple[str, str, str, str], tuple[float, float, float, float]] = {
'''
ENGINES = {"vllm": "vllm", "sglang": "sglang", "tensorrt-llm": "trtllm"}
# Table dtype → our name, bytes of a weight, the peak it computes with.
MATMUL = {
    "bfloat16": ("bf16", 2, "bf16"),
    "fp8": ("fp8", 1, "fp8"),
    "fp8_block": ("fp8-block", 1, "fp8"),
    "nvfp4": ("nvfp4", 0.5625, "fp4"),
    "int4_wo": ("int4", 0.52, "bf16"),
}
EXPERTS = MATMUL | {
    "w4a16_mxfp4": ("mxfp4", 0.53, "bf16"),
    "w4a8_mxfp4_mxfp8": ("mxfp4", 0.53, "fp8"),
}
CACHE = {"bfloat16": ("bf16", 2), "fp8": ("fp8", 1)}
# Tokens spread over experts less evenly than at random: power_law_1.01 of the tables.
TOUCHED, TILE = 0.7, 8

Table = pd.DataFrame
Row = tuple[float, float, float, float]
Peaks = dict[str, float]
Kernel = Iterator[tuple[str, Row]]


def version(path: Path) -> list[int]:
    name = path.parent.name.replace("rc", ".").replace("post", "")
    return [int("".join(c for c in part if c.isdigit()) or 0) for part in name.split(".")]


def versions(folder: Path, family: str, engine: str, table: str) -> list[Table]:
    """All versions of a table, oldest first."""
    paths = sorted(folder.glob(f"{family}/{engine}/*/{table}_perf.parquet"), key=version)
    return [pd.read_parquet(p) for p in paths]


def fit(data: Table, bandwidth: float, peak: float) -> Row:
    """`data` has columns bytes, flop and latency (ms)."""
    data = data[data.latency > 0].sort_values(["bytes", "flop"])
    rows = np.linspace(0, len(data) - 1, min(len(data), 4000)).astype(int)
    seconds = data.latency.to_numpy() * 1e-3
    read, compute = data.bytes.to_numpy() / bandwidth, data.flop.to_numpy() / peak

    def residual(log: np.ndarray, at: np.ndarray | slice = rows) -> np.ndarray:
        launch, r, c = np.exp(log)
        return np.log(launch + np.hypot(read[at] / r, compute[at] / c)) - np.log(seconds[at])

    low, high = np.log([5e-7, 0.05, 0.02]), np.log([1.2e-4, 1.0, 1.0])
    start = np.log([1e-5, 0.7, 0.5])
    best = least_squares(residual, start, bounds=(low, high), loss="soft_l1", f_scale=0.1)
    error = float(np.median(np.abs(np.expm1(residual(best.x, slice(None))))))
    launch, r, c = (float(f"{v:.4g}") for v in np.exp(best.x))
    return launch, r, c, round(error, 3)


def matmuls(folder: Path, peaks: Peaks) -> Kernel:
    """The fastest engine of each shape: slower ones were measured outside a graph."""
    found = [t[-1] for e in ENGINES.values() if (t := versions(folder, "gemm", e, "gemm"))]
    data = pd.concat(found)
    data = data.groupby(["gemm_dtype", "m", "n", "k"], as_index=False).latency.min()
    data = data[(data.m <= 16384) & data.n.between(512, 65536) & (data.k >= 512)]
    for dtype, (name, weight, peak) in MATMUL.items():
        d = data[data.gemm_dtype == dtype].copy()
        if len(d) < 3000 or peak not in peaks:
            continue
        activation = 2 if name == "int4" else weight
        d["bytes"] = d.m * d.k * activation + d.n * d.k * weight + 2 * d.m * d.n
        d["flop"] = 2.0 * d.m * d.n * d.k
        yield name, fit(d, peaks["bandwidth"], peaks[peak])


def decode_attention(folder: Path, engine: str, peaks: Peaks) -> Kernel:
    tables = versions(folder, "attention", engine, "generation_attention")
    for table in tables[-1:]:
        d = plain(table)
        d["context"] = d.step + d.isl
        d = d[(d.context >= 256) & (d.num_heads / d.kv).between(4, 16)]
        for dtype, (name, width) in CACHE.items():
            x = d[d.kv_cache_dtype == dtype].copy()
            if len(x) < 100:
                continue
            x["bytes"] = 2.0 * x.batch_size * x.context * x.kv * x.head_dim * width
            x["flop"] = 4.0 * x.batch_size * x.context * x.num_heads * x.head_dim
            yield name, fit(x, peaks["bandwidth"], peaks["bf16"])


def prefill_attention(folder: Path, engine: str, peaks: Peaks) -> Kernel:
    tables = versions(folder, "attention", engine, "context_attention")
    for table in tables[-1:]:
        d = plain(table)
        d = d[(d.head_dim == 128) & (d.isl >= 128)]
        for dtype, (name, _) in CACHE.items():
            x = d[d.kv_cache_dtype == dtype].copy()
            if len(x) < 100:
                continue
            x["bytes"] = 4.0 * x.batch_size * x.isl * (x.num_heads + x.kv) * x.head_dim
            x["flop"] = 2.0 * x.batch_size * x.num_heads * x.head_dim * x.isl**2
            yield name, fit(x, peaks["bandwidth"], peaks["bf16"])


def plain(d: Table) -> Table:
    """Rows of full attention with usual head sizes; KV heads 0 means one a head."""
    d = d.copy()
    if "window_size" in d:
        d = d[d.window_size == 0].copy()
    d["kv"] = np.where(d.num_key_value_heads == 0, d.num_heads, d.num_key_value_heads)
    return d[d.head_dim.isin([64, 128])]


def latent(folder: Path, table: str, peaks: Peaks) -> Kernel:
    """Latent attention (512 + 64 wide cache): the fastest engine."""
    found = [t[-1] for e in ("sglang", "trtllm") if (t := versions(folder, "mla", e, table))]
    if not found:
        return
    keys = ["kv_cache_dtype", "num_heads", "batch_size", "isl", "step"]
    data = pd.concat(found).groupby(keys, as_index=False).latency.min()
    data["context"] = data.isl + data.step
    data = data[data.context >= 128]
    for dtype, (name, width) in CACHE.items():
        d = data[data.kv_cache_dtype == dtype].copy()
        if len(d) < 100:
            continue
        if table == "generation_mla":
            d["bytes"] = d.batch_size * d.context * 576.0 * width
            d["flop"] = 2.0 * d.batch_size * d.context * d.num_heads * (576 + 512)
        else:
            d["bytes"] = d.batch_size * d.isl * d.num_heads * 640.0 * 2
            d["flop"] = d.batch_size * d.num_heads * 320.0 * d.isl**2
        yield name, fit(d, peaks["bandwidth"], peaks["bf16"])


def experts(folder: Path, engine: str, peaks: Peaks) -> Kernel:
    chosen: dict[str, Table] = {}
    for d in versions(folder, "moe", engine, "moe"):
        chosen |= {k: x for k, x in d.groupby("moe_dtype") if len(x) > 150}
    if "w4a8_mxfp4_mxfp8" in chosen:
        chosen.pop("w4a16_mxfp4", None)
    for dtype, table in sorted(chosen.items()):
        name, weight, peak = EXPERTS.get(dtype, ("", 0, ""))
        law = (
            "power_law_1.01"
            if (table.distribution == "power_law_1.01").sum() > 100
            else "power_law_1.2"
        )
        d = table[(table.distribution == law) & (table.num_tokens <= 16384)]
        d = d[d.hidden_size >= 2048].copy()
        if peak not in peaks or len(d) < 150:
            continue
        local = d.num_experts / d.moe_ep_size
        touched = local * -np.expm1(-d.num_tokens * d.topk * TOUCHED / d.num_experts)
        one = d.hidden_size * d.inter_size / d.moe_tp_size
        d["bytes"] = 3.0 * touched * one * weight
        d["flop"] = 6.0 * one * np.maximum(d.num_tokens * d.topk / d.moe_ep_size, touched * TILE)
        yield name, fit(d, peaks["bandwidth"], peaks[peak])


def all_reduce(folder: Path, engine: str) -> Kernel:
    """Launch and bus rate of a ring by number of GPUs; messages count elements of two bytes."""
    for table in versions(folder, "comm", engine, "custom_allreduce")[-1:]:
        graph = table.get("backend", pd.Series("", table.index)).astype(str).str.contains("graph")
        for gpus, rows in table[graph if graph.any() else ~graph].groupby("num_gpus"):
            x = rows.groupby("message_size", as_index=False).latency.min()
            x["bytes"] = 4.0 * (gpus - 1) / gpus * x.message_size
            x["flop"] = 0.0
            launch, rate, _, error = fit(x, 1e12, 1.0)
            yield str(gpus), (launch, float(f"{rate * 1e12:.4g}"), 1.0, error)


def kernels(identifier: str, folder: Path) -> Iterator[tuple[tuple[str, str, str, str], Row]]:
    gpu = load_catalog().gpu(identifier)
    peaks = {"bandwidth": gpu.memory_bytes_per_s.value, "bf16": gpu.peak_bf16.value}
    if gpu.peak_fp8:
        peaks["fp8"] = gpu.peak_fp8.value
    if gpu.peak_fp4:
        peaks["fp4"] = gpu.peak_fp4.value
    found: list[tuple[str, str, Kernel]] = [
        ("matmul", "", matmuls(folder, peaks)),
        ("decode_latent_attention", "", latent(folder, "generation_mla", peaks)),
        ("prefill_latent_attention", "", latent(folder, "context_mla", peaks)),
    ]
    for name, engine in ENGINES.items():
        found += [
            ("decode_attention", name, decode_attention(folder, engine, peaks)),
            ("prefill_attention", name, prefill_attention(folder, engine, peaks)),
            ("experts", name, experts(folder, engine, peaks)),
            ("all_reduce", name, all_reduce(folder, engine)),
        ]
    for kind, engine, rows in found:
        for dtype, row in rows:
            yield (kind, identifier, engine, dtype), row


def main(folder: str) -> None:
    for module, gpus in MODULES.items():
        lines = [
            "    (" + ", ".join(f'"{k}"' for k in key) + f"): {row},\n"
            for identifier, name in gpus.items()
            for key, row in kernels(identifier, Path(folder) / name)
        ]
        text = HEADER + "".join(lines) + "}\n"
        (OUTPUT / f"kernels_{module}.py").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
