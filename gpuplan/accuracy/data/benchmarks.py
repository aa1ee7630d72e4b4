"""Constants of MLPerf Training, written by bench/fitting/benchmarks.py.

Fractions of the dense bf16 peak, overheads in seconds; samples to the target over those of the
reference. Generations are relative to Hopper; of RDNA 3 all points are tinygrad's, whose factor
stands for it.
"""

from __future__ import annotations

SOURCE = "fitted on public MLPerf Training results 4.0 to 5.1 (2026-11-27)"
CONSTANTS: dict[str, float] = {
    "generation.hopper": 1.0,
    "generation.rdna3": 1.0,
    "fraction.bert": 0.6193,
    "fraction.flux": 0.7245,
    "fraction.sd": 0.3412,
    "fraction.gpt3": 0.8142,
    "fraction.bert.blackwell": 0.4186,
    "fraction.sd.blackwell": 0.3015,
    "fraction.gpt3.blackwell": 0.8518,
    "generation.ampere": 0.6957,
    "generation.ada": 0.8,
    "generation.blackwell": 0.8501,
    "generation.cdna3": 0.75,
    "generation.cdna4": 0.75,
    "gpu.h200-sxm-141gb": 1.051,
    "gpu.gb200-186gb": 0.9924,
    "gpu.gb300-288gb": 1.146,
    "overhead.bert": 0.00466,
    "overhead.flux": 0.1012,
    "overhead.sd": 0.007523,
    "overhead.gpt3": 0.01004,
    "overhead.scale": 0.002199,
    "software.preview": 1.114,
    "excess.bert": 0.9995,
    "excess.flux": 1.069,
    "excess.sd": 1.036,
    "excess.gpt3": 1.046,
    "excess.llama2-70b": 1.115,
    "excess.llama3.1-8b": 1.049,
    "excess.llama3.1-405b": 0.9962,
    "samples.nvfp4": 1.075,
    "software.tinygrad": 6.432,
}
