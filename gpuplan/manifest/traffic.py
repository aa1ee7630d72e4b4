"""What arrives at a service, what it must keep, and how it drafts."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema

from gpuplan.manifest.base import Count, Document, Positive, Shorthand, Text
from gpuplan.manifest.quantities import Bytes, Seconds, SecondsOrZero, Share


class Distribution(Document):
    """A mean and a 95th percentile, in tokens. Without `p95` the lengths are taken as constant."""

    mean: Positive
    p95: Positive | None = None


class Rate(Document):
    """Requests per second: the mean over the busy hours and the peak that must be served."""

    mean: Positive
    peak: Positive | None = None


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
    """Image sizes of an image service, and its denoising steps."""

    mean: ImageSize
    p95: ImageSize | None = None
    steps: Count


class Concurrency(Document):
    """Users in a closed loop: each asks again `think_time` after its answer is there."""

    users: Count
    think_time: SecondsOrZero | None = None


class Load(Document):
    """What arrives: an open loop of `requests_per_second`, or a closed one of `concurrency`. `idle`
    is the part of each day without requests."""

    requests_per_second: Annotated[Rate, Shorthand("mean", "number")] | None = None
    input_tokens: Annotated[Distribution, Shorthand("mean", "number")] | None = None
    output_tokens: Annotated[Distribution, Shorthand("mean", "number")] | None = None
    images: Annotated[Images, Shorthand("mean", "string")] | None = None
    requests: Count | None = Field(None, description="All requests of a batch workload.")
    concurrency: Annotated[Concurrency, Shorthand("users", "number")] | None = None
    burst: Annotated[float, Field(ge=1, le=100)] | None = Field(
        None,
        description="Requests of the busiest second of a minute over the mean of that minute. "
        "Without it arrivals are taken as Poisson.",
    )
    prefix_cache: Annotated[Share, Field(ge=0, le=0.99)] | None = Field(
        None,
        description="Share of the input tokens that the engine's prefix cache holds already.",
    )
    idle: SecondsOrZero | None = None


class Slo(Document):
    """Objectives. `confidence` is the probability with which a latency objective must be met
    according to the prediction's interval."""

    time_to_first_token: Seconds | None = Field(None, description="95th percentile.")
    time_per_output_token: Seconds | None = Field(None, description="Mean.")
    request_latency: Seconds | None = Field(None, description="Whole request, mean.")
    tokens_per_second: Positive | None = Field(None, description="Output or training tokens.")
    finish_within: Seconds | None = None
    confidence: Annotated[float, Field(ge=0.5, le=0.99)] | None = None


class Speculative(Document):
    """Speculative decoding as it was measured for this model and its requests. Without `method` it
    is sized, and the engine is told by `command`."""

    method: Literal["mtp", "eagle", "eagle3", "draft_model", "ngram"] | None = None
    model: Text | None = Field(
        None, description="The draft model's name, of the methods eagle, eagle3 and draft_model."
    )
    accepted_tokens: Annotated[float, Field(ge=1, le=100)] = Field(
        description="Mean tokens that a verification step yields: accepted drafts and one more."
    )
    draft_tokens: Annotated[int, Field(ge=1, le=64)] = Field(
        description="Tokens that are drafted for each step."
    )
    draft_cost: Annotated[Share, Field(ge=0, le=10)] = Field(
        description="Time of drafting them over the time of the step that verifies them."
    )
    draft_memory: Bytes | None = Field(
        None, description="Weights and cache of a draft model, on each GPU."
    )
