"""What a release of an engine does on the host, or in more kernels than another: sums over GPUs,
inputs that are scaled, and how far vLLM's host works while the GPU does.

Both add an exchange of tensor parallelism to the residual and norm it in one kernel of FlashInfer's
on Hopper and data-center Blackwell, by default. SGLang: of architectures that are on a list,
without data-parallel attention (sgl-project/sglang, python/sglang/srt/server_args.py and
arg_groups, and #22664), on AMD's GPUs only if asked (#13747, #38710). vLLM: from 0.17 on
(vllm-project/vllm#34299; not yet in 0.14.1's vllm/config/vllm.py), of SM 10.3 from 0.19 on
(#37755), beside data parallelism from 0.21 on (#34392, #41458). Elsewhere those are kernels of
their own: 2 to 8.5 us for each exchange (ModelTC/LightLLM#1405, vllm-project/vllm#48757). Recipes
of InferenceX ask for it, of the models and makers that `ASKED` names
(benchmarks/gptoss_fp4_b200.sh, 70b_fp8_b200_docker.sh). MiniMax-M2 norms queries and keys over the
heads of all GPUs, which is one exchange more in each layer (vllm-project/vllm#31493,
sgl-project/sglang#14416).
The kernels that scale the inputs of fp8 blocks are part of others from vLLM 0.18 on (#27883,
#36551) and, on AMD's GPUs, SGLang 0.5.10 (#12689, #18242): #13617 had taken Triton's products for
AITER's on MI300X, which were tuned no sooner (#14043, #18242).
vLLM schedules the next step while one runs, by default from 0.14 on (its release notes), with
pipeline parallelism from 0.15 on (vllm-project/vllm#32359); of those who draft tokens only ahead of
EAGLE and multi-token prediction (#31998).
"""

from __future__ import annotations

import re

from gpuplan.catalog.model import Gpu
from gpuplan.models.model import Transformer
from gpuplan.sizing.calibration.served import TUNED
from gpuplan.sizing.data import serving as calibration
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope
from gpuplan.sizing.physics.serving.service import Service

Release = tuple[int, ...]
# The release in which an architecture is first seen on SGLang's list; an unknown one is the oldest.
OLDEST: Release = (0, 5, 6)
LISTED: dict[str, Release] = {
    **dict.fromkeys(("DeepseekV3ForCausalLM", "GptOssForCausalLM"), OLDEST),
    **dict.fromkeys(
        (
            "Glm4MoeForCausalLM",
            "Glm4MoeLiteForCausalLM",
            "KimiK25ForConditionalGeneration",
            "Qwen3MoeForCausalLM",
        ),
        (0, 5, 9),
    ),
    **dict.fromkeys(("Qwen3NextForCausalLM", "Qwen3_5MoeForConditionalGeneration"), (0, 5, 11)),
    **dict.fromkeys(
        (
            "DeepseekV32ForCausalLM",
            "DeepseekV4ForCausalLM",
            "GlmMoeDsaForCausalLM",
            "NemotronHForCausalLM",
            "Qwen3VLMoeForConditionalGeneration",
            "Qwen3_5ForConditionalGeneration",
        ),
        (0, 5, 20),
    ),
}
CAPABILITIES = ("9.", "10.")  # Hopper, data-center Blackwell
# The release of vLLM that fuses there, by the beginning of the compute capability.
FUSED: tuple[tuple[str, Release], ...] = (("10.3", (0, 19)), *((c, (0, 17)) for c in CAPABILITIES))
FUSED_BESIDE_OTHERS: Release = (0, 21)  # with data parallelism
# What recipes of those who tune say, by engine and beginning of the compute capability, "" of
# AMD's: the beginnings of architectures.
ASKED = {
    ("sglang", "9"): ("DeepseekV3", "Qwen3_5"),
    ("sglang", "1"): ("DeepseekV3", "Qwen3_5"),
    ("sglang", ""): ("Qwen3_5",),
    ("vllm", "1"): ("GptOss", "Llama"),
}
NORMED_OVER_HEADS = ("MiniMaxM2",)
ASYNCHRONOUS: Release = (0, 14)
ASYNCHRONOUS_STAGES: Release = (0, 15)
DRAFTED_AHEAD = ("mtp", "eagle", "eagle3")
SCALED_WITHIN: dict[str, Release] = {"vllm": (0, 18), "sglang": (0, 5, 10)}


