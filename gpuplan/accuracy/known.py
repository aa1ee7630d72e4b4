"""What measurements call GPUs, engines, precisions and models, and the dimensions of models that
are not bundled, from their published `config.json`."""

from __future__ import annotations

from functools import cache

from gpuplan.models.load import bundled, bundled_names
from gpuplan.models.model import Experts, LatentAttention, Model, Transformer

GPUS = {
    "A100-SXM-80GB": "a100-sxm-80gb",
    "A100-SXM-40GB": "a100-sxm-40gb",
    "H100-SXM-80GB": "h100-sxm-80gb",
    "H200-SXM-141GB": "h200-sxm-141gb",
    "B200-SXM-180GB": "b200-sxm-180gb",
    "B300-SXM-270GB": "b300-sxm-288gb",
    "GB200": "gb200-186gb",
    "GB300": "gb300-288gb",
    "L40S-48GB": "l40s",
    "RTX-PRO-6000-96GB": "rtx-pro-6000-server",
    "H100-NVL-94GB": "h100-nvl-94gb",
    "H100-PCIe-80GB": "h100-pcie-80gb",
    "H200-NVL-141GB": "h200-nvl-141gb",
    "NVIDIA L4": "l4",
}
ENGINES = {"trtllm": "tensorrt-llm", "vllm": "vllm", "sglang": "sglang"}
PRECISIONS = {
    "bf16": "bf16",
    "fp16": "bf16",
    "fp8": "fp8",
    "fp4": "nvfp4",
    "nvfp4": "nvfp4",
    "int4": "int4",
    "mxfp4": "mxfp4",
}
SDXL = "stabilityai/stable-diffusion-xl-base-1.0"

# layers, hidden size, heads, KV heads, head size, MLP width, vocabulary, tied embeddings, gated MLP
DENSE: dict[str, tuple[int, int, int, int, int, int, int, bool, bool]] = {
    "llama2-7b": (32, 4096, 32, 32, 128, 11008, 32000, False, True),
    "llama2-13b": (40, 5120, 40, 40, 128, 13824, 32000, False, True),
    "llama2-70b": (80, 8192, 64, 8, 128, 28672, 32000, False, True),
    "llama3-8b": (32, 4096, 32, 8, 128, 14336, 128256, False, True),
    "llama3-70b": (80, 8192, 64, 8, 128, 28672, 128256, False, True),
    "llama3.1-405b": (126, 16384, 128, 8, 128, 53248, 128256, False, True),
    "mistral-7b": (32, 4096, 32, 8, 128, 14336, 32000, False, True),
    "mpt-125m": (12, 768, 12, 12, 64, 3072, 50368, True, False),
    "mpt-350m": (24, 1024, 16, 16, 64, 4096, 50368, True, False),
    "mpt-760m": (24, 1536, 12, 12, 128, 6144, 50368, True, False),
    "mpt-1b": (24, 2048, 16, 16, 128, 8192, 50368, True, False),
    "mpt-3b": (32, 2560, 20, 20, 128, 10240, 50368, True, False),
    "mpt-7b": (32, 4096, 32, 32, 128, 16384, 50368, True, False),
    "mpt-13b": (40, 5120, 40, 40, 128, 20480, 50368, True, False),
    "mpt-30b": (48, 7168, 56, 56, 128, 28672, 50368, True, False),
    "mpt-70b": (80, 8192, 64, 64, 128, 32768, 50368, True, False),
    "qwen1-1.8b": (24, 2048, 16, 16, 128, 5504, 151936, False, True),
    "qwen1-7b": (32, 4096, 32, 32, 128, 11008, 151936, False, True),
    "qwen1-14b": (40, 5120, 40, 40, 128, 13696, 152064, False, True),
    "qwen1-72b": (80, 8192, 64, 64, 128, 24576, 152064, False, True),
    "qwen2-0.5b": (24, 896, 14, 2, 64, 4864, 151936, True, True),
    "qwen2-1.5b": (28, 1536, 12, 2, 128, 8960, 151936, True, True),
    "qwen2.5-3b": (36, 2048, 16, 2, 128, 11008, 151936, True, True),
    "qwen2-7b": (28, 3584, 28, 4, 128, 18944, 152064, False, True),
    "qwen2.5-14b": (48, 5120, 40, 8, 128, 13824, 152064, False, True),
    "qwen2.5-32b": (64, 5120, 40, 8, 128, 27648, 152064, False, True),
    "qwen2-72b": (80, 8192, 64, 8, 128, 29568, 152064, False, True),
    "qwen3-0.6b": (28, 1024, 16, 8, 128, 3072, 151936, True, True),
    "qwen3-1.7b": (28, 2048, 16, 8, 128, 6144, 151936, True, True),
    "qwen3-4b": (36, 2560, 32, 8, 128, 9728, 151936, True, True),
    "qwen3-8b": (36, 4096, 32, 8, 128, 12288, 151936, False, True),
    "qwen3-14b": (40, 5120, 40, 8, 128, 17408, 151936, False, True),
    "qwen3-32b": (64, 5120, 64, 8, 128, 25600, 151936, False, True),
}
# As above; then experts, active, expert width, shared width, expert layers.
MIXTURES: dict[str, tuple[tuple[int, ...], tuple[int, ...]]] = {
    "qwen3-30b-a3b": ((48, 2048, 32, 4, 128, 0, 151936), (128, 8, 768, 0, 48)),
    "qwen3-235b-a22b": ((94, 4096, 64, 4, 128, 0, 151936), (128, 8, 1536, 0, 94)),
    "minimax-m2.5": ((62, 3072, 48, 8, 128, 0, 200064), (256, 8, 1536, 0, 62)),
    "gpt-oss-120b": ((36, 2880, 64, 8, 64, 0, 201088), (128, 4, 2880, 0, 36)),
    "deepseek-v3": ((61, 7168, 128, 128, 128, 18432, 129280), (256, 8, 2048, 2048, 58)),
    "kimi-k2.5": ((61, 7168, 64, 64, 128, 18432, 163840), (384, 8, 2048, 2048, 60)),
}
MLA = LatentAttention(
    q_lora_rank=1536,
    kv_lora_rank=512,
    qk_nope_head_dim=128,
    qk_rope_head_dim=64,
    v_head_dim=128,
)
SAME = {
    "llama3.1-8b": "llama3-8b",
    "llama3.1-70b": "llama3-70b",
    "llama3.3-70b": "llama3-70b",
    "deepseek-r1": "deepseek-v3",
    "qwen1-7b-chat": "qwen1-7b",
    "qwen1-14b-chat": "qwen1-14b",
    "qwen1-1.8b-chat": "qwen1-1.8b",
    "qwen1-72b-chat": "qwen1-72b",
    "qwen2.5-0.5b": "qwen2-0.5b",
    "qwen2.5-1.5b": "qwen2-1.5b",
    "qwen2.5-7b": "qwen2-7b",
    "qwen2.5-72b": "qwen2-72b",
}
ARCHITECTURES = {"deepseek": "Deepseek", "kimi": "Kimi", "qwen3": "Qwen3", "minimax": "MiniMax"}


