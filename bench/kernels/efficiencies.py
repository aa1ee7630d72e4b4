"""Measured operators → gpuplan/sizing/data/kernels.json: five or seven numbers a kernel.

    make efficiencies TABLES=FOLDER     # aiconfigurator_core/systems/data, of the wheel

Fits the surfaces of `surfaces.py` to the tables of aiconfigurator-core 0.12.0 (Apache-2.0), for
each GPU type with tables. The median residual stays beside them. Needs pandas, pyarrow and scipy.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd

from bench.kernels import attentions, surfaces
from bench.kernels.tables import ENGINES, Kernel, Peaks, Table, fit, versions
from gpuplan.catalog.load import load_catalog

OUTPUT = Path(__file__).parents[2] / "gpuplan/sizing/data/kernels.json"
GPUS = {
    "a100-sxm-80gb": "a100_sxm",
    "l40s": "l40s",
    "h100-sxm-80gb": "h100_sxm",
    "h200-sxm-141gb": "h200_sxm",
    "b200-sxm-180gb": "b200_sxm",
    "b300-sxm-288gb": "b300_sxm",
    "gb200-186gb": "gb200",
    "gb300-288gb": "gb300",
    "rtx-pro-6000-server": "rtx_pro_6000_server",
}
ABOUT = (
    "Measured kernels, written by bench/kernels/efficiencies.py. A row: kernel, GPU, engine, "
    "number format (or GPUs of a collective), the numbers of KERNEL in efficiency.py, the median "
    "residual of the fit."
)
SOURCE = "tables of aiconfigurator-core 0.12.0 (NVIDIA, Apache-2.0, 2026-08-21)"
# Table dtype → our name, bytes of a weight, of an input, the peak it computes with.
MATMUL = {
    "bfloat16": ("bf16", 2, 2, "bf16"),
    "fp8": ("fp8", 1, 1, "fp8"),
    "fp8_block": ("fp8-block", 1, 1, "fp8"),
    "nvfp4": ("nvfp4", 0.5625, 0.5625, "fp4"),
    "int4_wo": ("int4", 0.52, 2, "bf16"),
}
EXPERTS = MATMUL | {
    "w4a16_mxfp4": ("mxfp4", 0.53, 2, "bf16"),
    "w4a8_mxfp4_mxfp8": ("mxfp4", 0.53, 1, "fp8"),
}


def matmuls(folder: Path, peaks: Peaks) -> Kernel:
    """The fastest engine of each shape: slower ones were measured outside a graph. Up to 1,024
    rows: what decode steps are made of; larger products follow."""
    tables = [t[-1] for e in ENGINES.values() if (t := versions(folder, "gemm", e, "gemm"))]
    data = pd.concat(tables)
    data = data.groupby(["gemm_dtype", "m", "n", "k"], as_index=False).latency.min()
    data = data[(data.m <= 1024) & data.n.between(1024, 65536) & data.k.between(1024, 32768)]
    for dtype, (name, weight, activation, peak) in MATMUL.items():
        d = data[data.gemm_dtype == dtype].copy()
        if len(d) < 3000 or peak not in peaks:
            continue
        d["bytes"] = d.m * d.k * activation + d.n * d.k * weight + 2 * d.m * d.n
        d["flop"] = 2.0 * d.m * d.n * d.k
        yield name, fit(d, peaks, peak)


def experts(folder: Path, engine: str, peaks: Peaks) -> Kernel:
    chosen: dict[str, Table] = {}
    for d in versions(folder, "moe", engine, "moe"):
        chosen |= {str(k): x for k, x in d.groupby("moe_dtype") if len(x) > 150}
    if "w4a8_mxfp4_mxfp8" in chosen:
        chosen.pop("w4a16_mxfp4", None)
    for dtype, table in sorted(chosen.items()):
        name, weight, _, peak = EXPERTS.get(dtype, ("", 0, 0, ""))
        laws = ("power_law_1.01", "power_law_1.2", "balanced")
        law = next((w for w in laws if (table.distribution == w).sum() > 100), "")
        d = table[(table.distribution == law) & (table.num_tokens <= 8192)]
        d = d[(d.hidden_size >= 2800) & (d.num_experts >= 64) & (d.topk >= 4)]
        d = d[d.moe_ep_size * d.moe_tp_size <= 16]
        d = d.groupby([c for c in SHAPE if c in d], as_index=False).latency.min()
        if peak not in peaks or len(d) < 100:
            continue
        yield name, fit_experts(d, weight, peaks["bandwidth"], peaks[peak])


SHAPE = [
    "num_tokens",
    "hidden_size",
    "inter_size",
    "topk",
    "num_experts",
    "moe_tp_size",
    "moe_ep_size",
]


def fit_experts(d: Table, weight: float, bandwidth: float, peak: float) -> surfaces.Row:
    """Beside the five: how evenly tokens spread (1: at random), and the least tokens of a tile."""
    d = d.sort_values(SHAPE)
    columns = (*SHAPE, "latency")
    n, h, f, k, e, tp, ep, latency = (d[c].to_numpy(dtype=float) for c in columns)
    one, routed = h * f / tp, n * k / ep

    def predict(c: np.ndarray, rows: np.ndarray) -> np.ndarray:
        touched = (e / ep * -np.expm1(-n * k * c[5] / e))[rows]
        read = 3.0 * touched * one[rows] * weight
        flop = 6.0 * one[rows] * np.maximum(routed[rows], touched * c[6])
        return surfaces.seconds(c, read, flop, bandwidth, peak)

    return surfaces.fit(predict, latency * 1e-3, *surfaces.EXPERTS)


def all_reduce(folder: Path, engine: str) -> Kernel:
    """A ring's bus bytes by number of GPUs; messages count elements of two bytes."""
    for table in versions(folder, "comm", engine, "custom_allreduce")[-1:]:
        graph = table.get("backend", pd.Series("", table.index)).astype(str).str.contains("graph")
        for gpus, rows in table[graph if graph.any() else ~graph].groupby("num_gpus"):
            x = rows.groupby("message_size", as_index=False).latency.min()
            yield str(gpus), collective(4.0 * (gpus - 1) / gpus * x.message_size, x.latency)