def unfused(service: Service, exchanges: Quantity) -> Scope:
    """For what a step takes longer where `exchanges` and norms are kernels of their own, or norms
    are exchanges; {} where one kernel does both, or nothing is exchanged."""
    model, gpu = service.model, service.device.gpu
    if service.division.tensor_parallel_size == 1 or service.engine not in SCALED_WITHIN:
        return {}
    apart = 0.0 if _fused(service) else exchanges.value
    if model.architecture.startswith(NORMED_OVER_HEADS):
        apart += model.layers
    if not apart:
        return {}
    slower = calibration.VENDOR.get(gpu.vendor, {}).get("overhead", 1.0)
    cited = f"{calibration.SOURCE}, {service.engine}"
    return {
        "unfused_exchanges": Quantity(apart, "1", model.source),
        "unfused_seconds": constant(calibration.UNFUSED_SECONDS * slower, "s", cited),
    }


def _fused(service: Service) -> bool:
    model, gpu, division = service.model, service.device.gpu, service.division
    capability = gpu.compute_capability or ""
    asked = ASKED.get((service.engine, capability[:1]), ())
    if service.site in TUNED and model.architecture.startswith(asked):
        return True
    if service.engine == "sglang":
        return _listed(model, gpu, service.release) and division.data_parallel_size == 1
    release = _numbers(service.release)
    first = next((first for c, first in FUSED if capability.startswith(c)), None)
    if release is None or first is None or release < first:
        return False
    return division.data_parallel_size == 1 or release >= FUSED_BESIDE_OTHERS


def _listed(model: Transformer, gpu: Gpu, release: str) -> bool:
    if not (gpu.compute_capability or "").startswith(CAPABILITIES):
        return False
    first = LISTED.get(model.architecture)
    return first is not None and (_numbers(release) or OLDEST) >= first


def asynchronous(engine: str, release: str, stages: int = 1) -> bool:
    """Whether the host prepares a step while the one before it runs, unless tokens are drafted."""
    numbers, first = _numbers(release), ASYNCHRONOUS if stages == 1 else ASYNCHRONOUS_STAGES
    return engine == "vllm" and numbers is not None and numbers >= first


def overlapped(service: Service, host: Quantity) -> Quantity:
    """What a step still waits for of the host's work for a sequence."""
    if not asynchronous(service.engine, service.release, service.division.pipeline_stages):
        return host
    if service.declared.accepted_tokens and service.declared.drafted_by not in DRAFTED_AHEAD:
        return host
    cited = f"{calibration.SOURCE}, vllm from 0.14 on"
    return constant(host.value * calibration.OVERLAPPED, host.unit, cited)


def scaled_within(engine: str, release: str, vendor: str) -> bool:
    """Whether other kernels scale the inputs of fp8 blocks."""
    numbers, first = _numbers(release), SCALED_WITHIN.get(engine)
    if numbers is None or first is None or (engine == "sglang" and vendor != "amd"):
        return False
    return numbers >= first


def scaled(service: Service, each: Quantity) -> Quantity:
    """What of the overhead for each product whose inputs are scaled is left."""
    if not scaled_within(service.engine, service.release, service.device.gpu.vendor):
        return each
    cited = f"{each.source}; a part where other kernels scale, {calibration.SOURCE}"
    return constant(each.value * calibration.SCALED_WITHIN, each.unit, cited)


def _numbers(release: str) -> Release | None:
    """The numbers of "0.5.6.post1"; None of a name without."""
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", release)
    return tuple(int(n) for n in match.groups() if n) if match else None