@cache
def find_model(name: str, identifier: str) -> Model | None:
    """The model of a measurement: as it is called there, or bundled under its hub `identifier` (or
    `name`); None where its dimensions are not known."""
    if name == "stable-diffusion-xl":
        return bundled(SDXL)
    hub = next((bundled(n) for n in (identifier, name) if n in bundled_names()), None)
    return transformer(name) or hub


def transformer(name: str) -> Transformer | None:
    """A model of the tables above."""
    base = SAME.get(name, name)
    if base in DENSE:
        *dims, tied, gated = DENSE[base]
        return _build(name, dims, tied=tied, gated=gated, experts=None)
    if base in MIXTURES:
        dims_of, (count, active, width, shared, layers) = MIXTURES[base]
        experts = Experts(
            count=count,
            active=active,
            intermediate_size=width,
            shared=1 if shared else 0,
            shared_intermediate_size=shared,
            layers=layers,
        )
        return _build(name, list(dims_of), tied=False, gated=True, experts=experts)
    return None


def _build(
    name: str, dims: list[int], *, tied: bool, gated: bool, experts: Experts | None
) -> Transformer:
    layers, hidden, heads, kv_heads, head_dim, width, vocabulary = dims
    latent = MLA if name.startswith(("deepseek", "kimi")) else None
    attention = 2 * hidden * head_dim * (heads + kv_heads)
    if latent:
        per_head = 1536 * 192 + 512 * 256 + 128 * hidden
        attention = hidden * (1536 + 512 + 64) + heads * per_head
    mlp = 3 if gated else 2
    moe_layers = experts.layers if experts else 0
    linear = layers * attention + mlp * hidden * width * (layers - moe_layers)
    active = linear
    if experts:
        one = 3 * hidden * experts.intermediate_size
        shared = moe_layers * 3 * hidden * experts.shared_intermediate_size
        linear += moe_layers * experts.count * one + shared
        active += moe_layers * experts.active * one + shared
    embeddings = vocabulary * hidden * (1 if tied else 2)
    architecture = next((a for k, a in ARCHITECTURES.items() if name.startswith(k)), "Llama")
    window = name.startswith("gpt-oss")
    return Transformer(
        identifier=name,
        revision=None,
        architecture=f"{architecture}ForCausalLM",
        layers=layers,
        hidden_size=hidden,
        attention_heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        intermediate_size=width,
        vocabulary=vocabulary,
        tied_embeddings=tied,
        gated_mlp=gated,
        context_length=131072,
        latent=latent,
        experts=experts,
        sliding_window=128 if window else None,
        sliding_layers=layers // 2 if window else 0,
        parameters=linear + embeddings,
        active_parameters=active + embeddings,
        linear_parameters=linear,
        active_linear_parameters=active,
        source="published config.json",
    )
