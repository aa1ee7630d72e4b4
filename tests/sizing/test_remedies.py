"""What is proposed where nothing fits: in which order it is tried, and how it is said."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from gpuplan.diagnostics import Change
from gpuplan.plan.model import Flip, Shortfall
from gpuplan.sizing.ask.demand import Demand, TrainingDemand
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.decide.attempts import attempts, eased, written
from gpuplan.sizing.decide.remedies import Searched, advice, blamed
from gpuplan.sizing.decide.searched import Search
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.offers import OtherSite, Site
from tests.support.sizing_cases import CHAT_8B, FULL_8B, offer, site, wanted

HERE = site("l40s")
FOUND = Candidate(device=whole(offer("l40s")), gpus=2, replicas=3, isolation="none")
FITS = "6 × l40s at $17.60/h"


def answering(fits: Callable[[Demand, Site], Candidate | None]) -> Searched:
    """A search that finds what `fits` says."""

    def searched(demand: Demand, where: Site) -> Search:
        candidate = fits(demand, where)
        groups = () if candidate is None else ((candidate.device.offer, (candidate,)),)
        return Search(demand, groups)

    return searched


FITTING = answering(lambda demand, where: FOUND)
NOTHING = answering(lambda demand, where: None)


def advised(asked: Demand, where: Site, searched: Searched = NOTHING) -> str:
    return advice(Search(asked, ()), where, (), searched).words


def test_one_override_is_blamed_before_all_together() -> None:
    asked = wanted(CHAT_8B + "    overrides: {gpu: l40s, tensor_parallel_size: 2, replicas: 9}\n")

    def needs_free(*names: str):
        def fits(demand: Demand, where: Site) -> Candidate | None:
            free = all(getattr(demand.overrides, name) is None for name in names)
            return FOUND if free else None

        return fits

    fields, said = blamed(asked, HERE, answering(needs_free("replicas")))
    assert fields == ["replicas"]
    assert said.words == "without it: 6 × l40s at $17.60/h, with replicas 3"
    assert said.remedies == ((Change(asked.origin.child("overrides", "replicas"), None),),)
    fields, said = blamed(asked, HERE, answering(needs_free("gpu", "tensor_parallel_size")))
    assert sorted(fields) == ["gpu", "replicas", "tensor_parallel_size"]
    assert said.words.startswith("without them: 6 × l40s at $17.60/h, with ")
    for value in ("gpu l40s", "tensor_parallel_size 2", "replicas 3"):
        assert value in said.words
    (remedy,) = said.remedies
    assert {c.origin.path[-1] for c in remedy} == {"gpu", "tensor_parallel_size", "replicas"}
    assert blamed(asked, HERE, NOTHING)[0] == []
    alone = wanted(CHAT_8B + "    overrides: {replicas: 9}\n")
    tried: list[Demand] = []
    assert blamed(alone, HERE, answering(lambda demand, where: tried.append(demand)))[0] == []  # type: ignore[func-returns-value]
    assert len(tried) == 1


def tried_of(asked: Demand, where: Site) -> list[tuple[Demand, Site]]:
    """All that is tried for a workload that nothing helps."""
    return [(a.demand, a.site) for a in attempts(asked, where)]


def run(text: str = FULL_8B, **changes: object) -> TrainingDemand:
    asked = wanted(text)
    assert isinstance(asked, TrainingDemand)
    return replace(asked, **changes)  # type: ignore[arg-type]


def test_nothing_is_proposed_of_a_run_that_is_as_it_should_be() -> None:
    assert tried_of(run(), HERE) == []


@pytest.mark.parametrize(
    ("changes", "field", "tried", "words"),
    [
        ({"optimizer": "adamw-bf16"}, "optimizer", "adamw", "`optimizer: adamw` takes"),
        (
            {"sharding": "zero1"},
            "sharding",
            None,
            "than sharding zero1: without it, the run takes",
        ),
        (
            {"recompute": "none"},
            "recompute",
            None,
            "for recompute none: without it, the run takes",
        ),
    ],
)
def test_what_a_run_chose_for_itself_is_tried_without(
    changes: dict[str, object], field: str, tried: object, words: str
) -> None:
    asked = run(**changes)
    ((demand, _),) = tried_of(asked, HERE)
    assert getattr(demand, field) == tried
    assert words in advised(asked, HERE, FITTING)


def test_a_fabric_is_proposed_where_none_is_named() -> None:
    bare = replace(HERE, fabric=None)
    ((_, where),) = tried_of(run(), bare)
    assert where.fabric is not None
    assert where.fabric.bytes_per_s_per_gpu == 50e9
    said = advised(run(), bare, FITTING)
    assert said.startswith("GPUs of several nodes are not used without `platform.fabric`: ")
    assert said.endswith(f"400 Gb/s}}` takes {FITS}")


def test_a_batch_that_splits_over_few_gpus_is_tried_at_the_powers_of_two_beside_it() -> None:
    odd = run(FULL_8B.replace("global_batch: 128", "global_batch: 96"))
    batches = [
        d.global_batch.value for d, _ in tried_of(odd, HERE) if isinstance(d, TrainingDemand)
    ]
    assert batches == [128, 64]
    said = advised(odd, HERE, FITTING)
    assert said.startswith("96 sequences split evenly over few numbers of GPUs: ")
    assert f"`global_batch: 128` takes {FITS}; or " in said


def test_other_precisions_are_tried_but_not_its_own() -> None:
    asked = wanted(CHAT_8B)
    precisions = [d.precision for d, _ in tried_of(asked, HERE)]  # type: ignore[attr-defined]
    assert asked.precision == "bf16"  # type: ignore[attr-defined]
    assert precisions == ["fp8"]  # nothing makes int4 of weights in bf16
    said = advised(asked, HERE, FITTING)
    assert said == f"`precision: fp8` takes {FITS}"


def refused(gpu: str, quantity: str, now: float, needed: float, unit: str) -> Candidate:
    flip = Flip(quantity=quantity, now=now, needed=needed, unit=unit)
    short = Shortfall(resource=quantity, requested=needed, used=0.0, capacity=now, unit=unit)
    return replace(FOUND, device=whole(offer(gpu)), flip=flip, shortfalls=(short,))


def nearest(*candidates: Candidate) -> str:
    groups = tuple((c.device.offer, (c,)) for c in candidates)
    return advice(Search(run(), groups), HERE, (), NOTHING).words


def test_how_far_off_the_nearest_is_is_said_where_nothing_helps() -> None:
    assert nearest() == "ask for less of it, or divide the load"
    near = refused("l40s", "node.count", 4, 6, "nodes")
    far = refused("a10", "node.count", 4, 40, "nodes")
    assert nearest(far, near).startswith("it takes 2 nodes of l40s more, with 16 GPUs")
    gigabytes = refused("l4", "gpu_memory_bytes", 24e9, 25e9, "B")
    assert nearest(gigabytes, far).startswith("it takes 36 nodes of a10 more, with ")
    assert nearest(gigabytes).startswith("it takes a GPU with 23.3 GiB; l4 has 22.4 GiB")
    nothing = refused("l4", "node.count", 0, 5, "nodes")
    assert nearest(nothing) == "ask for less of it, or divide the load"


@pytest.mark.parametrize(
    ("value", "unit", "upward", "text", "number"),
    [
        (0.016401, "s", True, "16.5 ms", 0.0165),
        (0.0164, "s", True, "16.4 ms", 0.0164),
        (20498.4, "s", True, "5.7 h", 20520.0),
        (2.34e9, "B/s", True, "2.34 GB/s", 2.34e9),
        (2.3412e9, "B/s", True, "2.35 GB/s", 2.35e9),
        (59871.2, "1/s", False, 59800.0, 59800.0),
        (7.0, "nodes", True, 7, 7.0),
    ],
)
def test_a_value_is_proposed_as_it_is_read_on_the_side_that_fits(
    value: float, unit: str, upward: bool, text: object, number: float
) -> None:
    assert written(value, unit, upward=upward) == (text, pytest.approx(number))


def test_what_no_field_says_is_no_change() -> None:
    memory = Flip(quantity="gpu_memory_bytes", now=24e9, needed=25e9, unit="B")
    assert eased(run(), HERE, {memory.quantity: memory}) is None


def test_more_nodes_are_proposed_of_those_that_are_described_not_of_those_that_are_named() -> None:
    flip = Flip(quantity="node.count", now=2, needed=3.0, unit="nodes")
    described = replace(HERE, gpus=(offer("l40s", node_count=2),))
    attempt = eased(run(), described, {flip.quantity: flip})
    assert attempt is not None
    assert attempt.words == "`platform.node.count: 3` instead of 2"
    assert [o.node_count for o in attempt.site.gpus] == [3]
    named = replace(HERE, gpus=(offer("l40s", node_count=2, node_names=("n1", "n2")),))
    assert eased(run(), named, {flip.quantity: flip}) is None
    bought = replace(HERE, gpus=(offer("l40s", node_count=None),))
    assert eased(run(), bought, {flip.quantity: flip}) is None


def test_of_other_gpus_that_would_not_do_either_the_nearest_is_named() -> None:
    away = OtherSite(words="`platform.gpus`", changes=(), site=site("a10"))

    def searched(demand: Demand, where: Site) -> Search:
        short = refused("a10", "gpu_memory_bytes", 24e9, 250e9, "B")
        return Search(demand, ((short.device.offer, (short,)),) if where is away.site else ())

    words = advice(Search(run(), ()), HERE, (away,), searched).words
    assert "; nor would other GPUs or nodes do, a10: " in words
    assert "nor would" not in advice(Search(run(), ()), HERE, (away,), NOTHING).words
