"""Networks of the library, as what they are."""

from __future__ import annotations

from collections.abc import Callable

from gpuplan.models.load import bundled
from gpuplan.models.model import Transformer


def transformer(name: str, find: Callable[[str], object] = bundled) -> Transformer:
    network = find(name)
    assert isinstance(network, Transformer)
    return network
