"""Products of prompts on AMD's GPUs whose fp8 weights are scaled in blocks: AITER picks the kernel
of each shape from tables, by architecture, and takes a default where it finds none ("not found
tuned config ... will use default config").

The default takes 2.9 to 3.3 times as long as what tuning finds (ROCm/aiter#3324, MI300X, sums over
shapes). Of CDNA 3 with 304 compute units (MI300X, MI325X) the tables have DeepSeek-V3 (#2881) and
V3.2 (#3951), Qwen3-235B's shapes (those of Qwen3-VL-235B, #3324), Qwen3.6-27B (#3324) and GLM-5.1;
of Qwen3.5 they have none (#2613, not merged), which a log of a 122B shows
(Millstone-AI-Solutions/mi300x-benchmark-investigation, logs/vllm-v2-startup.log). Of CDNA 4 they
have more. Read of ROCm/aiter at its state of 2026-08-22: aiter/configs/
a8w8_blockscale_tuned_gemm.csv and model_configs/. Shapes are told by family and hidden size here,
not by the division. Which engine's image first had each table is not known: a release that had none
for any model (`releases.SCALED_WITHIN`) is before all of them.
"""

from __future__ import annotations

from gpuplan.catalog.model import Gpu
from gpuplan.models.model import Transformer
from gpuplan.sizing.data import serving as calibration
from gpuplan.sizing.evidence.formula import Quantity, constant
from gpuplan.sizing.evidence.sheet import Scope
from gpuplan.sizing.physics.serving.releases import scaled_within
from gpuplan.sizing.physics.serving.service import Service

# Beginnings of architectures, and the hidden sizes whose products are in the tables.
BY_GPU = {
    "cdna3": {
        "DeepseekV3": (7168,),
        "GlmMoeDsa": (6144,),
        "Qwen3Moe": (4096,),
        "Qwen3VLMoe": (4096,),
        "Qwen3_5For": (5120,),
    },
    "cdna4": {
        "DeepseekV3": (7168,),
        "GlmMoeDsa": (6144,),
        "MiniMaxM2": (3072,),
        "Qwen3Moe": (4096,),
        "Qwen3Next": (2048,),
        "Qwen3_5Moe": (4096,),
    },
}


def tuned(model: Transformer, gpu: Gpu, engine: str, release: str) -> bool:
    """Whether AITER's tables have the products of a model whose weights are scaled in blocks."""
    families = BY_GPU.get(gpu.architecture, {})
    listed = any(
        model.architecture.startswith(family) and model.hidden_size in sizes
        for family, sizes in families.items()
    )
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
