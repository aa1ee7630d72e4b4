"""What a GPU is refused for before anything is tried on it, by every kind of workload: a precision
that it does not compute in, measurements that nobody made, and what is short is told with the
numbers of the one that comes nearest."""

from __future__ import annotations

from dataclasses import replace

import pytest

from gpuplan.plan.model import Flip, Shortfall
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.decide.messages import describe
from gpuplan.sizing.decide.tried import tried
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.evidence.intervals import at_confidence
from gpuplan.sizing.hardware.measured import gate_of
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.training.judge import SizedRun
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
    unstated = replace(known, gpu=replace(known.gpu, peak_bf16=None))  # type: ignore[arg-type]
    short = gate_of("bf16 peak", "unknown")
    assert refused(in_precision(case, "bf16"), unstated).shortfalls == short


@pytest.mark.parametrize("case", KINDS)
def test_a_gpu_for_which_no_measurements_stand_is_refused(case: str) -> None:
    known = offer("h100-sxm-80gb").gpu
    new = replace(known, identifier="new", architecture="unheard-of", measured_as=(), line="none")
    found = refused(in_precision(case, "bf16"), replace(offer("h100-sxm-80gb"), gpu=new))
    subject = SUBJECTS.get(case, "kernels")
    assert found.shortfalls == gate_of(subject, "unmeasured")
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
    assert found.shortfalls == gate_of("platform.fabric", "unstated")


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
    assert (short.requested, short.capacity, short.lack) == (12.0, 4.0, "uneven")
    assert describe(short) == f"12 GPUs do not divide {batch:,} {things}"
    assert (found.gpus, found.flip) == (12, None)
    found, short = told("gpu_count: 8, micro_batch: 3")
    at_once, parts, over = (3.0, batch // 8, f"{things} at a time")
    if case == "run":
        at_once, parts = 24.0, batch  # on all GPUs
    assert describe(short) == f"{at_once:g} {over} do not divide {parts:,} {things}"
    assert short.requested == at_once
    assert found.gpus == 8


ON_8 = "    overrides: {gpu_count: 8}\n"
BARE = KINDS["run"].replace("    slo: {finish_within: 2 d}\n", "") + ON_8


def run_on_8(text: str, storage: float | None = None) -> Candidate:
    rate = None if storage is None else Quantity(storage, "B/s", "test")
    one = offer("h100-sxm-80gb")
    where = Site(target="kubernetes", gpus=(one,), fabric=IB, storage_bytes_per_s=rate)
    ((_, (found,)),) = tried(wanted(text), where)
    return found


@pytest.mark.parametrize(("rate", "open_"), [(2e9, True), (2.000001e9, False)])
def test_a_dataset_that_is_read_faster_than_the_storage_is_told_with_both_rates(
    rate: float, *, open_: bool
) -> None:
    text = BARE + f"    dataset: {{name: a, rate: {rate:.0f} B/s}}\n"
    found = run_on_8(text, 2e9)
    assert found.feasible == open_
    assert run_on_8(text).feasible
    if not open_:
        (short,) = found.shortfalls
        assert (short.resource, short.unit) == ("storage_bytes_per_s", "B/s")
        assert (short.requested, short.used, short.capacity) == (rate, 0, 2e9)
        assert found.flip == Flip(quantity="storage.bandwidth", now=2e9, needed=rate, unit="B/s")
    both = BARE.replace("gpu_count: 8", "gpu_count: 16")
    two = run_on_8(both + "    dataset: {name: a, rate: 3 GB/s}\n", 2e9)
    assert two.feasible
    three = run_on_8(both + "    dataset: {name: a, rate: 5 GB/s}\n", 2e9)
    assert three.shortfalls[0].capacity == 4e9
    assert three.flip is not None
    assert three.flip.needed == 2.5e9


@pytest.mark.parametrize("field", ["slo.finish_within", "deadline"])
def test_a_run_that_ends_too_late_is_told_with_the_time_that_is_not_exceeded(field: str) -> None:
    """Of two limits the earlier one is missed."""
    limit = "slo: {finish_within: 1 h}" if "slo" in field else "deadline: 1 h"
    found = run_on_8(f"{BARE}    {limit}\n")
    layout = run_on_8(BARE).detail
    assert isinstance(layout, SizedRun)
    slow = at_confidence(layout.factors, 0.8)
    late = float(f"{layout.values['time_to_finish'] * slow:.4g}")
    (short,) = found.shortfalls
    assert (short.resource, short.requested, short.used, short.capacity, short.unit) == (
        "time_to_finish",
        late,
        0.0,
        3600.0,
        "s",
    )
    assert found.flip == Flip(quantity=field, now=3600.0, needed=late, unit="s")
    other = "deadline: 2 h" if "slo" in field else "slo: {finish_within: 2 h}"
    both = run_on_8(f"{BARE}    {limit}\n    {other}\n")
    assert both.flip == found.flip


def test_a_run_with_too_few_tokens_a_second_is_told_with_those_that_are_reached() -> None:
    found = run_on_8(BARE + "    slo: {tokens_per_second: 9e9}\n")
    layout = run_on_8(BARE).detail
    assert isinstance(layout, SizedRun)
    reached = layout.values["tokens_per_second"] / at_confidence(layout.factors, 0.8)
    reached = float(f"{reached:.4g}")
    (short,) = found.shortfalls
    assert (short.resource, short.requested, short.capacity, short.unit) == (
        "tokens_per_second",
        9e9,
        reached,
        "1/s",
    )
    assert found.flip == Flip(quantity="slo.tokens_per_second", now=9e9, needed=reached, unit="1/s")
    assert run_on_8(BARE + f"    slo: {{tokens_per_second: {reached:.0f}}}\n").feasible
    more = f"    slo: {{tokens_per_second: {reached * 1.001:.0f}}}\n"
    assert not run_on_8(BARE + more).feasible


RATE = "load.requests_per_second"


@pytest.mark.parametrize("case", ["chat", "texts", "audio", "pictures", "images", "batch"])
def test_too_few_replicas_are_told_with_those_that_are_needed(case: str) -> None:
    """And as many as are needed are enough, of a load that takes several."""
    text = KINDS[case] + "    overrides: {TENSORreplicas: N}\n"
    text = text.replace("TENSOR", "tensor_parallel_size: 4, " if case in ("chat", "batch") else "")
    load: dict[str, float | None] = {f"{RATE}.mean": 50_000, f"{RATE}.peak": 50_000}
    if case == "images":
        load = {f"{RATE}.mean": 50, f"{RATE}.peak": 100}
    if case == "batch":
        load = {"load.requests": 1e8}
    where = Site(target="kubernetes", gpus=(offer("h100-sxm-80gb"),), fabric=IB)

    def only(replicas: int) -> Candidate:
        asked = wanted(text.replace("N", str(replicas)), numbers=load)
        ((_, (found,)),) = tried(asked, where)
        return found

    few = only(1)
    (short,) = few.shortfalls
    assert (short.resource, short.capacity, short.used, short.unit) == ("replicas", 1.0, 0.0, "1")
    needed = int(short.requested)
    assert needed > 1
    assert few.flip is None
    assert not only(needed - 1).feasible
    for count in (needed, needed + 3):
        assert only(count).feasible
        assert only(count).replicas == count


@pytest.mark.parametrize("case", ["run", "learning"])
def test_nodes_that_nothing_joins_hold_no_run(case: str) -> None:
    text = KINDS[case] + "    overrides: {gpu_count: 16}\n"
    bare = Site(target="kubernetes", gpus=(offer("h100-sxm-80gb"),))
    ((_, (found,)),) = tried(wanted(text), bare)
    assert found.shortfalls == gate_of("platform.fabric", "unstated")
    assert (found.gpus, found.flip, found.passed > 0) == (16, None, True)
    inside = KINDS[case] + "    overrides: {gpu_count: 8}\n"
    ((_, (held,)),) = tried(wanted(inside), bare)
    assert held.feasible


HELD = {
    "run": (0.85, "    overrides: {gpu_count: 1}\n"),
    "learning": (0.85, "    overrides: {gpu_count: 1}\n"),
    "pictures": (0.9, ""),
    "texts": (0.9, ""),
    "audio": (0.9, ""),
    "images": (0.9, ""),
}


@pytest.mark.parametrize("case", HELD)
def test_memory_that_is_short_is_told_with_the_gpu_that_would_do(case: str) -> None:
    """Of a GPU with 1 GiB; one with what is told holds it, and one with a little less does not."""
    part, more = HELD[case]
    text = in_precision(case, "bf16") + more
    card = offer("h100-sxm-80gb")

    def with_memory(size: float) -> list[Candidate]:
        memory = replace(card.gpu.memory_bytes, value=size)
        small = replace(card, gpu=replace(card.gpu, memory_bytes=memory))
        where = Site(target="kubernetes", gpus=(small,), fabric=IB)
        ((_, group),) = tried(wanted(text), where)
        return list(group)

    (found,) = with_memory(2.0**30)
    (short,) = found.shortfalls
    assert (short.resource, short.used, short.unit) == ("gpu_memory", 0.0, "B")
    assert short.capacity == int(2**30 * part)
    assert found.flip is not None
    assert (found.flip.quantity, found.flip.now, found.flip.unit) == (
        "gpu_memory_bytes",
        2.0**30,
        "B",
    )
    assert found.flip.needed == pytest.approx(short.requested / part, abs=1)
    if case != "run":  # whose own buffers grow with the GPU's
        assert any(c.feasible for c in with_memory(found.flip.needed + 9))
    assert not any(c.feasible for c in with_memory(0.99 * found.flip.needed))
