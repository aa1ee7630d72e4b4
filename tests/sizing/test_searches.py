"""Searches against trying everything, and the gates that they say first."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pytest

from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.candidates.choose import Candidate, best
from gpuplan.sizing.decide.messages import describe
from gpuplan.sizing.decide.tried import tried
from gpuplan.sizing.kinds.training.judge import SizedRun
from gpuplan.sizing.kinds.training.search import _micro_batch
from tests.support.sizing_cases import (
    CHAT_8B,
    CHAT_70B,
    DEEPSEEK,
    FULL_8B,
    LORA_70B,
    site,
    wanted,
)

UNLIMITED = FULL_8B.replace("    slo: {finish_within: 2 d}\n", "")


def candidates(text: str, gpu: str, **changes: object) -> list[Candidate]:
    ((_, group),) = tried(wanted(text), site(gpu, **changes))
    return list(group)


@pytest.mark.parametrize(
    ("text", "gpu"), [(UNLIMITED, "h100-sxm-80gb"), (LORA_70B, "h200-sxm-141gb")]
)
def test_a_run_takes_the_gpus_that_cost_least(text: str, gpu: str) -> None:
    """Of all numbers that divide the batch, inside a node or over whole ones; of equals the
    fewest."""
    counts = [n for n in range(1, 129) if 128 % n == 0 and (n <= 8 or n % 8 == 0)]
    counts = counts if text is UNLIMITED else [n for n in counts if 64 % n == 0]
    cost = {}
    for count in counts:
        (only,) = candidates(text + f"    overrides: {{gpu_count: {count}}}\n", gpu)
        if only.feasible:
            cost[count] = only.rank()[1]
    winner = best(candidates(text, gpu))
    assert winner is not None
    assert winner.gpus == min(n for n in cost if cost[n] == min(cost.values()))
    assert winner.rank()[1] == pytest.approx(cost[winner.gpus])


def test_a_run_has_a_part_of_a_node_or_whole_ones_and_its_ranks_divide_the_batch() -> None:
    """96 sequences on three nodes of 8: 12 GPUs would be one and a half, 5 divide them not."""
    odd = UNLIMITED.replace("global_batch: 128", "global_batch: 96")
    found = {c.gpus: c for c in candidates(odd, "h200-sxm-141gb", node_count=3)}
    assert sorted(found) == [1, 2, 3, 4, 6, 8, 16, 24]
    for gpus, made in found.items():
        if isinstance(made.detail, SizedRun):
            assert 96 % (gpus * made.detail.micro_batch) == 0
            assert made.nodes == -(-gpus // 8)
    (five,) = candidates(odd + "    overrides: {gpu_count: 5}\n", "h200-sxm-141gb")
    assert describe(five.shortfalls[0]) == "5 GPUs do not divide 96 sequences"
    apart = odd + "    overrides: {gpu_count: 8, micro_batch: 5}\n"
    (micro,) = candidates(apart, "h200-sxm-141gb")
    assert describe(micro.shortfalls[0]) == "40 sequences at a time do not divide 96 sequences"


@pytest.mark.parametrize(
    ("text", "gpu"), [(UNLIMITED, "h100-sxm-80gb"), (LORA_70B, "h200-sxm-141gb")]
)
def test_no_other_micro_batch_sharding_or_recomputation_that_fits_is_faster(
    text: str, gpu: str
) -> None:
    winner = best(candidates(text, gpu))
    assert winner is not None
    assert isinstance(winner.detail, SizedRun)
    seconds = winner.detail.values["step_seconds"]
    adapter = "lora" in text
    shardings = ("none", "zero3") if adapter else ("zero1", "zero2", "zero3")
    for micro, recompute, sharding in product((1, 2, 4, 8, 16), ("none", "full"), shardings):
        fixed = text.replace("lora: 16", f"lora: 16, recompute: {recompute}, sharding: {sharding}")
        fixed = fixed.replace(
            "tokens: 1e9", f"tokens: 1e9, recompute: {recompute}, sharding: {sharding}"
        )
        (one,) = candidates(
            fixed + f"    overrides: {{gpu_count: {winner.gpus}, micro_batch: {micro}}}\n", gpu
        )
        if one.feasible:
            assert isinstance(one.detail, SizedRun)
            assert one.detail.micro_batch == micro
            assert one.detail.values["step_seconds"] >= seconds * (1 - 1e-9)


class Fitting:
    """A run of which micro-batches up to `most` fit, and what they were asked."""

    def __init__(self, most: int) -> None:
        self.most = most

    def needs(self, micro: int) -> dict[str, float]:
        return {"used_bytes": float(micro), "usable_bytes": float(self.most)}


@pytest.mark.parametrize(
    ("most", "gpus", "micro"),
    [
        (0, 8, (1, False)),
        (1, 8, (1, False)),
        (4, 8, (4, False)),
        (15, 8, (8, False)),
        (16, 8, (16, True)),
        (999, 1, (64, True)),
        (999, 128, (1, True)),
    ],
)
def test_the_largest_micro_batch_that_fits_reaches_the_batch(
    most: int, gpus: int, micro: tuple[int, bool]
) -> None:
    """Of 128 sequences; up to 64 at a time."""
    demand = wanted(FULL_8B)
    assert isinstance(demand, TrainingDemand)
    assert _micro_batch(demand, Fitting(most), gpus) == micro  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("text", "gpu", "room", "needed"),
    [
        (DEEPSEEK, "h100-sxm-80gb", 8, 16),  # 88 GB on each of 8
        (CHAT_70B, "l4", 2, 4),  # 38 GB
        (CHAT_70B, "l4", 1, 4),  # 75 GB of 21.6
        (CHAT_70B.replace("    precision: fp8\n", ""), "l4", 1, 8),  # 144 GB
    ],
)
def test_nodes_that_are_too_small_for_a_model_say_which_would_do(
    text: str, gpu: str, room: int, needed: int
) -> None:
    """The next power of two, and twice as many at least."""
    ((_, made),) = tried(wanted(text), replace(site(gpu, gpus_per_node=room), fabric=None))
    largest = max(made, key=lambda c: c.gpus)
    assert largest.gpus == room
    assert [s.resource for s in largest.shortfalls] == ["gpu_memory", "gpus_per_node"]
    assert (largest.shortfalls[1].requested, largest.shortfalls[1].capacity) == (needed, room)
    assert all(len(c.shortfalls) == 1 for c in made if c.gpus < room)


@pytest.mark.parametrize(
    ("text", "room", "sizes"),
    [
        (CHAT_70B, 8, [1, 2, 4, 8]),
        (CHAT_70B, 6, [1, 2, 4]),
        (CHAT_70B, 16, [1, 2, 4, 8, 16]),  # 8 KV heads are repeated
        (CHAT_8B, 32, [1, 2, 4, 8, 16, 32]),
        (CHAT_8B.replace("Llama-3.1-8B-Instruct", "Llama-3.2-3B-Instruct"), 16, [1, 2, 4, 8]),
    ],
)
def test_tensor_parallelism_splits_heads_evenly_inside_a_node(
    text: str, room: int, sizes: list[int]
) -> None:
    """24 heads of a model of 3 B do not split over 16 GPUs, 32 and 64 do."""
    assert [c.gpus for c in candidates(text, "h100-sxm-80gb", gpus_per_node=room)] == sizes


@pytest.mark.parametrize(
    ("text", "forced", "resource"),
    [
        (CHAT_70B, 16, "gpus_per_node"),
        (CHAT_70B, 3, "64 attention heads"),
        (
            CHAT_8B.replace("Llama-3.1-8B-Instruct", "Llama-3.2-3B-Instruct"),
            6,
            "8 KV heads",
        ),
    ],
)
def test_a_size_that_was_asked_for_and_cannot_be_says_why(
    text: str, forced: int, resource: str
) -> None:
    text += f"    overrides: {{tensor_parallel_size: {forced}}}\n"
    (only,) = candidates(text, "h100-sxm-80gb")
    assert only.shortfalls[0].resource == resource
