"""Networks of MLPerf Training by the names of its results."""

from __future__ import annotations

from functools import cache

from gpuplan.accuracy.points.known import find_model
from gpuplan.models.model import Model

# What a result's name begins with, and the name of a network of the same dimensions.
KNOWN = {
    "bert-large": "bert-large",
    "gpt3-175b": "gpt3-175b",
    "flux.1": "flux.1-dev",
    "stable-diffusion-v2": "stable-diffusion-2-1",
}


@cache
def benchmark_model(name: str) -> Model | None:
    """A network of a benchmark, as results name it."""
    known = next((known for start, known in KNOWN.items() if name.startswith(start)), None)
    return find_model(known, "") if known else None
