"""What points rest on of their GPUs and no file of the catalogue has."""

from __future__ import annotations

# The network of a GPU in the machines of public training points: bytes per second, one direction.
# Assumed of them all, and by the fit of the training step (bench/fitting/training.py): points
# seldom state theirs. By GPU, or by architecture.
NETWORKS: dict[str, float] = {
    "ampere": 25e9,
    "ada": 12.5e9,
    "hopper": 50e9,
    "blackwell": 50e9,
    "b300-sxm-288gb": 100e9,
    "gb200-186gb": 100e9,
    "gb300-288gb": 100e9,
    "cdna3": 50e9,
    "cdna4": 50e9,
}
# Dense bf16 FLOP of an SM in a clock, by compute capability: NVIDIA's white papers of the A100
# (2020), the H100 and the Ada architecture (both 2022).
FLOP_A_CLOCK = {"8.0": 2048.0, "8.9": 1024.0, "9.0": 4096.0}
