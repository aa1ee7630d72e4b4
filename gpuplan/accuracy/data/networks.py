"""The network of a GPU in the machines of public training points: bytes per second, one direction.

Assumed of them all, and by the fit of the training step (bench/fitting/training.py): points seldom
state theirs. By GPU, or by architecture.
"""

from __future__ import annotations

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
