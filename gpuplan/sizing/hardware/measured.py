"""Whose measurements are taken for a GPU: its own, else those of a GPU that the catalogue declares.

Nothing is taken for a GPU of which the catalogue declares nothing: plans leave it out and say so.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from itertools import takewhile
from typing import Literal

from gpuplan.catalog.model import Gpu, StandIn
from gpuplan.plan.model import Lack, Shortfall

Measurements = Literal["kernels", "training", "images", "vision"]
NAMES: dict[Measurements, str] = {
    "kernels": "kernels",
    "training": "training runs",
    "images": "image pipelines",
    "vision": "vision networks",
}
REMEDY = "declare the GPU that stands for it as `measured_as` in its catalogue file"


class NotMeasured(ValueError):
    """A prediction of a measured point that nothing measured stands behind."""

    def __init__(self, gpu: Gpu, subject: Measurements) -> None:
        super().__init__(f"no measured {NAMES[subject]} stand for {gpu.identifier}: {REMEDY}")


def cards(gpu: Gpu, subject: Measurements) -> tuple[Gpu | StandIn, ...]:
    """The GPU, then those whose measurements of the subject are taken for it, the nearest first."""
    return (gpu, *takewhile(lambda stand_in: subject in stand_in.of, gpu.measured_as))


def taken(gpu: Gpu, subject: Measurements, known: Container[str]) -> str | None:
    """The first of them that is `known`, by identifier."""
    known_cards = (c for c in cards(gpu, subject) if c.identifier in known)
    return next((card.identifier for card in known_cards), None)


def generation(gpu: Gpu, subject: Measurements, known: Container[str]) -> Gpu | StandIn | None:
    """The first of them whose architecture is `known`."""
    return next((card for card in cards(gpu, subject) if card.architecture in known), None)


def fitted(gpu: Gpu, subject: Measurements, constants: Mapping[str, float]) -> float | None:
    """What is fitted of the first of them, by identifier or by architecture."""
    chain = cards(gpu, subject)
    keys = (key for card in chain for key in (card.identifier, card.architecture))
    return next((constants[key] for key in keys if key in constants), None)


def gate_of(thing: str, lack: Lack) -> tuple[Shortfall, ...]:
    """The gate of a GPU that has none of a thing, or of which nothing is known or stated of it."""
    return (Shortfall(resource=thing, requested=1.0, used=0.0, capacity=0.0, unit="1", lack=lack),)


def lacking(subject: Measurements) -> tuple[Shortfall, ...]:
    """The gate of a GPU for which no measurements of the subject stand."""
    return gate_of(NAMES[subject], "unmeasured")
