"""Products of prompts on AMD's GPUs whose fp8 weights are scaled in blocks: AITER picks the kernel
of each shape from tables, by architecture (`catalog/data/kernels/aiter.yaml`), and takes a default
where it finds none. A release that had no such table for any model (`releases.scaled_within`) is
before all of them.
"""

from __future__ import annotations

from gpuplan.catalog.kernels import tuned_products
from gpuplan.catalog.model import Gpu
from gpuplan.models.model import Transformer
from gpuplan.sizing.data import serving as calibration
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope
from gpuplan.sizing.physics.serving.releases import scaled_within
from gpuplan.sizing.physics.serving.service import Service


def tuned(model: Transformer, gpu: Gpu, engine: str, release: str) -> bool:
    """Whether AITER's tables have the products of a model whose weights are scaled in blocks."""
    listed = tuned_products(gpu, model.architecture, model.hidden_size)
    return listed and scaled_within(engine, release, gpu.vendor)


def slower_prompts(service: Service, scaled_inputs: Quantity) -> Scope:
    """How many times as long prompts take as tables of others' kernels say, where a maker's own
    kernels were not tuned for their shapes; {} where they were, or nothing is scaled."""
    gpu = service.device.gpu
    constants = calibration.VENDOR.get(gpu.vendor, {})
    if not constants or not scaled_inputs.value:
        return {}
    if tuned(service.model, gpu, service.engine, service.release):
        return {}
    cited = f"{calibration.SOURCE}, {gpu.vendor}"
    return {"prompt_factor": constant(constants["untuned_prompts"], "1", cited)}
