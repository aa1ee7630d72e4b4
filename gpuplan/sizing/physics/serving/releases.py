"""What a release of an engine does on the host, or in more kernels than another: SGLang's sums over
GPUs, and how far vLLM's host works while the GPU does.

SGLang adds an exchange of tensor parallelism to the residual and norms it in one kernel of
FlashInfer's on Hopper and data-center Blackwell, of architectures that are on a list, without
data-parallel attention: sgl-project/sglang, python/sglang/srt/server_args.py and arg_groups, and
#22664; on AMD's GPUs only if asked (#13747, #38710). Elsewhere those are kernels of their own: 2 to
8.5 us for each exchange (ModelTC/LightLLM#1405, vllm-project/vllm#48757). Recipes of InferenceX ask
for it, of the models and makers that `ASKED` names.
vLLM schedules the next step while one runs, by default from 0.14 on (its release notes).
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
# What recipes of those who tune say, by maker: the beginnings of architectures.
ASKED = {"nvidia": ("DeepseekV3", "Qwen3_5"), "amd": ("Qwen3_5",)}
ASYNCHRONOUS: Release = (0, 14)


def unfused(service: Service) -> Scope:
    """For what a step takes longer where exchanges and norms are kernels of their own; {} where
    one kernel does both, or nothing is exchanged."""
    model, gpu, division = service.model, service.device.gpu, service.division
    if service.engine != "sglang" or division.tensor_parallel_size == 1:
        return {}
    if service.site in TUNED and model.architecture.startswith(ASKED.get(gpu.vendor, ())):
        return {}
    if _listed(model, gpu, service.release) and division.data_parallel_size == 1:
        return {}
    slower = calibration.VENDOR.get(gpu.vendor, {}).get("overhead", 1.0)
    cited = f"{calibration.SOURCE}, sglang"
    return {"unfused_seconds": constant(calibration.UNFUSED_SECONDS * slower, "s", cited)}


def _listed(model: Transformer, gpu: Gpu, release: str) -> bool:
    if not (gpu.compute_capability or "").startswith(CAPABILITIES):
        return False
    first = LISTED.get(model.architecture)
    return first is not None and (_numbers(release) or OLDEST) >= first


def asynchronous(engine: str, release: str) -> bool:
    """Whether the host prepares a step while the one before it runs."""
    numbers = _numbers(release)
    return engine == "vllm" and numbers is not None and numbers >= ASYNCHRONOUS


def overlapped(host: Quantity) -> Quantity:
    """What a step still waits for of the host's work for a sequence."""
    cited = f"{calibration.SOURCE}, vllm from 0.14 on"
    return constant(host.value * calibration.OVERLAPPED, host.unit, cited)


def _numbers(release: str) -> Release | None:
    """The numbers of "0.5.6.post1"; None of a name without."""
    match = re.match(r"v?(\d+)\.(\d+)(?:\.(\d+))?", release)
    return tuple(int(n) for n in match.groups() if n) if match else None
