"""What is proposed where nothing fits: in which order it is tried, and how it is said."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.plan.model import Flip
from gpuplan.sizing.ask.demand import Demand, TrainingDemand
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.decide.remedies import blamed, change
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.offers import Site
from tests.support.sizing_cases import CHAT_8B, FULL_8B, offer, site, wanted

HERE = site("l40s")
FOUND = Candidate(device=whole(offer("l40s")), gpus=2, replicas=3, isolation="none")
FITS = "6 x l40s"


def test_one_override_is_blamed_before_all_together() -> None:
    asked = wanted(CHAT_8B + "    overrides: {gpu: l4, tensor_parallel_size: 2, replicas: 9}\n")

    def needs_free(*names: str):
        def fits(demand: Demand, where: Site) -> Candidate | None:
            free = all(getattr(demand.overrides, name) is None for name in names)
            return FOUND if free else None

        return fits

    fields, words = blamed(asked, HERE, needs_free("replicas"))
    assert fields == ["replicas"]
    assert words == f"without it: {FITS}, with replicas 3"
    fields, words = blamed(asked, HERE, needs_free("gpu", "tensor_parallel_size"))
    assert sorted(fields) == ["gpu", "replicas", "tensor_parallel_size"]
    assert words.startswith(f"without it: {FITS}, with ")
    for said in ("gpu l40s", "tensor_parallel_size 2", "replicas 3"):
        assert said in words
    assert blamed(asked, HERE, lambda demand, where: None) == ([], "")
    alone = wanted(CHAT_8B + "    overrides: {replicas: 9}\n")
    tried: list[Demand] = []
    assert blamed(alone, HERE, lambda demand, where: tried.append(demand)) == ([], "")  # type: ignore[func-returns-value]
    assert len(tried) == 1


def tried_of(asked: Demand, where: Site) -> list[tuple[Demand, Site]]:
    """All that is tried for a workload that nothing helps."""
    seen: list[tuple[Demand, Site]] = []
    change(asked, where, [], lambda demand, there: seen.append((demand, there)))  # type: ignore[func-returns-value]
    return seen


def run(text: str = FULL_8B, **changes: object) -> TrainingDemand:
    asked = wanted(text)
    assert isinstance(asked, TrainingDemand)
    return replace(asked, **changes)  # type: ignore[arg-type]


def test_nothing_is_proposed_of_a_run_that_is_as_it_should_be() -> None:
    assert tried_of(run(), HERE) == []


@pytest.mark.parametrize(
    ("changes", "field", "tried", "words"),
    [
        ({"optimizer": "adamw-bf16"}, "optimizer", "adamw", "`optimizer: adamw` fits"),
        ({"sharding": "zero1"}, "sharding", None, "than sharding zero1: without it, the run fits"),
        ({"recompute": "none"}, "recompute", None, "for recompute none: without it, the run fits"),
    ],
)
def test_what_a_run_chose_for_itself_is_tried_without(
    changes: dict[str, object], field: str, tried: object, words: str
) -> None:
    asked = run(**changes)
    ((demand, _),) = tried_of(asked, HERE)
    assert getattr(demand, field) == tried
    assert words in change(asked, HERE, [], lambda demand, where: FOUND)


def test_a_fabric_is_proposed_where_none_is_named() -> None:
    bare = replace(HERE, fabric=None)
    ((_, where),) = tried_of(run(), bare)
    assert where.fabric is not None
    assert where.fabric.bytes_per_s_per_gpu == 50e9
    said = change(run(), bare, [], lambda demand, where: FOUND)
    assert said.startswith("GPUs of several nodes are not used without `platform.fabric`: ")
    assert said.endswith(f"400 Gb/s}}` fits {FITS}")


def test_a_batch_that_splits_over_few_gpus_is_tried_at_the_powers_of_two_beside_it() -> None:
    odd = run(FULL_8B.replace("global_batch: 128", "global_batch: 96"))
    batches = [
        d.global_batch.value for d, _ in tried_of(odd, HERE) if isinstance(d, TrainingDemand)
    ]
    assert batches == [128, 64]
    said = change(odd, HERE, [], lambda demand, where: FOUND)
    assert said.startswith("96 sequences split evenly over few numbers of GPUs: ")
    assert said.endswith(f"`global_batch: 128` fits {FITS}")


def test_other_precisions_are_tried_but_not_its_own() -> None:
    asked = wanted(CHAT_8B)
    precisions = [d.precision for d, _ in tried_of(asked, HERE)]  # type: ignore[attr-defined]
    assert asked.precision == "bf16"  # type: ignore[attr-defined]
    assert precisions == ["fp8"]  # nothing makes int4 of weights in bf16
    said = change(asked, HERE, [], lambda demand, where: FOUND)
    assert said == f"`precision: fp8` fits {FITS}"


def refused(gpu: str, quantity: str, now: float, needed: float, unit: str) -> Candidate:
    flip = Flip(quantity=quantity, now=now, needed=needed, unit=unit)
    return replace(FOUND, device=whole(offer(gpu)), flip=flip)


def nearest(*candidates: Candidate) -> str:
    return change(run(), HERE, candidates, lambda demand, where: None)


def test_what_comes_nearest_is_said_where_nothing_helps() -> None:
    assert nearest() == "allow other GPU types in `platform.gpus`"
    near = refused("l40s", "node.count", 4, 6, "nodes")
    far = refused("a10", "node.count", 4, 40, "nodes")
    below = refused("l4", "node.count", 40, 4, "nodes")
    assert nearest(far, near, below).startswith("l40s would do with node.count 6")
    assert nearest(far, below).startswith("a10 would do")  # as far, and first by name
    gigabytes = refused("l4", "gpu_memory_bytes", 24e9, 25e9, "B")
    assert nearest(gigabytes, far).startswith("a10 would do")
    assert nearest(gigabytes).startswith("it takes a GPU with ")
    nothing = refused("l4", "node.count", 0, 5, "nodes")
    assert nearest(nothing) == "allow other GPU types in `platform.gpus`"
