"""Steps that are CUDA graphs between their attention: decode steps of the first releases of vLLM's
V1 engine and, of later ones, those of more requests than their largest whole graph holds; and in
all of them those with few tokens of prompts.

The host starts the attention of each layer of such a step, and the piece of a graph after it. Which
steps are which stands with its sources in `catalog/data/kernels`.
"""

from __future__ import annotations

import itertools
from functools import cache

from gpuplan.catalog.kernels import EngineKernels, Graphed, Release, Whole, engine_kernels
from gpuplan.releases import release_numbers
from gpuplan.sizing.data import serving as calibration
from gpuplan.sizing.evidence.formula import Formula, constant
from gpuplan.sizing.evidence.sheet import Scope, Sheet, sheet
from gpuplan.sizing.physics.serving.service import NO_START, Service


def pieces(service: Service) -> Scope:
    """What the host takes for a layer of a decode step that is in pieces, and of how many requests
    those are that are not, where that is told; {} where none is, and of a release that is no
    number. A service that says itself how many it takes says a number that is a whole graph."""
    (known, release), row, gpu = _kernels(service), _graphed(service), service.device.gpu
    launched = known.launched_attention if known else None
    if launched is None or row is None or not launched.on(gpu):
        return {}
    each = {"piece_seconds": constant(calibration.PIECE_SECONDS, "s", calibration.SOURCE)}
    cited = f"largest step that is one CUDA graph, {service.engine} {service.release}"
    if launched.covers(release, gpu):
        return each | {"whole_sequences": constant(0, "1", cited)}
    if all_places(service):
        return each
    sizes, told = _undrafted(service), _told(service)
    if sizes is None or told is None:
        return {}
    whole = sizes.below(min(told, row.most(told)))
    return {} if whole == told else each | {"whole_sequences": constant(whole, "1", cited)}


def all_places(service: Service) -> Whole | None:
    """The sizes of whole graphs of a batch that is to say how many requests it takes."""
    batch = not service.random and service.start == NO_START and _told(service) is None
    return _undrafted(service) if batch else None


@cache
def by_size(decode: Sheet, sizes: Whole) -> Sheet:
    """A step of a server that takes as many requests at once as the step has."""
    return _apart("sequences", sizes) + WHOLE + decode


WHOLE = sheet("""
    whole_sequences: 1 = floor(sequences / graph_step) * graph_step
        # the largest step that is one CUDA graph, of a server that takes so many requests at once
""")


def graphed(service: Service) -> Scope:
    """Up to how many tokens a step with a prompt is graphs, and what the host takes for a layer of
    it; {} where it starts each kernel. A plan, which says itself how many sequences its server
    takes, has them only where those are given: it does not know yet how many it will say."""
    row, told = _graphed(service), _told(service)
    planned = told is None and service.start == NO_START
    if row is None or not _is_of(row, service) or (planned and row.tokens_each is not None):
        return {}
    cited = f"largest CUDA graph of {service.engine} {service.release}"
    return {
        "graphed_tokens": constant(row.most(told), "1", cited),
        "piece_seconds": constant(calibration.PIECE_SECONDS, "s", calibration.SOURCE),
    }


def whole_steps(service: Service) -> Whole | None:
    """Of how many requests a step that only decodes is one graph, where that depends on how many
    the server takes at once; None where it does not, and of a pipeline, each of whose batches is a
    part of them."""
    (known, release), drafts = _kernels(service), service.declared.draft_tokens
    sizes = known.whole(release) if known and service.division.pipeline_stages == 1 else None
    return sizes.drafting(round(drafts.value) + 1) if sizes and drafts else sizes


def _undrafted(service: Service) -> Whole | None:
    """The same where a step has one token of a request."""
    return None if service.declared.draft_tokens is not None else whole_steps(service)


@cache
def in_sizes(running: Sheet, sizes: Whole) -> Sheet:
    """`running` with the next size of a graph as its most requests; what they were before is
    `running_requests`."""
    *others, (name, most) = running.lines
    more = _apart("running_requests", sizes)
    why = "the next size of a CUDA graph: a step of more requests than the largest one is slower"
    rounded = Formula("ceil(running_requests / graph_step) * graph_step", most.unit, why)
    return Sheet((*others, ("running_requests", most), *more.lines, (name, rounded)))


def _apart(requests: str, sizes: Whole) -> Sheet:
    apart = str(sizes.sizes[0][1])
    for (_, before), (first, after) in itertools.pairwise(sizes.sizes):
        apart += f" + {after - before} * min(1, max({requests} - {first - 1}, 0))"
    return sheet(f"""
        graph_step: 1 = {apart}  # how far the sizes of CUDA graphs are apart there
    """)


def _kernels(service: Service) -> tuple[EngineKernels | None, Release]:
    """Those of its engine, None of a release that is no number."""
    release = release_numbers(service.release)
    return (engine_kernels(service.engine), release) if release else (None, ())


def _graphed(service: Service) -> Graphed | None:
    """How its engine records steps of its model; None of one that starts each kernel."""
    known, release = _kernels(service)
    return known.graphed(release, service.model.architecture) if known else None


def _told(service: Service) -> float | None:
    return service.max_num_seqs if service.admitted is None else service.admitted


def _is_of(row: Graphed, service: Service) -> bool:
    """Whether it holds on this GPU and in this division."""
    division, vendor = service.division, service.device.gpu.vendor
    divided = division.pipeline_stages > 1 or division.data_parallel_size > 1
    return row.tokens > 0 and row.vendor in (None, vendor) and not (row.undivided and divided)
