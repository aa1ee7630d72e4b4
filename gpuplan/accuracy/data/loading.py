"""Data loading of the MLPerf Storage benchmark: what an accelerator asks of storage.

Source: configs/dlio/workload of mlcommons/storage@caa90c9 (2025-06-13).
"""

from __future__ import annotations

SOURCE = "workloads of MLPerf Storage (mlcommons/storage, 2025-06-13)"
# Workload: bytes of a sample, samples of a batch, part of its time that an accelerator must work.
WORKLOADS: dict[str, tuple[float, int, float]] = {
    "unet3d": (146600628.0, 7, 0.9),
    "cosmoflow": (2828486.0, 1, 0.7),
    "resnet50": (114660.07, 400, 0.9),
}
# Workload and accelerator: seconds that it computes on a batch.
SECONDS: dict[tuple[str, str], float] = {
    ("unet3d", "a100"): 0.636,
    ("unet3d", "h100"): 0.323,
    ("cosmoflow", "a100"): 0.00551,
    ("cosmoflow", "h100"): 0.0035,
    ("resnet50", "a100"): 0.435,
    ("resnet50", "h100"): 0.224,
}
# Storage is filled with accelerators until they work little more than they must: the part of the
# room between that and 1 which is left, median of public points of MLPerf Storage v1.0.
ROOM = 0.03
