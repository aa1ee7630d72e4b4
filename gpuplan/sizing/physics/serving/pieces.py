"""Steps that are CUDA graphs between their attention: decode steps of the first releases of vLLM's
V1 engine, where the host starts the attention of each layer and the piece of a graph after it, and
in all of them those with few tokens of prompts. Which releases do so, and up to how many tokens,
stands with its sources in `catalog/data/kernels`.
"""

from __future__ import annotations

from gpuplan.catalog.kernels import Graphed, engine_kernels
from gpuplan.catalog.model import Gpu
from gpuplan.engines.servers import release_numbers
from gpuplan.sizing.data import serving as calibration
from gpuplan.sizing.evidence.formula import constant
from gpuplan.sizing.evidence.sheet import Scope
from gpuplan.sizing.physics.serving.service import NO_START, Service


def pieces(engine: str, release: str, gpu: Gpu) -> Scope:
    """What the host takes for a layer, where it starts each; {} of steps that are one graph, and
    of a release that is no number."""
    known, numbers = engine_kernels(engine), release_numbers(release)
    launched = known.launched_attention if known else None
    if launched is None or numbers is None or not launched.covers(numbers, gpu):
        return {}
    cited = f"{calibration.SOURCE}, {engine} {release}"
    return {"piece_seconds": constant(calibration.PIECE_SECONDS, "s", cited)}


def graphed(service: Service) -> Scope:
    """Up to how many tokens a step with a prompt is graphs, and what the host takes for a layer of
    it; {} where it starts each kernel. A plan, which says itself how many sequences its server
    takes, has them only where those are given: it does not know yet how many it will say."""
    known, release = engine_kernels(service.engine), release_numbers(service.release)
    row = known.graphed(release, service.model.architecture) if known and release else None
    told = service.max_num_seqs if service.admitted is None else service.admitted
    planned = told is None and service.start == NO_START
    if row is None or not _is_of(row, service) or (planned and row.tokens_each is not None):
        return {}
    cited = f"largest CUDA graph of {service.engine} {service.release}"
    return {
        "graphed_tokens": constant(row.most(told), "1", cited),
        "piece_seconds": constant(calibration.PIECE_SECONDS, "s", calibration.SOURCE),
    }


def _is_of(row: Graphed, service: Service) -> bool:
    """Whether it holds on this GPU and in this division."""
    division, vendor = service.division, service.device.gpu.vendor
    divided = division.pipeline_stages > 1 or division.data_parallel_size > 1
    return row.tokens > 0 and row.vendor in (None, vendor) and not (row.undivided and divided)
