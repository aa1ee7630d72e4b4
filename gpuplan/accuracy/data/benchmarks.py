"""Constants of MLPerf Training, written by bench/fit_benchmarks.py.

Fractions of the dense bf16 peak, overheads in seconds; samples to the target over those of the
reference. Generations are relative to Hopper; of RDNA 3 all points are tinygrad's, whose factor
stands for it.
"""

from __future__ import annotations

SOURCE = "fitted on public MLPerf Training results 4.0 to 5.1 (2026-11-27)"
CONSTANTS: dict[str, float] = {
    "generation.hopper": 1.0,
    "generation.rdna3": 1.0,
    "fraction.bert": 0.6195,
    "fraction.flux": 0.7243,
    "fraction.sd": 0.3411,
    "fraction.gpt3": 0.8142,
    "fraction.bert.blackwell": 0.4157,
    "fraction.sd.blackwell": 0.299,
    "fraction.gpt3.blackwell": 0.7653,
    "generation.ampere": 0.6955,
    "generation.ada": 0.8,
    "generation.blackwell": 0.8501,
    "generation.cdna3": 0.75,
    "generation.cdna4": 0.75,
    "gpu.h200-sxm-141gb": 1.051,
    "gpu.gb200-186gb": 0.9952,
    "gpu.gb300-288gb": 1.146,
    "overhead.bert": 0.004687,
    "overhead.flux": 0.1014,
    "overhead.sd": 0.00749,
    "overhead.gpt3": 0.01004,
    "overhead.scale": 0.002177,
    "excess.bert": 1.0,
    "excess.flux": 1.069,
    "excess.sd": 1.035,
    "excess.gpt3": 1.046,
    "excess.llama2-70b": 1.114,
    "excess.llama3.1-8b": 1.055,
    "excess.llama3.1-405b": 0.976,
    "samples.nvfp4": 1.072,
    "software.tinygrad": 6.427,
}
