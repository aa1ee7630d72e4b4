"""What an override replaced is what the plan would be without it, of every field and kind."""

from __future__ import annotations

from functools import cache

import pytest

from gpuplan.plan.model import Override, Workload
from tests.sizing.test_interruptions import figures
from tests.sizing.test_kinds_told import KINDS, POOLS
from tests.support.sizing_cases import CHAT_8B, CHAT_70B, FULL_8B, NOTEBOOKS, site, sized

WHERE = ("a100-sxm-80gb", "h100-sxm-80gb", "h200-sxm-141gb")
LEARNS = KINDS["learning"].rpartition("    overrides")[0]
CUT = NOTEBOOKS.replace("9 GiB", "19 GiB")
BARE = FULL_8B.replace("slo: {finish_within: 2 d}", "slo: {finish_within: 9 h}")
# Workload, field, what is written, and the quantity that tells it.
CASES = {
    "size of a service": (CHAT_70B, "tensor_parallel_size", "8", "tensor_parallel_size"),
    "replicas of a service": (CHAT_70B, "replicas", "9", "replicas"),
    "places of a service": (CHAT_70B, "max_num_seqs", "200", "max_num_seqs"),
    "step of a service": (CHAT_70B, "max_num_batched_tokens", "9000", "max_num_batched_tokens"),
    "length of a service": (CHAT_70B, "max_model_len", "20000", "max_model_len"),
    "part of memory": (CHAT_70B, "gpu_memory_utilization", "0.85", "gpu_memory_utilization"),
    "cores": (CHAT_8B, "cpu_cores_per_gpu", "3", "cpu_cores_per_gpu"),
    "memory": (CHAT_8B, "host_memory_per_gpu", "64 GiB", "host_memory_per_gpu"),
    "shared memory": (CHAT_8B, "shared_memory", "1 GiB", "shared_memory_bytes"),
    "scratch": (CHAT_8B, "scratch", "9 GiB", "scratch_bytes"),
    "models": (CHAT_8B, "model_storage", "99 GiB", "model_storage_bytes"),
    "size of pools": (POOLS, "tensor_parallel_size", "8", "tensor_parallel_size"),
    "replicas of images": (KINDS["images"], "replicas", "9", "replicas"),
    "images at once": (KINDS["batch of images"], "max_num_seqs", "2", "max_num_seqs"),
    "replicas of a reader": (KINDS["texts"], "replicas", "9", "replicas"),
    "step of a reader": (
        KINDS["texts"],
        "max_num_batched_tokens",
        "9000",
        "max_num_batched_tokens",
    ),
    "places of audio": (KINDS["audio"], "max_num_seqs", "9", "max_num_seqs"),
    "pictures at once": (KINDS["pictures"], "max_num_seqs", "16", "max_num_seqs"),
    "GPUs of a run": (BARE, "gpu_count", "16", "gpu_count"),
    "micro-batch of a run": (BARE, "micro_batch", "1", "micro_batch"),
    "checkpoints": (BARE, "checkpoint_storage", "900 GiB", "checkpoint_storage_bytes"),
    "GPUs of learning": (
        KINDS["learning"].rpartition("    overrides")[0],
        "gpu_count",
        "16",
        "gpu_count",
    ),
    "micro-batch of learning": (LEARNS, "micro_batch", "2", "micro_batch"),
    "homes": (CUT, "home_storage", "9 GiB", "home_storage_bytes"),
}
TEXTS = {
    "GPU of a service": (CHAT_70B, "gpu", "h200-sxm-141gb"),
    "cache of a service": (CHAT_70B, "kv_cache_dtype", "fp8"),
    "GPU of a run": (BARE, "gpu", "h200-sxm-141gb"),
    "GPU of notebooks": (CUT, "gpu", "h200-sxm-141gb"),
    "part of notebooks": (CUT, "partition", "3g.40gb"),
}


def written(text: str, field: str, value: str) -> str:
    return f"{text}    overrides: {{{field}: {value}}}\n"


@cache
def plain(text: str) -> tuple[Workload, dict[str, float]]:
    answer = sized(text, site(*WHERE))
    return answer.workload, figures(answer)


@pytest.mark.parametrize("case", CASES)
def test_a_number_that_was_replaced_is_the_plans_without_it(case: str) -> None:
    text, field, value, quantity = CASES[case]
    answer = sized(written(text, field, value), site(*WHERE))
    (override,) = answer.workload.overrides
    assert override.quantity == f"work.{quantity}"
    assert override.origin.path[-2:] == ("overrides", field)
    _, known = plain(text)
    same = answer.workload.gpu == plain(text)[0].gpu
    narrowing = field in ("tensor_parallel_size", "replicas", "gpu_count", "micro_batch")
    if narrowing or same:
        assert override.derived == known[quantity]
    assert override.value != override.derived
    assert str(override.value).split(".")[0] in value or "GiB" in value or "0.85" in value


@pytest.mark.parametrize("case", TEXTS)
def test_a_name_that_was_replaced_is_the_plans_without_it(case: str) -> None:
    text, field, value = TEXTS[case]
    answer = sized(written(text, field, value), site(*WHERE))
    (override,) = answer.workload.overrides
    assert (override.quantity, override.value, override.unit) == (f"work.{field}", value, "")
    work, _ = plain(text)
    expected = {"gpu": work.gpu, "partition": str(work.partition), "kv_cache_dtype": "auto"}
    assert override.derived == expected[field]


def test_misses_that_are_accepted_replaced_none() -> None:
    """Two replicas more than are needed replace these; accepted misses none."""
    may = (
        CHAT_70B.replace("1 s", "1 ms")
        + "    overrides: {accepted_misses: [time_to_first_token]}\n"
    )
    (override,) = sized(may, site(*WHERE)).workload.overrides
    assert isinstance(override, Override)
    assert (override.quantity, override.derived, override.value) == (
        "work.accepted_misses",
        "none",
        "time_to_first_token",
    )
    assert sized(CHAT_70B, site(*WHERE)).workload.overrides == ()
