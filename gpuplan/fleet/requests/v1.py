"""The list of requests, version 1: what plain workloads want, without a model to size."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from gpuplan.manifest.base import Count, Document, GpusOfNode, Name, Text
from gpuplan.manifest.quantities import Bytes, Share
from gpuplan.plan.isolation import Neighbours
from gpuplan.sharing.modes import Way

API_VERSION = "gpuplan.dev/requests/v1"

RequestName = Annotated[
    str,
    Field(
        pattern=r"^[A-Za-z0-9]([A-Za-z0-9._/-]{0,118}[A-Za-z0-9])?$",
        description="Letters, digits, '-', '.', '_' and '/'.",
    ),
]
Amount = Annotated[int, Field(ge=0, le=65535)]


class RequestSpec(Document):
    """`count` equal items, each on `gpus` whole GPUs of one host or on a part of one GPU with
    `gpu_memory` and at least `compute` of its compute units. Cores and memory are of one item."""

    name: RequestName
    count: Count = 1
    gpus: GpusOfNode | None = Field(None, description="Whole GPUs of one host.")
    gpu_memory: Bytes | None = Field(None, description="Memory of a part of one GPU.")
    compute: Annotated[Share, Field(gt=0, le=1)] | None = Field(
        None, description="Part of the GPU's compute units, beside 'gpu_memory'."
    )
    media: bool = Field(default=False, description="The part must have an engine for video.")
    sharing: Annotated[list[Way], Field(min_length=1)] | None = Field(
        None,
        description="How the GPU may be shared; otherwise as MIG instances or vGPUs, where its "
        "hosts can. Time slices have no memory of their own: 'isolation' must be gpu or node.",
    )
    gpu: Annotated[list[Text], Field(min_length=1)] | None = Field(
        None, description="GPU types that will do; otherwise all of the fleet."
    )
    cpu_cores: Amount = Field(description="Physical cores.")
    memory: Bytes = Field(description="Host memory.")
    virtual_functions: Amount = Field(0, description="Virtual functions of network cards.")
    team: Name | None = None
    isolation: Neighbours = Field(
        "shared", description="What no other team may be on: nothing, the GPU, the host."
    )
    spread: Text | None = Field(
        None, description="Items of all requests with this word stand on different hosts."
    )
    growth: Annotated[Share, Field(gt=0, le=100)] | None = Field(
        None, description="Further items that room is kept for, as a part of 'count'."
    )
    priority: Literal["low", "normal", "high", "critical"] = Field(
        "normal", description="Who has a place where not all find one."
    )


class Requests(Document):
    """Requests of one list are told apart by name; `name` stands before it."""

    api_version: Literal["gpuplan.dev/requests/v1"] = Field(alias="apiVersion")
    name: Name
    requests: Annotated[list[RequestSpec], Field(min_length=1)]
