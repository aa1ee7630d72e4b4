"""Refusals of what contradicts itself: the words, the place, and the change that mends it, of those
that a manifest seldom meets; and what is just possible is taken."""

from __future__ import annotations

import pytest

from gpuplan.errors import Rejected
from gpuplan.source import format_path
from tests.sizing.test_kinds_told import KINDS
from tests.support.sizing_cases import CHAT_8B, FULL_8B, IMAGES, READER, TAGGER, refusals, wanted

TWO = CHAT_8B.replace("output_tokens: 250", "output_tokens: 2")
TWO += "    slo: {time_per_output_token: 50 ms}\n"
DRAFTS = "    speculative: {{accepted_tokens: 2, draft_tokens: 3, draft_cost: 0.1{}}}\n"
MAY = "    overrides: {{accepted_misses: [{}]}}\n"
SAME = IMAGES.replace("mean: 1024x1024", "mean: 512x512, p95: 512x512")

# Workload, message, place, field of the change and what it writes (None: it takes it away).
REFUSED = {
    "one token has no next": (
        TWO.replace("output_tokens: 2", "output_tokens: 1"),
        "an answer of one token has no time per output token",
        "slo.time_per_output_token",
        None,
    ),
    "a revision of nothing": (
        CHAT_8B + DRAFTS.format(", revision: abc"),
        "a revision of no draft model",
        "speculative.revision",
        ("speculative.revision", None),
    ),
    "a variable that is not there": (
        CHAT_8B + "    environment: {LEVEL: info}\n    public_variables: [LEVEL, LEVELS]\n",
        "public variable 'LEVELS' is no variable of 'environment'",
        "public_variables[1]",
        None,
    ),
    "groups of another engine": (
        FULL_8B.replace("tokens: 1e9", "tokens: 1e9, sharding: hsdp"),
        "sharding 'hsdp' is that of another engine",
        "training.sharding",
        ("engine", "megatron-bridge"),
    ),
    "all drafts and one more": (
        CHAT_8B + DRAFTS.format("").replace("accepted_tokens: 2", "accepted_tokens: 4.1"),
        "4.1 tokens of a step are accepted, 3 are drafted",
        "speculative.accepted_tokens",
        ("speculative.accepted_tokens", 4.0),
    ),
    "a miss of nothing": (
        CHAT_8B + MAY.format("time_to_first_token"),
        "a miss of 'time_to_first_token' is accepted, and it has no objective",
        "overrides.accepted_misses[0]",
        ("overrides.accepted_misses[0]", None),
    ),
    "a miss of a run's end": (
        FULL_8B.replace("    slo: {finish_within: 2 d}\n", "") + MAY.format("finish_within"),
        "a miss of 'finish_within' is accepted, and it has no objective",
        "overrides.accepted_misses[0]",
        ("overrides.accepted_misses[0]", None),
    ),
    "scores of what gives vectors": (
        READER + "    pooling: score\n",
        "pooling 'score' of a model that gives vectors: XLMRobertaModel",
        "pooling",
        ("pooling", None),
    ),
    "an adapter that is no fine-tuning": (
        FULL_8B.replace("finetuning", "training").replace("tokens: 1e9", "tokens: 1e9, lora: 8"),
        "an adapter is fine-tuning",
        "training.lora",
        ("task", "finetuning"),
    ),
    "a run in int8": (
        FULL_8B + "    precision: int8\n",
        "'int8' is not a training precision",
        "precision",
        ("precision", None),
    ),
    "vision in int8": (
        TAGGER + "    precision: int8\n",
        "how fast google/vit-large-patch16-224 is in int8 cannot be predicted",
        "precision",
        None,
    ),
    "learning in int8": (
        KINDS["learning"] + "    precision: int8\n",
        "how fast google/vit-large-patch16-224 is trained in int8 cannot be predicted",
        "precision",
        None,
    ),
    "two lengths of learning": (
        KINDS["learning"].replace("epochs: 30", "epochs: 30, steps: 9"),
        "'steps' and 'epochs' both say how long the run is",
        "training.epochs",
        ("training.epochs", None),
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_contradicts_itself_is_told_with_its_place_and_what_mends_it(case: str) -> None:
    text, message, place, change = REFUSED[case]
    (refusal,) = refusals(text)
    assert refusal.message == message
    assert refusal.origin is not None
    assert format_path(refusal.origin.path[2:]) == place
    written = [(format_path(c.origin.path[2:]), c.value) for r in refusal.remedies[:1] for c in r]
    assert written[:1] == ([] if change is None else [change])
    assert refusal.help


@pytest.mark.parametrize(
    "text",
    [
        TWO,
        CHAT_8B + DRAFTS.format("").replace("accepted_tokens: 2", "accepted_tokens: 4"),
        CHAT_8B + "    environment: {LEVEL: info}\n    public_variables: [LEVEL]\n",
        TWO + MAY.format("time_per_output_token"),
        TWO + MAY.format("time_per_output_token.mean"),
        FULL_8B + MAY.format("finish_within"),
        READER + "    pooling: embed\n",
        FULL_8B.replace("tokens: 1e9", "tokens: 1e9, lora: 8"),
        *(FULL_8B + f"    precision: {name}\n" for name in ("bf16", "fp16", "fp8")),
        *(TAGGER + f"    precision: {name}\n" for name in ("bf16", "fp16")),
        SAME,
        IMAGES.replace("10 h", "23.9 h"),
    ],
)
def test_what_may_be_is_taken(text: str) -> None:
    assert refusals(text) == ()


def refused(text: str, engine: str) -> list[tuple[str, str]]:
    with pytest.raises(Rejected) as caught:
        wanted(text, engine=engine)
    return [
        (d.message, format_path(d.origin.path[2:]))
        for d in caught.value.diagnostics
        if d.origin is not None
    ]


def test_engines_that_make_no_weights_take_what_is_published() -> None:
    text = CHAT_8B + "    engine: tensorrt-llm\n"
    ((message, place),) = refused(text + "    precision: fp8\n", "tensorrt-llm")
    assert message == ("tensorrt-llm makes no weights in fp8 of meta-llama/Llama-3.1-8B-Instruct")
    assert place == "precision"
    for precision in ("bf16", "fp16"):
        wanted(text + f"    precision: {precision}\n", engine="tensorrt-llm")
    wanted(CHAT_8B + "    precision: fp8\n", engine="vllm")


EMBEDS = TAGGER.replace("google/vit-large-patch16-224", "google/siglip-so400m-patch14-384")


def test_what_vllm_does_with_images_is_what_its_server_does() -> None:
    one = "    engine: vllm\n"
    plain = TAGGER.replace("    command: [tritonserver]\n", "")
    ((message, place),) = refused(plain + one, "vllm")
    assert message.startswith("engine 'vllm' does not read images with a ")
    assert place == "engine"
    embeds = EMBEDS.replace("    command: [tritonserver]\n", "")
    wanted(embeds + one, engine="vllm")
    archive = (
        embeds.replace("inference", "batch")
        .replace("requests_per_second: {mean: 500, peak: 900}", "requests: 9000")
        .replace("request_latency: 60 ms", "finish_within: 9 h")
    )
    ((message, place),) = refused(archive + one, "vllm")
    assert message == ("engine 'vllm' does not read images from a file of requests as vectors")
    assert place == "engine"
    wanted(archive + one + "    command: [run]\n", engine="vllm")
    several = embeds.replace("images: 224x224", "images: {mean: 224x224, count: 2}")
    ((message, place),) = refused(several + one, "vllm")
    assert message.endswith("gives one vector for a request, which brings 2 images")
    assert place == "load.images.count"
    wanted(several.replace("count: 2", "count: 1") + one, engine="vllm")
    wanted(several + one + "    command: [run]\n", engine="vllm")
