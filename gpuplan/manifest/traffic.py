"""What arrives at a service, what it must keep, and how it drafts."""

import re
from typing import Annotated, Literal, Self

from pydantic import BeforeValidator, Field, WithJsonSchema, model_validator

from gpuplan.manifest.base import (
    Count,
    Document,
    ModelName,
    Positive,
    Shorthand,
    Text,
    optional,
    required,
)
from gpuplan.manifest.quantities import Bytes, Seconds, SecondsOrZero, Share
from gpuplan.plan.times import PLAIN, STATISTICS


class Distribution(Document):
    """A mean and a 95th percentile, in tokens. Without `p95` the lengths are taken as constant."""

    mean: Positive = required("The mean.", 1200)
    p95: Positive | None = optional("The 95th percentile.", 4000)


class Rate(Document):
    """Requests per second: the mean over the busy hours and the peak that must be served."""

    mean: Positive = required("Over the busy hours.", 3)
    peak: Positive | None = optional("What must be served. Without it the mean.", 8)


_SIZE = re.compile(r"([1-9][0-9]{0,4})\s*[x×]\s*([1-9][0-9]{0,4})")


def _parse_size(value: object) -> object:
    match = _SIZE.fullmatch(value) if isinstance(value, str) else None
    if not match:
        raise ValueError("an image size is written WIDTHxHEIGHT, for example '1024x1024'")
    return int(match[1]), int(match[2])


ImageSize = Annotated[
    tuple[int, int],
    BeforeValidator(_parse_size),
    WithJsonSchema({"type": "string", "pattern": _SIZE.pattern, "examples": ["1024x1024"]}),
]


class Images(Document):
    """Sizes of the images that a service makes, and its denoising steps; or of those that a model
    reads as they arrive, and how many a request brings."""

    mean: ImageSize = required("Width and height in pixels, of the mean area.", "1024x1024")
    p95: ImageSize | None = optional(
        "Width and height of the 95th percentile. Without it every image is the mean.", "1536x1536"
    )
    steps: Count | None = optional("Denoising steps of an image that is made.", 28)
    count: Count | None = optional(
        "Images of a request to a model that reads them. Without it one.", 4
    )


class Videos(Document):
    """Sizes of the videos that a service makes, and what one takes."""

    mean: ImageSize = required("Width and height in pixels, of the mean area.", "1280x720")
    p95: ImageSize | None = optional(
        "Width and height of the 95th percentile. Without it every video is the mean.", "1280x720"
    )
    frames: Count = required("Frames of a video.", 81)
    steps: Count = required("Denoising steps of a video.", 50)
    memory: Bytes = required(
        "GPU memory that one of the largest takes at its peak above the weights, which no source "
        "states: torch.cuda.max_memory_allocated() without those of the modules.",
        "20 GiB",
    )


class Concurrency(Document):
    """Users in a closed loop: each asks again `think_time` after its answer is there."""

    users: Count = required("Users at once.", 200)
    think_time: SecondsOrZero | None = optional(
        "Time between an answer and the next question. Without it none.", "20 s"
    )


class Load(Document):
    """What arrives: an open loop of `requests_per_second`, or a closed one of `concurrency`."""

    requests_per_second: Annotated[Rate, Shorthand("mean", "number")] | None = optional(
        "Requests of a service that arrive by themselves.", {"mean": 3, "peak": 8}, 3
    )
    input_tokens: Annotated[Distribution, Shorthand("mean", "number")] | None = optional(
        "Tokens that a request brings.", {"mean": 1200, "p95": 4000}, 1200
    )
    output_tokens: Annotated[Distribution, Shorthand("mean", "number")] | None = optional(
        "Tokens that an answer has.", {"mean": 300, "p95": 800}, 300
    )
    texts: Count | None = optional(
        "Texts of a request to an embedding model, or documents that a reranker holds against a "
        "query; `input_tokens` are of one of them, with the query. Without it one.",
        50,
    )
    audio: Seconds | None = optional(
        "Audio of a request, on average; all are taken as of that length. It is written down in "
        "windows of the model's length; `output_tokens` are of one of them.",
        "4 min",
    )
    images: Annotated[Images, Shorthand("mean", "string")] | None = optional(
        "Images that an image service makes, or that a model reads.",
        {"mean": "1024x1024", "steps": 28},
        "1280x720",
    )
    videos: Videos | None = optional(
        "Videos that a service makes.",
        {"mean": "832x480", "frames": 81, "steps": 50, "memory": "20 GiB"},
    )
    requests: Count | None = optional("All requests of a batch workload.", 100000)
    concurrency: Annotated[Concurrency, Shorthand("users", "number")] | None = optional(
        "Users who wait for their answers, in place of a rate.", {"users": 200}, 200
    )
    burst: Annotated[float, Field(ge=1, le=100)] | None = optional(
        "Requests of the busiest second of a minute over the mean of that minute. "
        "Without it arrivals are taken as Poisson.",
        3,
    )
    prefix_cache: Annotated[Share, Field(ge=0, le=0.99)] | None = optional(
        "Share of the input tokens that the engine's prefix cache holds already.", "60 %", 0.6
    )
    idle: SecondsOrZero | None = optional("The part of each day without requests.", "8 h")


