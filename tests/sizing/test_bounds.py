"""How far the searches go where nobody sets a limit: to what they say, and no further."""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import replace

import pytest

from gpuplan.models.load import bundled, bundled_names
from gpuplan.models.model import Transformer
from gpuplan.plan.model import Evidence
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.decide.tried import tried
from gpuplan.sizing.evidence.formula import evaluate
from gpuplan.sizing.hardware.offers import Site
from gpuplan.sizing.kinds.images.search import SizedPipeline
from gpuplan.sizing.kinds.serving.nodes import MOST_NODES
from gpuplan.sizing.kinds.training.judge import SizedRun
from gpuplan.sizing.kinds.vision.runs import SizedLooking
from tests.sizing.test_interruptions import BATCHES
from tests.sizing.test_kinds_told import KINDS, LEARN
from tests.support.sizing_cases import (
    FULL_8B,
    IB,
    IMAGE_BATCH,
    SPEECH,
    TAGGER,
    offer,
    site,
    size,
    sized,
    wanted,
)

H200 = "h200-sxm-141gb"
LARGE = FULL_8B.replace("global_batch: 128", "global_batch: 1024").replace("2 d", "9000 d")
LOOKS = LEARN.replace("    overrides: {gpu_count: 8}\n", "")


def weighed(text: str, gpu: str = H200, **changes: object) -> list[Candidate]:
    where = Site(target="kubernetes", gpus=(offer(gpu, **changes),), fabric=IB)
    ((_, group),) = tried(wanted(text), where)
    return list(group)


@pytest.mark.parametrize("text", [LARGE, LOOKS])
@pytest.mark.parametrize(("nodes", "most"), [(None, 512), (3, 16), (128, 1024)])
def test_runs_are_weighed_on_64_nodes_or_on_all_that_there_are(
    text: str, nodes: int | None, most: int
) -> None:
    """Numbers that divide 1,024: of 24 GPUs 16 do."""
    gpus = sorted({c.gpus for c in weighed(text, node_count=nodes)})
    assert gpus == [1 << n for n in range(most.bit_length())]


def test_micro_batches_are_as_many_as_fit_up_to_those_that_were_measured() -> None:
    short = FULL_8B.replace("4096, global_batch: 128", "16, global_batch: 4096")
    runs = [c.detail for c in weighed(short) if c.gpus == 8]
    assert [r.micro_batch for r in runs if isinstance(r, SizedRun)] == [64]
    small = LOOKS.replace("google/vit-large-patch16-224", "timm/resnet50.a1_in1k").replace(
        "global_batch: 1024", "global_batch: 8192"
    )
    looks = [c.detail for c in weighed(small) if c.gpus == 8]
    assert [r.micro_batch for r in looks if isinstance(r, SizedLooking)] == [512]


def test_batches_of_images_are_as_large_as_fit_up_to_eight() -> None:
    batches = [c.detail for c in weighed(IMAGE_BATCH)]
    assert {b.batch for b in batches if isinstance(b, SizedPipeline)} == {8}
    one = weighed(
        IMAGE_BATCH.replace("task: batch", "task: inference")
        .replace("requests: 100000", "requests_per_second: 1")
        .replace("finish_within: 10 h", "request_latency: 90 s")
    )
    assert {b.detail.batch for b in one if isinstance(b.detail, SizedPipeline)} == {1}


def test_a_replica_has_the_nodes_that_the_largest_bundled_model_takes_in_bf16() -> None:
    """Of 8 x 80 GB, of which an engine takes nine tenths."""
    models = [m for n in bundled_names() if isinstance(m := bundled(n), Transformer)]
    largest = max(m.parameters for m in models)
    memory = offer("h100-sxm-80gb").gpu.memory_bytes.value
    assert math.ceil(2 * largest / (8 * 0.9 * memory)) == MOST_NODES


