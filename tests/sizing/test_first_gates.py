"""What a GPU is refused for before anything is tried on it, by every kind of workload: a precision
that it does not compute in, measurements that nobody made, and what is short is told with the
numbers of the one that comes nearest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.plan.model import Shortfall
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.decide.size import tried
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from tests.sizing.test_kinds_told import LEARN
from tests.support.sizing_cases import (
    BATCH,
    CHAT_8B,
    FULL_8B,
    IB,
    IMAGES,
    READER,
    SPEECH,
    TAGGER,
    failure,
    offer,
    wanted,
)

KINDS = {
    "chat": CHAT_8B,
    "batch": BATCH,
    "pools": CHAT_8B + "    disaggregation: prefill_decode\n",
    "texts": READER,
    "audio": SPEECH,
    "pictures": TAGGER,
    "images": IMAGES,
    "run": FULL_8B,
    "learning": LEARN.replace("    overrides: {gpu_count: 8}\n", ""),
}
SUBJECTS = {
    "run": "training runs",
    "images": "image pipelines",
    "pictures": "vision networks",
    "learning": "vision networks",
}


def in_precision(case: str, precision: str) -> str:
    text = KINDS[case].replace("    precision: fp8\n", "")
    return f"{text}    precision: {precision}\n"


def refused(text: str, one: GpuOffer) -> Candidate:
    """The only candidate of a GPU that is refused at once."""
    ((_, group),) = tried(wanted(text), Site(target="kubernetes", gpus=(one,), fabric=IB))
    (found,) = group
    assert not found.feasible
    assert (found.passed, found.gpus, found.replicas, found.flip) == (0, 1, 1, None)
    assert found.device.partition is None
    return found


def gate(resource: str, requested: float, capacity: float) -> Shortfall:
    return Shortfall(resource=resource, requested=requested, used=0.0, capacity=capacity, unit="1")


@pytest.mark.parametrize("case", KINDS)
def test_a_gpu_that_is_older_than_the_precision_is_refused_with_both_numbers(case: str) -> None:
    """A T4 has compute capability 7.5; bf16 begins with 8.0."""
    short = gate("compute capability for bf16", 8.0, 7.5)
    assert refused(in_precision(case, "bf16"), offer("t4")).shortfalls == (short,)


@pytest.mark.parametrize("case", KINDS)
def test_a_gpu_whose_peak_nobody_states_is_refused(case: str) -> None:
    known = offer("h100-sxm-80gb")
    without = replace(known, gpu=replace(known.gpu, peak_bf16=None))  # type: ignore[arg-type]
    short = gate("known bf16 peak", 1.0, 0.0)
    assert refused(in_precision(case, "bf16"), without).shortfalls == (short,)


@pytest.mark.parametrize("case", KINDS)
def test_a_gpu_for_which_no_measurements_stand_is_refused(case: str) -> None:
    known = offer("h100-sxm-80gb").gpu
    new = replace(known, identifier="new", architecture="unheard-of", measured_as=(), line="none")
    found = refused(in_precision(case, "bf16"), replace(offer("h100-sxm-80gb"), gpu=new))
    subject = SUBJECTS.get(case, "kernels")
    assert found.shortfalls == (gate(f"measured {subject}", 1.0, 0.0),)
    alone = Site(target="kubernetes", gpus=(found.device.offer,), fabric=IB)
    said = failure(in_precision(case, "bf16"), alone)
    assert (said.rule, said.message) == ("GP012", f"no measured {subject} stand for new")


def test_a_cache_in_fp8_is_refused_where_the_gpu_has_none() -> None:
    text = in_precision("chat", "bf16") + "    overrides: {kv_cache_dtype: fp8}\n"
    short = gate("compute capability for fp8", 8.9, 8.0)
    assert refused(text, offer("a100-sxm-80gb")).shortfalls == (short,)


def test_pools_without_a_fabric_are_refused_for_that() -> None:
    bare = Site(target="kubernetes", gpus=(offer("h100-sxm-80gb"),))
    ((_, (found,)),) = tried(wanted(KINDS["pools"]), bare)
    assert found.shortfalls == (gate("stated platform.fabric", 1.0, 0.0),)


@pytest.mark.parametrize(("case", "things"), [("run", "sequences"), ("learning", "images")])
def test_gpus_and_micro_batches_that_do_not_divide_a_batch_say_what_does(
    case: str, things: str
) -> None:
    """Of 128 sequences 12 GPUs and of 1,024 images too: 4 divide both."""
    batch = 128 if case == "run" else 1024
    where = Site(target="kubernetes", gpus=(offer("h100-sxm-80gb"),), fabric=IB)

    def told(overrides: str) -> tuple[Candidate, Shortfall]:
        text = f"{KINDS[case]}    overrides: {{{overrides}}}\n"
        ((_, (found,)),) = tried(wanted(text), where)
        return found, found.shortfalls[0]

    found, short = told("gpu_count: 12")
    assert short == gate(f"even split over GPUs of {batch:,} {things}", 12.0, 4.0)
    assert (found.gpus, found.flip) == (12, None)
    found, short = told("gpu_count: 8, micro_batch: 3")
    at_once, parts, over = (3.0, batch // 8, f"{things} at a time")
    if case == "run":
        at_once, parts = 24.0, batch  # on all GPUs
    assert short.resource == f"even split over {over} of {parts:,} {things}"
    assert short.requested == at_once
    assert found.gpus == 8