class Objective(Document):
    """Limits of a time over all requests: of its mean, and at percentiles. All that are written
    must be met, so the strictest decides."""

    mean: Seconds | None = optional("Of the mean.", "800 ms")
    p50: Seconds | None = optional("Of the 50th percentile, the median.", "600 ms")
    p95: Seconds | None = optional("Of the 95th percentile.", "1 s")
    p99: Seconds | None = optional("Of the 99th percentile.", "2 s")

    @model_validator(mode="after")
    def _limits(self) -> Self:
        if not any(getattr(self, statistic) for statistic in STATISTICS):
            raise ValueError(f"no limit is written: one of {', '.join(STATISTICS)}")
        return self


FIRST, TOKEN, LATENCY = "time_to_first_token", "time_per_output_token", "request_latency"


class Slo(Document):
    """Objectives. A bare duration is the limit of one statistic over requests; a mapping names
    those that are meant. `confidence` is the probability with which a latency objective must be met
    according to the prediction's interval."""

    time_to_first_token: Annotated[Objective, Shorthand(PLAIN[FIRST], "duration")] | None = (
        optional(
            "Time to first token (TTFT). A bare duration is its 95th percentile.",
            "1 s",
            {"p50": "400 ms", "p99": "2 s"},
        )
    )
    time_per_output_token: Annotated[Objective, Shorthand(PLAIN[TOKEN], "duration")] | None = (
        optional(
            "Time per output token (TPOT; also inter-token latency). A bare duration is its mean "
            "over all tokens; percentiles are of the requests' own means.",
            "40 ms",
            {"p95": "60 ms"},
        )
    )
    request_latency: Annotated[Objective, Shorthand(PLAIN[LATENCY], "duration")] | None = optional(
        "Latency of a whole request. A bare duration is its mean.", "15 s", {"p95": "30 s"}
    )
    tokens_per_second: Positive | None = optional(
        "Output tokens, or tokens trained on, of the whole workload.", 2000
    )
    finish_within: Seconds | None = optional("How long a batch or a run may take.", "2 d")
    confidence: Annotated[float, Field(ge=0.5, le=0.99)] | None = optional(
        "The probability with which each objective must be met, by the prediction's interval. "
        "Without it 0.8.",
        0.9,
    )


class Speculative(Document):
    """Speculative decoding as it was measured for this model and its requests. Without `method` it
    is sized, and the engine is told by `command`."""

    method: Literal["mtp", "eagle", "eagle3", "draft_model", "ngram"] | None = optional(
        "How tokens are drafted.", "ngram"
    )
    model: ModelName | None = optional(
        "The draft model's name, of the methods eagle, eagle3 and draft_model.",
        "meta-llama/Llama-3.2-1B-Instruct",
    )
    revision: Text | None = optional(
        "Commit of the draft model's weights.", "0e9e39f249a16976918f6564b8830bc894c89659"
    )
    accepted_tokens: Annotated[float, Field(ge=1, le=100)] = required(
        "Mean tokens that a verification step yields: accepted drafts and one more.", 2.1
    )
    draft_tokens: Annotated[int, Field(ge=1, le=64)] = required(
        "Tokens that are drafted for each step.", 4
    )
    draft_cost: Annotated[Share, Field(ge=0, le=10)] = required(
        "Time of drafting them over the time of the step that verifies them.", "10 %", 0.1
    )
    draft_memory: Bytes | None = optional(
        "Weights and cache of a draft model, on each GPU.", "3 GiB"
    )
