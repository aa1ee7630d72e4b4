"""A list of requests → the packer's requests. What no GPU of the fleet serves is a problem."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from gpuplan.diagnostics import Diagnostic
from gpuplan.fleet import messages
from gpuplan.fleet.options import PartRequest, shares, whole
from gpuplan.fleet.problem import PRIORITIES, GpuModel, Option, Request
from gpuplan.fleet.requests.reading import List
from gpuplan.fleet.requests.v1 import RequestSpec
from gpuplan.sharing.modes import PROTECTED
from gpuplan.source import Origin
from gpuplan.units import format_bytes


def plain_requests(
    lists: Sequence[List], models: Mapping[str, GpuModel], largest: Mapping[str, int]
) -> tuple[list[Request], list[Diagnostic]]:
    """`models` are the fleet's GPUs, `largest` the most GPUs that one host has of each."""
    requests: list[Request] = []
    problems: list[Diagnostic] = []
    known: dict[object, tuple[Option, ...]] = {}
    for item in lists:
        for number, spec in enumerate(item.requests.requests):
            at = Origin(item.document, ("requests", number))
            key = _key(spec)
            if key not in known:
                known[key] = tuple(_options(spec, models, largest))
            if known[key]:
                requests.append(_request(item.requests.name, spec, known[key], at))
            else:
                problems += _unserved(spec, models, at)
    return requests, problems


def _key(spec: RequestSpec) -> object:
    """All that the options depend on."""
    return (
        spec.gpus,
        spec.gpu_memory,
        spec.compute,
        spec.media,
        tuple(spec.sharing or ()),
        tuple(spec.gpu or ()),
        spec.cpu_cores,
        spec.memory,
        spec.virtual_functions,
    )


def _options(
    spec: RequestSpec, models: Mapping[str, GpuModel], largest: Mapping[str, int]
) -> Iterator[Option]:
    asked = (spec.cpu_cores, spec.memory, spec.virtual_functions)
    for name in spec.gpu or models:
        if name not in models:
            continue
        if spec.gpu_memory is not None:
            wanted = PartRequest(
                memory_bytes=spec.gpu_memory,
                compute=spec.compute or 0.0,
                media=spec.media,
                ways=tuple(spec.sharing or PROTECTED),
            )
            yield from shares(models[name], wanted, *asked)
        elif spec.gpus is not None and spec.gpus <= largest[name]:
            yield whole(name, spec.gpus, *asked)


def _request(stack: str, spec: RequestSpec, options: tuple[Option, ...], at: Origin) -> Request:
    return Request(
        name=f"{stack}/{spec.name}",
        count=spec.count,
        options=options,
        tenant=spec.team or stack,
        isolation=spec.isolation,
        spread=None if spec.spread is None else f"{stack}/{spec.spread}",
        growth=grown(spec.count, spec.growth or 0.0),
        priority=PRIORITIES.index(spec.priority),
        origin=at,
    )


def grown(count: int, part: float) -> int:
    """Further items for growth by `part`; 10 % of 30 are 3, though 0.1 is more than a tenth."""
    return math.ceil(round(count * part, 6))


def _unserved(
    spec: RequestSpec, models: Mapping[str, GpuModel], at: Origin
) -> Iterator[Diagnostic]:
    in_fleet = tuple(sorted(models))
    unknown = [(n, g) for n, g in enumerate(spec.gpu or ()) if g not in models]
    for number, gpu in unknown:
        yield messages.not_in_fleet(gpu, in_fleet, at.child("gpu", number))
    if unknown and len(unknown) == len(spec.gpu or ()):
        return
    if spec.gpu_memory is None:
        wanted = f"{spec.gpus} GPUs of one host"
        yield messages.nothing_serves(spec.name, wanted, in_fleet, at.child("gpus"))
        return
    wanted = f"{format_bytes(spec.gpu_memory)} of GPU memory"
    wanted += f" with {spec.compute:.0%} of the compute units" if spec.compute else ""
    wanted += " and an engine for video" if spec.media else ""
    yield messages.nothing_serves(spec.name, wanted, in_fleet, at.child("gpu_memory"))
