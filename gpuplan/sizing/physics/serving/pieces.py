"""Decode steps that are no single CUDA graph: those of the first releases of vLLM's V1 engine.

From 0.8, with which that engine became the default, to 0.10 a graph left attention out, so that the
host starts the attention of each layer and the piece of a graph after it; from 0.11 on a step that
only decodes is one graph (docs.vllm.ai, design/cuda_graphs). AMD's images of 0.9 are not slower
where the host would be (ROCm/vllm: 80 layers in 8.4 ms).
"""

from __future__ import annotations

from gpuplan.catalog.model import Gpu
from gpuplan.engines.servers import minor
from gpuplan.sizing.data import serving as calibration
from gpuplan.sizing.evidence.formula import constant
from gpuplan.sizing.evidence.sheet import Scope

FIRST, AFTER = (0, 8), (0, 11)


def pieces(engine: str, release: str, gpu: Gpu) -> Scope:
    """What the host takes for a layer, where it starts each; {} of steps that are one graph, and
    of a release that is no number."""
    numbers = minor(release)
    if engine != "vllm" or gpu.vendor != "nvidia" or numbers is None:
        return {}
    if not FIRST <= numbers < AFTER:
        return {}
    cited = f"{calibration.SOURCE}, vllm 0.8 to 0.10"
    return {"piece_seconds": constant(calibration.PIECE_SECONDS, "s", cited)}
