"""What engines take by default, as their sources and documentation say it."""

from __future__ import annotations

import pytest

from gpuplan.sizing.evidence.formula import evaluate
from gpuplan.sizing.memory.serving import engine_memory, step_tokens
from gpuplan.units import GIB

# Engine, GPU, GiB of its memory, tokens of a step of a server and at most.
STEPS = [
    # vllm/engine/arg_utils.py: from 70 GiB on, but for an A100
    ("vllm", "h100-sxm-80gb", 79.6, 8192, 16384),
    ("vllm", "l40s", 70.0, 8192, 16384),
    ("vllm", "l40s", 69.9, 2048, 8192),
    ("vllm", "a100-sxm-80gb", 80.0, 2048, 8192),
    # sglang/srt/server_args.py: steps at 35, 60 and 160 GiB, whatever the GPU
    ("sglang", "l4", 22.0, 2048, 16384),
    ("sglang", "l40s", 34.9, 2048, 16384),
    ("sglang", "l40s", 35.0, 4096, 16384),
    ("sglang", "l40s", 59.9, 4096, 16384),
    ("sglang", "h100-sxm-80gb", 60.0, 8192, 16384),
    ("sglang", "a100-sxm-80gb", 80.0, 8192, 16384),
    ("sglang", "h200-sxm-141gb", 159.9, 8192, 16384),
    ("sglang", "b200-sxm-180gb", 160.0, 16384, 16384),
    # llmapi/llm_args.py and --max-batch-tokens: one number for all
    ("tensorrt-llm", "l4", 22.0, 8192, 8192),
    ("tensorrt-llm", "b200-sxm-180gb", 180.0, 8192, 8192),
    ("tei", "l4", 22.0, 16384, 16384),
    # one that nobody knows is taken for vLLM
    ("another", "l4", 22.0, 2048, 8192),
    ("another", "h100-sxm-80gb", 80.0, 8192, 16384),
]


@pytest.mark.parametrize(("engine", "gpu", "gib", "served", "most"), STEPS)
def test_the_tokens_of_a_step_are_the_engines_own_default(
    engine: str, gpu: str, gib: float, served: int, most: int
) -> None:
    told = step_tokens(engine, gpu, gib * GIB)
    assert told["default_step_tokens"].value == served
    assert told["largest_step_tokens"].value == most
    known = engine if engine != "another" else "vllm"
    assert told["default_step_tokens"].source.startswith(
        f"constant: default of a server: {known} on"
    )


@pytest.mark.parametrize(
    ("engine", "tokens"),
    [("vllm", 16), ("sglang", 1), ("tensorrt-llm", 32), ("tei", 1), ("another", 16)],
)
def test_the_cache_is_given_out_in_the_engines_own_blocks(engine: str, tokens: int) -> None:
    told = engine_memory(engine)
    assert told["block_tokens"].value == tokens
    known = engine if engine != "another" else "vllm"
    assert told["context_bytes"].source.endswith(f", {known}")


@pytest.mark.parametrize(
    ("text", "value"),
    [("2 ** 10", 1024), ("3 * 5000", 15000), ("5000 - 1", 4999), ("x ** 3", 8), ("2 ** x", 4)],
)
def test_powers_that_somebody_writes_are_worked_out(text: str, value: float) -> None:
    assert evaluate(text, {"x": 2.0}) == value


@pytest.mark.parametrize("text", ["2 ** 2000", "2 ** (3 ** 4)", "(2 ** 3) ** 4", "2 ** -2000"])
def test_powers_that_nobody_writes_are_no_formula(text: str) -> None:
    with pytest.raises(ValueError, match="not arithmetic"):
        evaluate(text, {})
