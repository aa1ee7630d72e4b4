"""What measurements call engines, precisions and models."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial

from gpuplan.accuracy.points.names import Words, readings, sizes, words
from gpuplan.models.further import aliases, further, further_names
from gpuplan.models.identity import identity
from gpuplan.models.load import bundled, bundled_names
from gpuplan.models.model import Model

ENGINES = {"trtllm": "tensorrt-llm", "vllm": "vllm", "sglang": "sglang"}
PRECISIONS = {
    "bf16": "bf16",
    "fp16": "bf16",
    "fp8": "fp8",
    "fp4": "nvfp4",
    "nvfp4": "nvfp4",
    "int4": "int4",
    "mxfp4": "mxfp4",
}
SDXL = "stabilityai/stable-diffusion-xl-base-1.0"


@cache
def find_model(name: str, identifier: str) -> Model | None:
    """The model of a measurement by what it is called there, else by its hub `identifier`; None
    where its dimensions are not known."""
    for text in (name, identifier):
        for reading in readings(text):
            if reading in _known():
                return _known()[reading]()
    return _unfinished(words(name)) or _unfinished(words(identifier))


@cache
def _known() -> dict[Words, Callable[[], Model]]:
    """All models by the words of their names: those bundled first."""
    table: dict[Words, Callable[[], Model]] = {
        words(name): partial(further, short) for name, short in further_names().items()
    }
    bundles = aliases() | {name: name for name in reversed(bundled_names())}
    return table | {words(name): partial(_bundled, hub) for name, hub in bundles.items()}


def _bundled(name: str) -> Model:
    model = bundled(name)
    assert model is not None
    return model


def _unfinished(start: Words) -> Model | None:
    """The one network of which the name lacks sizes alone: qwen 3 235b, llama 4 maverick."""
    if len(start) < 2:
        return None
    after = len(start)
    names = [name for name in _known() if name[:after] == start and sizes(name[after:])]
    networks = {identity(model): model for model in (_known()[name]() for name in names)}
    return next(iter(networks.values())) if len(networks) == 1 else None
