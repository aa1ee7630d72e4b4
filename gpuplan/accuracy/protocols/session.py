"""gptSessionBenchmark of TensorRT-LLM: a batch of one length that starts and ends together, and the
first token of one request, on engines of 2023 and 2024.

Decode attention has two kernels. XQA computes all queries of a KV head together, on tensor cores,
for 1 and for 8 queries a KV head (`shouldUse` of decoderXQARunner.h, 2024-04-30). Everything else
takes masked multi-head attention: a block for each query head reads and converts the cache of its
KV head (decoderMaskedMultiheadAttentionTemplate.h), so that its time is that of the cores without
tensors, which faster memory does not shorten.

Mixtures in fp8 had no grouped kernel (none for Ada still in moe_sm90_traits.h of 2024-04-30; none
in 0.9.0: TensorRT-LLM issue 1229). Without its plugin every expert computes every token, and those
that were not chosen count nothing (`forward` of tensorrt_llm/layers/moe.py).
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from gpuplan.accuracy.data.gpus import FLOP_A_CLOCK
from gpuplan.accuracy.protocols.ranks import Numbers, Runner, Same, decode, prefill
from gpuplan.accuracy.protocols.throughput import Pace, paced
from gpuplan.models.model import Transformer
from gpuplan.sizing.evidence.formula import Formula
from gpuplan.sizing.evidence.sheet import Sheet

STEP_TOKENS = 16384.0
THIRDS = (0.17, 0.5, 0.83)  # of the output: where a static batch is sampled
TOGETHER = (1, 8)  # queries of a KV head that XQA computes on tensor cores
_OWN = ("prefill_", "grouped_")

STATIC = Sheet(
    (
        (
            "rate",
            Formula(
                "sequences * output / ((prefill_factor * sequences * prompt_seconds + "
                "(output - 1) * decode_seconds) * tensor_parallel_size)",
                "1/s",
                "the whole batch is prefilled, then decoded to the end",
            ),
        ),
        (
            "best_rate",
            Formula(
                "sequences * output / ((sequences * prompt_roofline + (output - 1) "
                "* decode_roofline) * tensor_parallel_size)",
                "1/s",
                "reads at peak bandwidth, products at peak",
            ),
        ),
    )
)
UNSHARED = Sheet(
    (
        ("clocks", Formula("bf16_peak / flop_a_clock", "1/s", "of all SMs together")),
        (
            "converted_seconds",
            Formula(
                "group * attention_bytes / (kv_bytes_each * grouped_elements * clocks)",
                "s",
                "every query head takes the elements of its KV head, some a clock and SM",
            ),
        ),
        (
            "attention_factor",
            Formula(
                "max(attention_factor, converted_seconds / attention_seconds)",
                "1",
                "or reading the cache, where memory is slower",
            ),
        ),
    )
)


def static(
    runner: Runner,
    constants: Numbers,
    *,
    prompt: float,
    output: float,
    batch: float,
    together: bool,
) -> Pace:
    """A batch that starts and ends together. `together`: the release has XQA."""
    prompts = max(1.0, min(batch, STEP_TOKENS // prompt))
    filled = prefill(runner, prompt_kernels(runner, constants), prompts, prompt)
    contexts = [prompt + part * output for part in THIRDS]
    steps = [_decoded(runner, constants, batch, context, together) for context in contexts]
    values = STATIC(
        {
            "sequences": batch,
            "output": output,
            "prefill_factor": constants["prefill_factor"],
            "tensor_parallel_size": float(runner.division.tensor_parallel_size),
            "prompt_seconds": filled["seconds"] / prompts,
            "prompt_roofline": filled["roofline_seconds"] / prompts,
            "decode_seconds": sum(step["seconds"] for step in steps) / len(steps),
            "decode_roofline": sum(step["roofline_seconds"] for step in steps) / len(steps),
        }
    )
    return paced(runner, values | {"token_seconds": values["decode_seconds"]}, batch)


def first_token(runner: Runner, constants: Numbers, prompt: float) -> tuple[float, float]:
    """Seconds of a prompt alone, and at least how many."""
    filled = prefill(runner, prompt_kernels(runner, constants), 1.0, prompt)
    return filled["seconds"], filled["roofline_seconds"]


def prompt_kernels(runner: Runner, constants: Numbers) -> dict[str, float]:
    factors = _kernels(runner, constants)
    factors["attention_factor"] *= constants["prefill_attention"]
    return factors


def _decoded(
    runner: Runner, constants: Numbers, batch: float, context: float, together: bool
) -> dict[str, float]:
    """A decode step. Raises `ValueError` where attention runs on cores whose clock is not known."""
    factors, model = _kernels(runner, constants), runner.model
    step = decode(runner, factors, batch, context)
    group = model.attention_heads // model.kv_heads
    if group == 1 or (together and group in TOGETHER):
        return step
    numbers = {n: runner.numbers[n] for n in ("bf16_peak", "kv_bytes_each")}
    numbers |= {n: step[n] for n in ("attention_bytes", "attention_seconds")}
    numbers |= {"group": float(group), "flop_a_clock": _flop_a_clock(runner.capability)}
    numbers |= {n: constants[n] for n in ("grouped_elements", "attention_factor")}
    factors["attention_factor"] = UNSHARED(numbers)["attention_factor"]
    return decode(runner, factors, batch, context)


def _flop_a_clock(capability: str | None) -> float:
    known = FLOP_A_CLOCK.get(capability or "")
    if known is None:
        raise ValueError(f"no source says what an SM of capability {capability} does in a clock")
    return known


def _kernels(runner: Runner, constants: Numbers) -> dict[str, float]:
    factors = {n: v for n, v in constants.items() if not n.startswith(_OWN)}
    factors["eager_seconds"] = 0.0  # a built engine runs prompts without Python
    if runner.model.parallel_blocks:
        factors["link_factor"] /= 2  # the sum of attention and MLP is reduced once
    return factors


def every_expert(model: Transformer) -> Transformer:
    """The mixture as the dense model that computes all its experts. Raises `ValueError` where some
    layers are no mixtures, or some experts shared."""
    return _every_expert(Same(model))


@cache
def _every_expert(key: Same[Transformer]) -> Transformer:
    model, experts = key.value, key.value.experts
    if experts is None or model.dense_layers or experts.shared:
        raise ValueError(f"{model.identifier} is no network of mixtures alone")
    return replace(model, experts=None, intermediate_size=experts.count * experts.intermediate_size)
