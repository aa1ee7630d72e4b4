"""Identity: one network, one text, whatever it is called."""

from __future__ import annotations

import pytest

from gpuplan.models.identity import identity
from gpuplan.models.load import bundled, bundled_names


def of(name: str) -> str:
    found = bundled(name)
    assert found is not None
    return identity(found)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Llama-3.1-70B-Instruct", "Llama-3.3-70B-Instruct"),
        ("DeepSeek-R1", "DeepSeek-V3"),
        ("Mixtral-8x7B-v0.1", "Mixtral-8x7B-Instruct-v0.1"),
        ("FLUX.1-dev", "FLUX.1-schnell"),
    ],
)
def test_the_same_network_under_two_names_is_one(one: str, other: str) -> None:
    assert of(one) == of(other)


def test_models_of_other_dimensions_are_others() -> None:
    families = {"Llama-3.1-8B", "Qwen3-8B", "Qwen2.5-7B-Instruct", "gpt-oss-20b", "gpt-oss-120b"}
    assert families <= {name.partition("/")[2] for name in bundled_names()}
    assert len({of(name) for name in families}) == len(families)