@pytest.mark.parametrize(("nodes", "most"), [(None, 6), (9, 6), (4, 4), (1, 1)])
def test_replicas_lie_on_so_many_nodes_as_there_are_up_to_that(
    nodes: int | None, most: int
) -> None:
    """405 B weights in bf16 on nodes of 8 x 24 GB: 811 GB of 172 GB each."""
    text = """
    task: inference
    model: meta-llama/Llama-3.1-405B-Instruct
    precision: bf16
    load: {requests_per_second: 0.1, input_tokens: 800, output_tokens: 250}
"""
    found = weighed(text, "a10", gpus_per_node=8, node_count=nodes)
    assert max(-(-c.gpus // 8) for c in found) == most


@pytest.mark.parametrize("text", [SPEECH, TAGGER])
def test_places_are_as_many_as_memory_holds_up_to_the_engines_default(text: str) -> None:
    def places(gpu: str) -> int:
        serving = sized(text, site(gpu)).workload.serving
        assert serving is not None
        return serving.max_num_seqs

    assert places(H200) == 256
    if text is SPEECH:
        assert 1 <= places("l4") < places("l40s") < 256


@pytest.mark.parametrize("case", ["chat", "images", "texts", "audio", "pictures"])
def test_however_little_comes_a_replica_is_there(case: str) -> None:
    little = 1e-12
    load: dict[str, float | None] = {
        f"load.requests_per_second.{name}": little for name in ("mean", "peak")
    }
    where = Site(target="kubernetes", gpus=(offer(H200),), fabric=IB)
    ((_, group),) = tried(wanted(KINDS[case], numbers=load), where)
    assert {c.replicas for c in group if c.feasible} == {1}


@pytest.mark.parametrize("case", BATCHES)
def test_however_few_requests_there_are_a_replica_is_there(case: str) -> None:
    text = BATCHES[case].replace("finish_within: 24 h", "finish_within: 9000 d")
    where = Site(target="kubernetes", gpus=(offer(H200),), fabric=IB)
    ((_, group),) = tried(wanted(text, numbers={"load.requests": 1.0}), where)
    assert min(c.replicas for c in group if c.feasible) == 1


# Without runs, whose measured factor is recorded in six digits, and texts, whose steps are smaller
# on smaller GPUs.
UNEXACT = ("run", "run over nodes", "texts", "batch of texts", "notebooks")
EXACT = {name: text for name, text in KINDS.items() if name not in UNEXACT}


@pytest.mark.parametrize("name", EXACT)
def test_what_fills_a_gpu_to_its_last_byte_fits_and_in_a_byte_less_it_does_not(name: str) -> None:
    def planned(memory: int | None = None) -> tuple[float, Evidence] | None:
        """The bytes that a GPU of so many holds, and how those that may be taken are found."""
        one = offer(H200)
        known = memory or int(one.gpu.memory_bytes.value)
        changed = replace(one.gpu.memory_bytes, value=known)
        one = replace(one, gpu=replace(one.gpu, memory_bytes=changed))
        answer = size(wanted(EXACT[name]), Site(target="kubernetes", gpus=(one,), fabric=IB))
        if not isinstance(answer, Sized):
            return None
        found = {e.quantity: e for e in answer.evidence}
        return found["work.used_bytes"].value, found["work.usable_bytes"]

    large = planned()
    assert large is not None
    used, usable = large
    inputs = {each.name: each.value for each in usable.inputs}

    def room(memory: int) -> float:
        return evaluate(usable.formula, inputs | {"memory_bytes": memory})

    most = int(inputs["memory_bytes"])
    exactly = bisect_left(range(most), used, key=room)
    assert room(exactly - 1) < used <= room(exactly)
    filled = planned(exactly)
    assert filled is not None
    assert (filled[0], filled[1].formula) == (used, usable.formula)
    less = planned(exactly - 2)
    assert less is None or less[0] < used


def test_a_gpu_that_holds_no_single_picture_is_refused() -> None:
    def answered(memory: int) -> object:
        one = offer(H200)
        changed = replace(one.gpu.memory_bytes, value=memory)
        one = replace(one, gpu=replace(one.gpu, memory_bytes=changed))
        where = Site(target="kubernetes", gpus=(one,), fabric=IB)
        return size(wanted(TAGGER), where)

    single = sized(f"{TAGGER}    overrides: {{max_num_seqs: 1}}\n", site(H200))
    (used,) = (e.value for e in single.evidence if e.quantity == "work.used_bytes")
    part = single.workload.memory.usable_bytes / offer(H200).gpu.memory_bytes.value
    enough = answered(int(used / part) + 2)
    assert isinstance(enough, Sized)
    assert enough.workload.serving is not None
    assert enough.workload.serving.max_num_seqs == 1
    assert not isinstance(answered(int(used / part) - 2), Sized)