def gather(folder: Path) -> Kernel:
    """An all-gather and a reduce-scatter of the same tokens, over NCCL."""
    for table in versions(folder, "comm", "nccl", "nccl")[-1:]:
        d = table[table.nccl_dtype == "half"]
        for gpus, rows in d.groupby("num_gpus"):
            both = rows.pivot_table(
                index="message_size", columns="op_name", values="latency", aggfunc="min"
            )
            x = (both.all_gather + both.reduce_scatter).dropna().reset_index(name="latency")
            yield str(gpus), collective(4.0 * (gpus - 1) / gpus * x.message_size, x.latency)


def collective(bytes_: pd.Series, latency: pd.Series) -> surfaces.Row:
    """Seconds to launch, bus bytes per second, and the bytes that are small for it."""
    moved = bytes_.to_numpy(dtype=float)

    def predict(c: np.ndarray, rows: np.ndarray) -> np.ndarray:
        return c[0] + (moved[rows] + np.sqrt(c[2] * moved[rows])) / c[1]

    bounds = ((5e-7, 1e8, 1.0), (1.2e-4, 1e12, 3e7), (5e-6, 1e11, 1e5))
    return surfaces.fit(predict, latency.to_numpy(dtype=float) * 1e-3, *bounds)


def kernels(
    identifier: str, folder: Path
) -> Iterator[tuple[tuple[str, str, str, str], surfaces.Row]]:
    gpu = load_catalog().gpu(identifier)
    assert gpu is not None
    peaks = {"bandwidth": gpu.memory_bytes_per_s.value, "bf16": gpu.peak_bf16.value}
    if gpu.peak_fp8:
        peaks["fp8"] = gpu.peak_fp8.value
    if gpu.peak_fp4:
        peaks["fp4"] = gpu.peak_fp4.value
    groups: list[tuple[str, str, Kernel]] = [
        ("matmul", "", matmuls(folder, peaks)),
        ("decode_latent_attention", "", attentions.latent(folder, "generation_mla", peaks)),
        ("prefill_latent_attention", "", attentions.latent(folder, "context_mla", peaks)),
        ("decode_delta", "", attentions.delta(folder, "generation", peaks)),
        ("prefill_delta", "", attentions.delta(folder, "context", peaks)),
        ("decode_indexer", "", attentions.indexer(folder, peaks)),
        ("prefill_sparse_attention", "", attentions.sparse_prefill(folder, peaks)),
        ("gather", "", gather(folder)),
    ]
    for name, engine in ENGINES.items():
        groups += [
            ("decode_attention", name, attentions.decode_attention(folder, engine, peaks)),
            ("prefill_attention", name, attentions.prefill_attention(folder, engine, peaks)),
            ("experts", name, experts(folder, engine, peaks)),
            ("all_reduce", name, all_reduce(folder, engine)),
        ]
    for kind, engine, rows in groups:
        for dtype, row in rows:
            yield (kind, identifier, engine, dtype), row


def main(folder: str) -> None:
    rows = [
        json.dumps([*key, *row])
        for identifier, name in GPUS.items()
        for key, row in kernels(identifier, Path(folder) / name)
    ]
    head = [f'"about": {json.dumps(ABOUT)}', f'"source": {json.dumps(SOURCE)}']
    table = '"rows": [\n' + ",\n".join(rows) + "\n]"
    OUTPUT.write_text("{\n" + ",\n".join([*head, table]) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1])
