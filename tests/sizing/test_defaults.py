"""Fields that nobody wrote: the value of each and the reason that is given for it, by kind."""

from __future__ import annotations

import pytest

from tests.sizing.test_kinds_told import KINDS, where
from tests.support.sizing_cases import CHAT_8B, FULL_8B, LORA_70B, sized, wanted

CONSTANT = "lengths are constant where no 95th percentile is written"
OWN = "the engine's own default"
ALL = {"slo.confidence": (0.8, "an objective is met with this probability")}
GROWS = ALL | {"growth.factor": (1.0, "no growth is planned")}
FULL = {"gpu_memory_utilization": (0.9, OWN)}
LOOKS = {
    "load.images.count": (1.0, "an image of its own in each request"),
    "gpu_memory_utilization": (0.9, "the rest is left to the allocator"),
    "precision": (2.0, "fp16, as networks that read images were measured"),
}
TEXTS = FULL | {
    "load.texts": (1.0, "a text of its own in each request"),
    # twice 500 tokens, in steps of 512
    "max_model_len": (
        1024.0,
        "twice the 95th percentile, in steps of 512, within the model's context",
    ),
    "precision": (2.0, "bf16, of weights in fp32"),
}
HEARS = FULL | {
    "load.output_tokens.mean": (
        63.5,
        "read English: MLPerf Inference v5.1, tokens a window of 30 s",
    ),
    "precision": (2.0, "fp16, as the weights are published"),
}
DRAWS = {"load.images.p95": (1024.0 * 1024, "every image is the mean")}
RUN = {"precision": (2.0, "bf16, of mixed-precision training")}
HOURLY = {"checkpoint.interval": (3600.0, "an hour of work is at risk")}
LONG = "twice the 95th percentiles, in steps of 1,024, within the model's context"
PLAIN = {"precision": (2.0, "bf16, as the weights are published")}
CHAT = (
    FULL
    | PLAIN
    | {
        "load.input_tokens.p95": (800.0, CONSTANT),
        "load.output_tokens.p95": (250.0, CONSTANT),
        "max_model_len": (3072.0, LONG),  # twice 1,050 tokens, in steps of 1,024
    }
)
PEAK = {"load.requests_per_second.peak": (2.0, "no peak: the mean is served")}
USUAL = {
    "batch": GROWS
    | FULL
    | {
        "load.input_tokens.p95": (1500.0, CONSTANT),
        "load.output_tokens.p95": (300.0, CONSTANT),
        "max_model_len": (4096.0, LONG),
    },
    "batch of images": GROWS | DRAWS,
    "batch of texts": GROWS | TEXTS,
    "batch of audio": GROWS | HEARS,
    "batch of pictures": GROWS | LOOKS,
    "chat": GROWS | CHAT | PEAK,
    "images": GROWS | DRAWS | PLAIN,
    "texts": GROWS | TEXTS,
    "audio": GROWS | HEARS,
    "pictures": GROWS | LOOKS,
    "notebooks": {},
    "run": ALL | RUN,
    "run over nodes": ALL | RUN | HOURLY,
    "learning": ALL | HOURLY | {"precision": LOOKS["precision"]},
}
CLOSED = CHAT_8B.replace("requests_per_second: 2", "concurrency: {users: 5}")
LONGER = CHAT_8B.replace("800", "{mean: 800, p95: 70000}")
MORE = {
    "users": (
        CLOSED,
        GROWS | CHAT | {"load.concurrency.think_time": (0.0, "every user asks again at once")},
    ),
    "long texts": (
        LONGER,  # twice 70,250 tokens are more than the model can take
        GROWS
        | {name: row for name, row in CHAT.items() if name != "load.input_tokens.p95"}
        | PEAK
        | {"max_model_len": (131072.0, LONG)},
    ),
    "a token over a step": (
        CHAT_8B.replace("output_tokens: 250", "output_tokens: 225"),
        GROWS
        | CHAT
        | PEAK
        | {
            "load.output_tokens.p95": (225.0, CONSTANT),
            "max_model_len": (3072.0, LONG),  # twice 1,025 tokens
        },
    ),
    "adapter": (
        LORA_70B,
        ALL | RUN | HOURLY,
    ),
    "bare run": (
        FULL_8B.replace("sequence_length: 4096, global_batch: 128, ", ""),
        ALL
        | RUN
        | HOURLY
        | {
            "training.sequence_length": (4096.0, "4,096 tokens, within the model's context"),
            "training.global_batch": (128.0, "sequences of an optimizer step, a usual batch"),
        },
    ),
    "bare learning": (
        KINDS["learning"].replace(", global_batch: 1024", ""),
        USUAL["learning"]
        | {"training.global_batch": (1024.0, "images of an optimizer step, a usual batch")},
    ),
}
EVERY = {name: (KINDS[name], usual) for name, usual in USUAL.items()} | MORE


@pytest.mark.parametrize("case", EVERY)
def test_what_nobody_wrote_has_a_value_and_a_reason(case: str) -> None:
    text, usual = EVERY[case]
    told = {
        e.quantity.removeprefix("work."): (e.value, e.source.partition(" (")[2].removesuffix(")"))
        for e in sized(text, where()).evidence
        if e.source.startswith("default: ") and " (" in e.source
    }
    assert told == usual


def test_a_default_steps_aside_for_what_is_written() -> None:
    """Whatever stands there, and as it stands."""
    text = CHAT_8B.replace("input_tokens: 800", "input_tokens: {mean: 800, p95: 801}")
    text += "    slo: {confidence: 0.9}\n    growth: {factor: 1.5}\n"
    told = {e.quantity: (e.value, e.source) for e in sized(text, where()).evidence}
    for field, value in (
        ("load.input_tokens.p95", 801),
        ("slo.confidence", 0.9),
        ("growth.factor", 1.5),
    ):
        assert told[f"work.{field}"] == (value, f"manifest: workloads.work.{field}")


@pytest.mark.parametrize(
    ("text", "isolation"),
    [(CHAT_8B, "gpu"), (FULL_8B, "gpu"), (KINDS["notebooks"], "shared")],
)
def test_who_may_be_beside_a_workload_and_what_comes_first(text: str, isolation: str) -> None:
    asked = wanted(text)
    assert (asked.isolation, asked.tenant, asked.priority) == (isolation, "stack", "normal")
    assert (asked.preemptible, asked.cut, asked.strangers) == (False, False, False)
    own = (
        wanted(text + "    tenancy: {team: a, isolation: node, cut: true}\n")
        if (text is not FULL_8B)
        else wanted(text + "    tenancy: {team: a, isolation: node}\n")
    )
    assert (own.isolation, own.tenant, own.cut) == ("node", "a", text is not FULL_8B)
