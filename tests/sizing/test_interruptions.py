"""What it costs that spare capacity is taken back, of every kind of workload: the work that is done
again, the restart, its price, and how often it may happen."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal

import pytest

from gpuplan.plan.model import Interruption
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.units import format_seconds
from tests.sizing.test_offers import shaped
from tests.support.sizing_cases import (
    BATCH,
    CHAT_8B,
    FULL_8B,
    IB,
    IMAGE_BATCH,
    IMAGES,
    LORA_70B,
    NOTEBOOKS,
    READER,
    SPEECH,
    TAGGER,
    sized,
)

HOURLY = FULL_8B + "    checkpoint: {interval: 2 h}\n    overrides: {gpu_count: 8}\n"
TEXTS = READER.replace("inference", "batch").replace(
    "requests_per_second: {mean: 20, peak: 60}", "requests: 5000000"
)
AUDIO = SPEECH.replace("inference", "batch").replace(
    "requests_per_second: {mean: 2, peak: 5}", "requests: 90000"
)
PICTURES = TAGGER.replace("inference", "batch").replace(
    "requests_per_second: {mean: 500, peak: 900}", "requests: 9000000"
)
LIMIT = "finish_within: 24 h"
# What each does again: half of what lies between two checkpoints, half of the run, or nothing.
BATCHES = {
    "batch": BATCH,
    "batch of images": IMAGE_BATCH.replace("10 h", "24 h"),
    "batch of texts": TEXTS.replace("request_latency: 80 ms", LIMIT),
    "batch of audio": AUDIO.replace("request_latency: 20 s", LIMIT),
    "batch of pictures": PICTURES.replace("request_latency: 60 ms", LIMIT),
}
SERVICES = {
    "chat": CHAT_8B,
    "images": IMAGES,
    "texts": READER,
    "audio": SPEECH,
    "pictures": TAGGER,
    "notebooks": NOTEBOOKS,
}


def spare(text: str, **changes: object) -> tuple[Sized, Interruption]:
    """On nodes of 8 GPUs that may be taken back, at $4 a GPU and hour."""
    where = Site(target="kubernetes", gpus=(shaped(8, "spot", **changes),))
    where = replace(where, storage_bytes_per_s=Quantity(2e9, "B/s", "test"))
    answer = sized(text + "    preemptible: true\n", where)
    assert answer.workload.interruption is not None
    return answer, answer.workload.interruption


def figures(answer: Sized) -> dict[str, float]:
    return {e.quantity.removeprefix("work."): e.value for e in answer.evidence}


@pytest.mark.parametrize("case", ["run", *BATCHES, *SERVICES])
def test_what_is_done_again_and_the_restart_are_paid(case: str) -> None:
    """By the replica; what is loaded is what lies on its volumes, of a notebook nothing."""
    answer, lost = spare((BATCHES | SERVICES | {"run": HOURLY})[case])
    known, work = figures(answer), answer.workload
    stored = known.get("stored_bytes", known.get("checkpoint_bytes", 0.0))
    if case == "run":
        stored = known["model_bytes"] + known["checkpoint_bytes"]
    loaded = 0.0 if case == "notebooks" else stored
    assert case == "notebooks" or loaded > 1e8
    assert lost.restart_seconds == pytest.approx(300 + (12.64e9 + loaded) / 2e9 + 120)
    again = {"run": 3600.0}.get(case, known["time_to_finish"] / 2 if case in BATCHES else 0.0)
    assert lost.seconds - lost.restart_seconds == pytest.approx(again)
    (said,) = (d.message for d in answer.diagnostics if "spare capacity" in d.message)
    assert f"costs {format_seconds(again)} of work and " * bool(again) in said
    assert (" of work and " in said) == bool(again)
    assert f"{format_seconds(lost.restart_seconds)} of restart, $" in said
    assert work.usd_per_hour is not None
    assert lost.usd is not None
    each = work.usd_per_hour / work.replicas
    assert float(lost.usd) == pytest.approx(float(each) * lost.seconds / 3600)


@pytest.mark.parametrize("case", ["run", *BATCHES])
def test_what_must_end_says_how_often_it_may_be_stopped(case: str) -> None:
    text = (BATCHES | {"run": HOURLY})[case]
    answer, lost = spare(text)
    hours = 48 if case == "run" else 24
    left = hours * 3600 - figures(answer)["time_to_finish"]
    assert lost.in_time == max(0, int(left // lost.seconds))
    line = next(row for row in text.splitlines() if "finish_within" in row)
    _, free = spare(text.replace(f"{line}\n", ""))
    assert free.in_time is None
    by_deadline = text.replace(f"{line}\n", "    deadline: 40 h\n")
    found, sooner = spare(by_deadline)
    left = 40 * 3600 - figures(found)["time_to_finish"]
    assert sooner.in_time == max(0, int(left // sooner.seconds))


@pytest.mark.parametrize("case", SERVICES)
def test_what_stays_has_no_end_to_miss(case: str) -> None:
    assert spare(SERVICES[case])[1].in_time is None


@pytest.mark.parametrize("text", [HOURLY, BATCH, CHAT_8B, NOTEBOOKS])
def test_nodes_without_a_price_have_interruptions_without_one(text: str) -> None:
    answer, lost = spare(text, usd_per_gpu_hour=None)
    assert (lost.usd, answer.workload.usd_per_hour) == (None, None)
    said = next(d.message for d in answer.diagnostics if "spare capacity" in d.message)
    assert "$" not in said
    assert lost.seconds > 420


def test_an_adapter_loads_its_own_states_and_a_run_begins_at_its_last_checkpoint() -> None:
    """The default interval is an hour."""
    answer, lost = spare(LORA_70B.replace(", size: 1 GB", ""))
    known = figures(answer)
    loaded = known["model_bytes"] + known["checkpoint_bytes"]
    assert known["checkpoint_bytes"] == pytest.approx(14 * known["trained_parameters"])
    assert lost.restart_seconds == pytest.approx(420 + (12.64e9 + loaded) / 2e9)
    assert lost.seconds - lost.restart_seconds == pytest.approx(1800)
    assert lost.usd is not None
    assert lost.usd > Decimal(0)
    assert lost.in_time is None


def test_work_that_may_be_stopped_on_nodes_that_are_kept_is_told_so() -> None:
    """Where its nodes have a list price and spare ones with its GPU none; nobody else is told."""
    kept = shaped(8)
    listed = replace(kept, listed=kept.shape.price if kept.shape else None)
    dear = shaped(8, "spot", usd_per_gpu_hour=Quantity(99.0, "USD/h", "test"))

    def told(text: str, *offers: GpuOffer) -> list[str]:
        answer = sized(text, Site(target="kubernetes", gpus=offers, fabric=IB))
        return [d.message for d in answer.diagnostics if "spare capacity" in d.message]

    stopped = CHAT_8B + "    preemptible: true\n"
    (said,) = told(stopped, listed)
    assert said == (
        "no price of spare capacity is known for azure, westus3: 'work' is planned and priced on"
        " nodes that are kept"
    )
    assert told(stopped, replace(kept, listed=None)) == []
    assert told(stopped, listed, dear) == []
    assert told(CHAT_8B, listed) == told(CHAT_8B, listed, dear) == []
    assert told(stopped, replace(listed, shape=None)) == []
