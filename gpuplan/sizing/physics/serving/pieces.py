"""Steps that are CUDA graphs between their attention: decode steps of the first releases of vLLM's
V1 engine, and in all of them those with few tokens of prompts.

From 0.8, with which that engine became the default, to 0.10 a graph left attention out, so that the
host starts the attention of each layer and the piece of a graph after it; from 0.11 on a step that
only decodes is one graph (docs.vllm.ai, design/cuda_graphs). AMD's images of 0.9 are not slower
where the host would be (ROCm/vllm: 80 layers in 8.4 ms). Up to how many tokens a step with prompts
is graphs stands with its sources in `catalog/data/kernels`.
"""

from __future__ import annotations

from gpuplan.catalog.kernels import engine_kernels
from gpuplan.catalog.model import Gpu
from gpuplan.engines.servers import minor, release_numbers
from gpuplan.sizing.data import serving as calibration
from gpuplan.sizing.evidence.formula import constant
from gpuplan.sizing.evidence.sheet import Scope
from gpuplan.sizing.physics.serving.service import NO_START, Service

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


def graphed(service: Service) -> Scope:
    """Up to how many tokens a step with a prompt is graphs, and what the host takes for a layer of
    it; {} where it starts each kernel. A plan, which says itself how many sequences its server
    takes, has them only where those are given: it does not know yet how many it will say."""
    known, release = engine_kernels(service.engine), release_numbers(service.release)
    row = known.graphed(release, service.model.architecture) if known and release else None
    told = service.max_num_seqs if service.admitted is None else service.admitted
    planned = told is None and service.start == NO_START
    if row is None or (planned and row.tokens_each is not None):
        return {}
    cited = f"largest CUDA graph of {service.engine} {service.release}"
    return {
        "graphed_tokens": constant(row.most(told), "1", cited),
        "piece_seconds": constant(calibration.PIECE_SECONDS, "s", calibration.SOURCE),
    }
