"""Constants of MLPerf Training, written by bench/fit_benchmarks.py.

Fractions of the dense bf16 peak, overheads in seconds; samples to the target and the global batch
beyond which they double. Generations are relative to Hopper; of RDNA 3 all points are tinygrad's,
whose factor stands for it.
"""

from __future__ import annotations

SOURCE = "fitted on public MLPerf Training results 4.0 to 5.1 (2026-11-21)"
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
    "samples.bert": 2472000.0,
    "samples.flux": 9535000.0,
    "samples.sd": 2118000.0,
    "samples.gpt3": 594900.0,
    "samples.llama2-70b": 3567.0,
    "samples.llama3.1-8b": 165000.0,
    "samples.llama3.1-405b": 298000.0,
    "critical.bert": 6188.0,
    "critical.flux": 3489.0,
    "critical.sd": 1147.0,
    "critical.gpt3": 7546.0,
    "critical.llama2-70b": 29.05,
    "critical.llama3.1-8b": 88.51,
    "critical.llama3.1-405b": 7191.0,
    "samples.nvfp4": 1.081,
    "software.tinygrad": 7.365,
    "samples.sd.late": 0.8438,
}
