"""Kernels of the experts of a checkpoint in NVFP4: which a release must be told, and where it has
none. Facts by release stand with their sources in `catalog/data/kernels`."""

from __future__ import annotations

from gpuplan.catalog.experts import ExpertKernels, NamedExperts
from gpuplan.catalog.kernels import engine_kernels
from gpuplan.catalog.model import Gpu
from gpuplan.plan.model import Shortfall
from gpuplan.sizing.ask.demand import LanguageDemand
from gpuplan.sizing.candidates.gates import uneven
from gpuplan.sizing.hardware.measured import gate_of
from gpuplan.sizing.physics.serving.service import Division


def told(demand: LanguageDemand, gpu: Gpu) -> NamedExperts | None:
    """What the engine must be told on such GPUs, if anything."""
    if (known := _known(demand)) is None:
        return None
    experts, release = known
    return experts.told(release, gpu, demand.model.architecture)


def missing(demand: LanguageDemand, gpu: Gpu) -> tuple[Shortfall, ...]:
    """The gate of GPUs on which the release runs no experts of the model."""
    if (known := _known(demand)) is None:
        return ()
    (experts, release), architecture, engine = known, demand.model.architecture, demand.engine
    if not experts.lacks(release, gpu, architecture):
        return ()
    what = f"kernels of {engine.name} {engine.version} for nvfp4 experts of {architecture}"
    return gate_of(what, "absent")


def undivided(demand: LanguageDemand, gpu: Gpu, division: Division) -> tuple[Shortfall, ...]:
    """The gate of a division that the named kernels do not take: experts that are split, not whole
    on GPUs, into parts of another width."""
    named, experts = told(demand, gpu), demand.model.experts
    if named is None or experts is None or division.expert_parallel_size > 1:
        return ()
    gpus, width = division.tensor_parallel_size, experts.intermediate_size
    if width % (named.rows * gpus) == 0:
        return ()
    return (uneven(gpus, width // named.rows, f"times {named.rows} rows of an expert"),)


def _known(demand: LanguageDemand) -> tuple[ExpertKernels, tuple[int, ...]] | None:
    """Kernels of the engine, and its release, where the model has such experts."""
    model, known = demand.model, engine_kernels(demand.engine.name)
    optimized = (model.quant_method, model.checkpoint_precision) == ("modelopt", "nvfp4")
    if known is None or model.experts is None or not optimized:
        return None
    release = known.release(demand.engine.version)
    return (known.experts, release) if release else None
