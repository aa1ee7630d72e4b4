"""How many replicas a load takes: what a pencil gives, and one more just above it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest

from gpuplan.sizing.candidates import batching
from gpuplan.sizing.hardware.devices import partitions
from gpuplan.sizing.hardware.locality import Locality
from gpuplan.sizing.kinds.images import load as images
from gpuplan.sizing.kinds.serving.load import REPLICAS
from gpuplan.sizing.kinds.speech import load as speech
from tests.support.sizing_cases import (
    IMAGE_BATCH,
    IMAGES,
    READER,
    SPEECH,
    TAGGER,
    site,
    sized,
    wanted,
)

BATCH = """
    task: batch
    model: BAAI/bge-m3
    load: {requests: 1000, input_tokens: 200}
    slo: {finish_within: 100 s}
"""
SPEECH_BATCH = """
    task: batch
    model: openai/whisper-large-v3
    load: {requests: 1000, audio: 20 s}
    slo: {finish_within: 100 s}
"""
# Sheet, what it is given, and the quantity of which there is a little more than 4 replicas do.
LOADS: dict[str, tuple[Any, Mapping[str, float], str]] = {
    "service of a reader": (
        batching.needed(wanted(READER))[0],
        {"peak_rate": 8, "slowness": 2, "service_seconds": 0.125, "load_limit": 0.5},
        "peak_rate",
    ),
    "batch of a reader": (
        batching.needed(wanted(BATCH))[0],
        {"requests": 200, "slowness": 2, "service_seconds": 0.5, "time_limit": 50},
        "requests",
    ),
    "service of images": (
        images.needed(wanted(IMAGES))[0],
        {"peak_rate": 8, "slowness": 2, "batch_seconds": 0.5, "batch": 4, "load_limit": 0.5},
        "peak_rate",
    ),
    "batch of images": (
        images.needed(wanted(IMAGE_BATCH))[0],
        {"requests": 200, "slowness": 2, "batch_seconds": 2, "batch": 4, "time_limit": 50},
        "requests",
    ),
    "service of speech": (
        speech.needed(wanted(SPEECH))[0],
        {"peak_rate": 8, "slowness": 2, "limit_rate": 4},
        "peak_rate",
    ),
    "batch of speech": (
        speech.needed(wanted(SPEECH_BATCH))[0],
        {"requests": 200, "slowness": 2, "windows": 2, "window_seconds": 0.25, "time_limit": 50},
        "requests",
    ),
    "tokens": (
        REPLICAS,
        {"sized_rate": 8, "slowness": 2, "request_seconds": 4, "limit_sequences": 16},
        "sized_rate",
    ),
}


@pytest.mark.parametrize("name", LOADS)
def test_a_load_that_replicas_just_carry_takes_no_more_of_them(name: str) -> None:
    sheet, given, grown = LOADS[name]
    given = {"growth": 1.0, **given}
    assert sheet(given)["replicas"] == 4
    assert sheet(given | {grown: given[grown] * 1.001})["replicas"] == 5
    assert sheet(given | {grown: given[grown] / 100})["replicas"] == 1
    assert sheet(given | {grown: 1e-12})["replicas"] == 1
    if name != "tokens":
        assert sheet(given | {"growth": 2.5})["replicas"] == 10


def test_a_gpu_is_shared_by_profiles_without_other_engines_that_fit_it_more_than_once() -> None:
    where = site("h100-sxm-80gb")
    (made,) = where.gpus
    names = {d.partition for d in partitions(made, where)}
    assert {"1g.10gb", "2g.20gb", "3g.40gb"} <= names
    assert not names & {"7g.80gb", "4g.40gb", "1g.10gb+me", "1g.10gb+gfx"}


def test_cores_that_the_host_keeps_are_no_more_than_it_has() -> None:
    def free(cores: int | None, kept: int) -> int:
        made = Locality(
            name="x", gpus=1, cores=cores, memory_bytes=None, stated_cores=kept, source="test"
        )
        return made.free_cores

    assert (free(8, 2), free(2, 2), free(2, 5), free(None, 0)) == (6, 0, 0, 0)


def test_a_reader_moves_and_holds_what_its_widths_say() -> None:
    """BGE-M3: 24 layers of 1,024, four products of that width about its attention, and 4,096 in its
    MLP; a step of vLLM has 2,048 tokens."""
    made = sized(READER, site("l4"))
    got = {e.quantity.removeprefix("work."): e.value for e in made.evidence}
    assert got["step.attention_bytes"] == 2 * 24 * 2048 * 4 * 1024
    assert got["fixed.attention_bytes"] == 2 * 24 * 4 * 1024
    assert got["activations_bytes"] == math.ceil(2 * 2048 * (2.7 * 4096 + 1.7 * 1024))


@pytest.mark.parametrize(
    ("tokens", "mean", "places"), [(2048, 16, 256), (16384, 16, 1024), (16384, 512, 256)]
)
def test_short_texts_have_as_many_places_as_fill_a_step(
    tokens: int, mean: int, places: int
) -> None:
    """And 256 where fewer do."""
    text = READER.replace("{mean: 200, p95: 500}", f"{{mean: {mean}, p95: {2 * mean}}}")
    text = text.replace("80 ms", "1 s") + f"    overrides: {{max_num_batched_tokens: {tokens}}}\n"
    serving = sized(text, site("l4")).workload.serving
    assert serving is not None
    assert serving.max_num_seqs == places


def test_short_texts_wait_for_the_server_and_long_ones_for_the_gpu() -> None:
    def bound_by(mean: int) -> str:
        text = READER.replace("{mean: 200, p95: 500}", f"{{mean: {mean}, p95: {2 * mean}}}")
        return sized(text.replace("80 ms", "5 s"), site("l4")).workload.bound_by

    assert bound_by(8) == "API server"
    assert bound_by(4000) == "compute"


def test_an_image_is_decoded_on_one_core() -> None:
    """An idle server with several cores answers no sooner, and no later."""
    made = sized(TAGGER, site("l4"))
    got = {e.quantity.removeprefix("work."): e.value for e in made.evidence}
    (entry,) = (e for e in made.evidence if e.quantity == "work.answered_seconds")
    assert next(i.value for i in entry.inputs if i.name == "decode_cores") > 1
    assert got["answered_seconds"] == got["decode_seconds"]
