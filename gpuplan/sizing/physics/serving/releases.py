"""What a release of an engine does on the host, or in more kernels than another: sums over GPUs,
inputs that are scaled, and how far vLLM's host works while the GPU does. Which releases do so, of
which models on which GPUs, stands with its sources in `catalog/data/kernels`.

Engines add an exchange of tensor parallelism to the residual and norm it in one kernel of
FlashInfer's. Elsewhere those are kernels of their own: 2 to 8.5 us for each exchange
(ModelTC/LightLLM#1405, vllm-project/vllm#48757). A norm of queries and keys over the heads of all
GPUs is one exchange more in each layer.
"""

from __future__ import annotations

from gpuplan.catalog.kernels import EngineKernels, engine_kernels
from gpuplan.releases import release_numbers
from gpuplan.sizing.calibration.served import TUNED
from gpuplan.sizing.data import serving as calibration
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope
from gpuplan.sizing.physics.serving.service import Service


def unfused(service: Service, exchanges: Quantity) -> Scope:
    """For what a step takes longer where `exchanges` and norms are kernels of their own, or norms
    are exchanges; {} where one kernel does both, nothing is exchanged, or nobody says."""
    model, gpu, known = service.model, service.device.gpu, engine_kernels(service.engine)
    if service.division.tensor_parallel_size == 1 or known is None or not known.fused_exchanges:
        return {}
    apart = 0.0 if _fused(service, known) else exchanges.value
    if model.architecture.startswith(known.exchanged_norms):
        apart += model.layers
    if not apart:
        return {}
    slower = calibration.VENDOR.get(gpu.vendor, {}).get("overhead", 1.0)
    cited = f"{calibration.SOURCE}, {service.engine}"
    return {
        "unfused_exchanges": Quantity(apart, "1", model.source),
        "unfused_seconds": constant(calibration.UNFUSED_SECONDS * slower, "s", cited),
    }


def _fused(service: Service, known: EngineKernels) -> bool:
    gpu, architecture = service.device.gpu, service.model.architecture
    if service.site in TUNED and known.asked(gpu, architecture):
        return True
    first = known.fused_since(gpu, architecture)
    release = known.release(service.release)
    if first is None or release is None or release < first:
        return False
    beside = known.fused_beside_data_parallelism
    alone = service.division.data_parallel_size == 1
    return alone or (beside is not None and release >= beside)


def asynchronous(engine: str, release: str, stages: int = 1) -> bool:
    """Whether the host prepares a step while the one before it runs, unless tokens are drafted."""
    numbers, known = release_numbers(release), engine_kernels(engine)
    first = known.asynchronous_since(stages) if known else None
    return numbers is not None and first is not None and numbers >= first


def mixes(service: Service) -> bool:
    """Whether prompts are computed in one step with the tokens of others, so that they make it
    longer by what they add to it alone. A release without numbers is taken for the newest."""
    known = engine_kernels(service.engine)
    if known is None or known.mixed_steps is None:
        return False
    numbers = release_numbers(service.release)
    return numbers is None or numbers >= known.mixed_steps


def overlapped(service: Service, host: Quantity) -> Quantity:
    """What a step still waits for of the host's work for a sequence."""
    known = engine_kernels(service.engine)
    stages = service.division.pipeline_stages
    if known is None or not asynchronous(service.engine, service.release, stages):
        return host
    if service.declared.accepted_tokens and service.declared.drafted_by not in known.drafted_ahead:
        return host
    cited = f"{calibration.SOURCE}, vllm from 0.14 on"
    return constant(host.value * calibration.OVERLAPPED, host.unit, cited)


def scaled_within(engine: str, release: str, vendor: str) -> bool:
    """Whether other kernels scale the inputs of fp8 blocks."""
    numbers, known = release_numbers(release), engine_kernels(engine)
    if numbers is None or known is None or known.scaled_within is None:
        return False
    return known.scaled_vendor in (None, vendor) and numbers >= known.scaled_within


def scaled(service: Service, each: Quantity) -> Quantity:
    """What of the overhead for each product whose inputs are scaled is left."""
    if not scaled_within(service.engine, service.release, service.device.gpu.vendor):
        return each
    cited = f"{each.source}; a part where other kernels scale, {calibration.SOURCE}"
    return constant(each.value * calibration.SCALED_WITHIN, each.unit, cited)
