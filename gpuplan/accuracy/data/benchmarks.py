"""Constants of MLPerf Training, written by bench/fit_benchmarks.py.

Fractions of the dense bf16 peak, overheads in seconds; samples to the target and the
global batch beyond which they double. Generations are relative to Hopper; of RDNA 3 all
points are tinygrad's, whose factor stands for it."""

from __future__ import annotations

SOURCE = "fitted on public MLPerf Training results 4.1 to 5.1 (2026-11-21)"
CONSTANTS: dict[str, float] = {
    "fraction.bert": 0.6189,
    "fraction.flux": 0.7241,
    "fraction.sd": 0.3411,
    "fraction.gpt3": 0.8142,
    "fraction.bert.blackwell": 0.4153,
    "fraction.sd.blackwell": 0.299,
    "fraction.gpt3.blackwell": 0.7653,
    "generation.hopper": 1.0,
    "generation.rdna3": 1.0,
    "generation.ampere": 0.6961,
    "generation.ada": 0.8,
    "generation.blackwell": 0.8501,
    "generation.cdna3": 0.75,
    "generation.cdna4": 0.75,
    "gpu.h200-sxm-141gb": 1.051,
    "gpu.gb200-186gb": 0.9953,
    "gpu.gb300-288gb": 1.146,
    "overhead.bert": 0.004623,
    "overhead.flux": 0.1013,
    "overhead.sd": 0.007461,
    "overhead.gpt3": 0.01004,
    "overhead.scale": 0.0022,
    "samples.bert": 2384000.0,
    "samples.flux": 9534000.0,
    "samples.sd": 2108000.0,
    "samples.gpt3": 594900.0,
    "samples.llama2-70b": 3593.0,
    "samples.llama3.1-8b": 169900.0,
    "samples.llama3.1-405b": 302600.0,
    "critical.bert": 401.6,
    "critical.flux": 3491.0,
    "critical.sd": 1303.0,
    "critical.gpt3": 7547.0,
    "critical.llama2-70b": 23.51,
    "critical.llama3.1-8b": 113.1,
    "critical.llama3.1-405b": 6931.0,
    "samples.nvfp4": 1.047,
    "software.tinygrad": 16.44,
    "samples.sd.late": 0.8508,
}
