"""Large bf16 matrix products: what GPUs reach of their dense peaks.

GPU: TFLOP/s reached at the best shape, and the peak they are compared with. Cards may run faster
than the boost clock that their peak is stated for. Sources: mag-/gpu_benchmark, table of its README
(read 2026-11-21; V100 in FP16); Machine Learning Engineering, "Maximum Achievable Matmul FLOPS"
(stas00/ml-engineering@744d01e, 2026-08-22) for B200, GB200, B300 and CDNA;
zzc0721/torch-performance-test-data #162 and #15 (2026-04-09, 2025-09-24) for GB202.
"""

from __future__ import annotations

SOURCE = "bf16 matrix products reached: gpu_benchmark, ml-engineering, 2026-08-22"

ACHIEVED: dict[str, tuple[float, float]] = {
    "a100-sxm-80gb": (267.9, 312.0),
    "a100-pcie-80gb": (256.4, 312.0),
    "h100-sxm-80gb": (821.2, 989.0),
    "h200-sxm-141gb": (794.5, 989.0),
    "h100-pcie-80gb": (499.5, 756.0),
    "h100-nvl-94gb": (488.5, 835.5),
    "gh200-96gb": (852.5, 989.0),
    "gh200-144gb": (853.8, 989.0),
    "b200-sxm-180gb": (1745.0, 2250.0),
    "b300-sxm-288gb": (1769.0, 2250.0),
    "gb200-186gb": (1822.0, 2500.0),
    "l4": (91.4, 121.0),
    "l40": (170.3, 181.0),
    "l40s": (252.0, 362.0),
    "a10g": (69.7, 70.0),
    "rtx-a5000": (93.9, 111.1),
    "rtx-a6000": (131.2, 154.8),
    "rtx-3090-24gb": (78.0, 71.0),
    "rtx-3090-ti-24gb": (86.0, 80.0),
    "rtx-4090-24gb": (178.8, 165.2),
    "rtx-4000-ada": (82.7, 106.9),
    "rtx-6000-ada": (278.5, 364.2),
    "rtx-pro-6000-server": (417.34, 467.8),
    "rtx-5090-32gb": (236.03, 209.5),
    "v100-sxm-16gb": (96.1, 125.0),
    "v100-sxm-32gb": (94.0, 125.0),
    "mi300x-192gb": (788.2, 1307.0),
    "mi325x-256gb": (784.9, 1307.4),
    "mi355x-288gb": (1565.0, 2500.0),
    "rx-7900-xtx-24gb": (113.3, 122.8),
}
# GPUs that were not measured, by how their identifiers begin: the nearest that was.
SIBLINGS: tuple[tuple[str, str], ...] = (
    ("a100-pcie", "a100-pcie-80gb"),
    ("a100", "a100-sxm-80gb"),
    ("a800-pcie", "a100-pcie-80gb"),
    ("a800", "a100-sxm-80gb"),
    ("h800-pcie", "h100-pcie-80gb"),
    ("h200-nvl", "h100-nvl-94gb"),
    ("gb300", "gb200-186gb"),
    ("a40", "rtx-a6000"),
    ("rtx-a4000", "rtx-a5000"),
    ("rtx-30", "rtx-3090-24gb"),
    ("rtx-40", "rtx-4090-24gb"),
    ("rtx-50", "rtx-5090-32gb"),
    ("v100", "v100-sxm-32gb"),
    ("mi350x", "mi355x-288gb"),
)
