"""Static batches and first tokens of TensorRT-LLM of 2023 and 2024: what its kernels did not do."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.accuracy.test_accuracy_offline import FIRST, STATIC, reason, reckoned

LONG = STATIC | {"tp": "1", "n_gpus": "1", "batch": "56", "input_len": "2048", "output_len": "2048"}


@pytest.mark.parametrize(
    ("model", "least", "most"), [("mistral-7b", 1.0, 1.1), ("llama2-7b", 1.15, 1.4)]
)
def test_faster_memory_helps_attention_on_tensor_cores_alone(
    tmp_path: Path, model: str, least: float, most: float
) -> None:
    """Four queries a KV head ran on the cores without tensors, which H200 and H100 share."""
    rows = [LONG | {"model": model, "gpu": g} for g in ("H100-SXM-80GB", "H200-SXM-141GB")]
    slow, fast = reckoned(tmp_path, *rows)
    assert least < fast.value / slow.value < most


def test_eight_queries_a_head_are_computed_together_from_release_0_8(tmp_path: Path) -> None:
    """NVIDIA's XQA-kernel.md: up to 2.4 times the throughput of Llama 70B on an H200."""
    base = LONG | {"model": "llama2-70b", "input_len": "128", "batch": "256"}
    old, unnamed, new = reckoned(
        tmp_path, *(base | {"engine": f"trtllm {release}"} for release in ("0.7.1", "?", "0.8.0"))
    )
    assert 1.5 < new.value / old.value < 3
    assert unnamed.value == old.value


def test_one_query_a_head_never_shares_its_cache(tmp_path: Path) -> None:
    old, new = reckoned(
        tmp_path,
        LONG | {"model": "llama2-7b", "engine": "trtllm 0.7.1"},
        LONG | {"model": "llama2-7b"},
    )
    assert old.value == new.value


def test_mixtures_in_fp8_computed_every_expert_in_0_9(tmp_path: Path) -> None:
    """A token is for two of Mixtral's eight experts."""
    base = FIRST | {"model": "mixtral-8x7b", "input_len": "2048"}
    every, routed = reckoned(tmp_path, base, base | {"engine": "trtllm 0.10.0"})
    assert 1.5 < every.value / routed.value < 4
    half = base | {"precision": "fp16", "gpu": "A100-SXM-80GB"}
    grouped, same = reckoned(tmp_path, half, half | {"engine": "trtllm 0.10.0"})
    assert grouped.value == same.value


def test_what_no_source_says_is_not_guessed(tmp_path: Path) -> None:
    assert "capability 10.0" in reason(
        tmp_path, LONG | {"model": "mistral-7b", "gpu": "B200-SXM-180GB"}
    )
    assert "mixtures alone" in reason(tmp_path, FIRST | {"model": "deepseek-r1"})
