"""Attention kernels of the operator tables: softmax, latent, gated delta net, sparse."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd

from bench.kernels.tables import CACHE, ENGINES, Kernel, Peaks, Table, fit, versions


def decode_attention(folder: Path, engine: str, peaks: Peaks) -> Kernel:
    for table in versions(folder, "attention", engine, "generation_attention")[-1:]:
        d = plain(table)
        d["context"] = d.step + d.isl
        d = d[d.context.between(1024, 32768) & (d.batch_size <= 512)]
        d = d[(d.num_heads / d.kv).between(4, 16)]
        for dtype, (name, width) in CACHE.items():
            x = d[d.kv_cache_dtype == dtype].copy()
            if len(x) < 100:
                continue
            x["bytes"] = 2.0 * x.batch_size * x.context * x.kv * x.head_dim * width
            x["flop"] = 4.0 * x.batch_size * x.context * x.num_heads * x.head_dim
            yield name, fit(x, peaks, "bf16")


def prefill_attention(folder: Path, engine: str, peaks: Peaks) -> Kernel:
    for table in versions(folder, "attention", engine, "context_attention")[-1:]:
        d = plain(table)
        d = d[(d.head_dim == 128) & (d.isl >= 512) & (d.batch_size * d.isl <= 16384)]
        for dtype, (name, _) in CACHE.items():
            x = d[d.kv_cache_dtype == dtype].copy()
            if len(x) < 100:
                continue
            x["bytes"] = 4.0 * x.batch_size * x.isl * (x.num_heads + x.kv) * x.head_dim
            x["flop"] = 2.0 * x.batch_size * x.num_heads * x.head_dim * x.isl**2
            yield name, fit(x, peaks, "bf16")


def plain(d: Table) -> Table:
    """Rows of full attention with usual head sizes; KV heads 0 means one a head."""
    d = d.copy()
    if "window_size" in d:
        d = d[d.window_size == 0].copy()
    d["kv"] = np.where(d.num_key_value_heads == 0, d.num_heads, d.num_key_value_heads)
    return d[d.head_dim.isin([64, 128])]


def latent(folder: Path, table: str, peaks: Peaks) -> Kernel:
    """Latent attention (512 + 64 wide cache): the fastest engine."""
    measured = [t[-1] for e in ("sglang", "trtllm") if (t := versions(folder, "mla", e, table))]
    if not measured:
        return
    keys = ["kv_cache_dtype", "num_heads", "batch_size", "isl", "step"]
    data = pd.concat(measured).groupby(keys, as_index=False).latency.min()
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
        yield name, fit(d, peaks, "bf16")


def delta(folder: Path, phase: str, peaks: Peaks) -> Kernel:
    """Gated delta net, convolution and recurrence: the fastest engine. A state is fp32, read and
    written; a token changes it three times over (decay, outer product, query)."""
    tables = [
        t[-1] for e in ENGINES.values() if (t := versions(folder, "linear_attention", e, "gdn"))
    ]
    keys = ["batch_size", "seq_len", "num_k_heads", "num_v_heads", "head_k_dim", "head_v_dim"]
    best = []
    for table in tables:
        d = table[table.phase == phase].copy()
        d["part"] = np.where(d.kernel_source.str.contains("conv"), "convolution", "recurrence")
        d = d.groupby([*keys, "part"], as_index=False).latency.min()
        wide = d.pivot_table(index=keys, columns="part", values="latency").dropna()
        if len(wide.columns) == 2:
            best.append(wide.sum(axis=1).reset_index(name="latency"))
    if not best:
        return
    d = pd.concat(best).groupby(keys, as_index=False).latency.min()
    d = d[d.num_v_heads >= 4]
    state = d.num_v_heads * d.head_k_dim * d.head_v_dim
    tokens = d.batch_size * d.seq_len
    if phase == "generation":
        d["bytes"], d["flop"] = 8.0 * state * d.batch_size, 6.0 * state * d.batch_size
    else:
        d = d[(tokens >= 64) & (tokens <= 32768)].copy()
        d["bytes"], d["flop"] = 8.0 * state * d.batch_size, 6.0 * state * tokens
    yield "bf16", fit(d, peaks, "bf16")


def sparse(folder: Path, table: str) -> Table:
    """Sparse latent attention of DeepSeek-V3.2 with an fp8 cache, the fastest engine."""
    tables = [
        t[-1]
        for e in ("sglang", "trtllm")
        if (t := versions(folder, "sparse_attention", e, f"dsa_{table}_module"))
    ]
    if not tables:
        return pd.DataFrame()
    d = pd.concat(tables)
    skipped = d.kernel_source.astype(str).str.contains("skip")
    d = d[(d.architecture == "DeepseekV32ForCausalLM") & (d.kv_cache_dtype == "fp8") & ~skipped]
    d = d[d.gemm_type == "fp8_block"]
    return d.groupby(["num_heads", "batch_size", "isl", "step"], as_index=False).latency.min()


def indexer(folder: Path, peaks: Peaks) -> Kernel:
    """What longer contexts add to a decode step of sparse attention beyond the tokens it attends
    to: the kernels of scoring and choosing, and reading 128 bytes a token."""
    d = sparse(folder, "generation")
    if d.empty:
        return
    x = d[d.step.isin([1024, 4096, 16384, 65536])]
    wide = x.pivot_table(index=["num_heads", "batch_size"], columns="step", values="latency")
    many = wide[wide.index.get_level_values("batch_size") >= 32].dropna(subset=[16384, 65536])
    if many.empty:
        many = wide.dropna(subset=[16384, 65536])
    batch = many.index.get_level_values("batch_size").to_numpy()
    rates = batch * 49152 * 128.0 / ((many[65536] - many[16384]).to_numpy() * 1e-3)
    read = min(float(np.median(rates)) / peaks["bandwidth"], 1.0)
    few = wide[wide.index.get_level_values("batch_size") <= 4].dropna(subset=[1024, 4096])
    launch = max(float((few[4096] - few[1024]).median()) * 1e-3, 5e-6)
    yield "fp8", (float(f"{launch:.4g}"), float(f"{read:.4g}"), 0.0, 1.0, 2.0, 0.0)


def sparse_prefill(folder: Path, peaks: Peaks) -> Kernel:
    """The whole module: gathering the chosen tokens dominates."""
    d = sparse(folder, "context")
    if d.empty:
        return
    d = d[(d.isl >= 4096) & (d.step == 0)].copy()
    tokens = d.batch_size * d.isl
    d["bytes"] = tokens * 2048.0 * 576
    d["flop"] = 2.0 * tokens * 2048 * d.num_heads * (576 + 512) + tokens * d.isl * 64.0 * 128
    yield "fp8", fit(d, peaks, "bf16")
