"""What is written to be exactly what is needed is enough, and a byte or a token less is told: of
every field that says how much, and of every kind that reads it."""

from __future__ import annotations

from functools import cache

import pytest

from gpuplan.sizing.candidates.sized import Sized
from tests.sizing.test_interruptions import figures
from tests.sizing.test_kinds_told import KINDS, POOLS
from tests.support.sizing_cases import (
    LORA_70B,
    READER,
    site,
    size,
    sized,
    wanted,
)

WHERE = site("h100-sxm-80gb")
TEXTS = KINDS | {"pools": POOLS}
RUNS = ("run", "run over nodes")
LEARNS = ("learning", "learning over nodes", "learning on one")
DOWNLOADED = [kind for kind in TEXTS if kind not in (*RUNS, *LEARNS, "notebooks")]
# The field, the figure that it reaches, and the kinds that have both.
ENOUGH = {
    "model_storage": (("checkpoint_bytes", DOWNLOADED), ("model_bytes", (*RUNS, *LEARNS))),
    "checkpoint_storage": (("checkpoints_kept_bytes", RUNS), ("checkpoint_bytes", LEARNS)),
    "dataset_storage": (("dataset_file_bytes", LEARNS),),
}
CASES = [
    (field, figure, kind)
    for field, rows in ENOUGH.items()
    for figure, kinds in rows
    for kind in kinds
]


@cache
def planned(kind: str) -> dict[str, float]:
    return figures(sized(TEXTS[kind], WHERE))


def told(text: str, field: str, value: float, **beside: float) -> list[str]:
    """What is said against the field where it has the value."""
    numbers = {f"overrides.{name}": number for name, number in {field: value, **beside}.items()}
    answer = size(wanted(text, numbers=numbers), WHERE)
    found = answer.diagnostics if isinstance(answer, Sized) else answer
    return [d.message for d in found if f"'overrides.{field}'" in d.message]


@pytest.mark.parametrize(("field", "figure", "kind"), CASES)
def test_a_volume_of_what_must_lie_there_is_enough(field: str, figure: str, kind: str) -> None:
    need = planned(kind)[figure]
    whole = -(-need // 1)
    assert told(TEXTS[kind], field, whole) == []
    (said,) = told(TEXTS[kind], field, whole - 1)
    assert "cannot work" in said or "less than it should be" in said


@pytest.mark.parametrize("kind", RUNS)
def test_a_volume_of_one_checkpoint_works_and_is_small(kind: str) -> None:
    """Two are kept while the next is written; a volume that holds none at all is refused alone."""
    one = planned(kind)["checkpoint_bytes"]
    (small,) = told(TEXTS[kind], "checkpoint_storage", one)
    assert "less than it should be" in small
    (none,) = told(TEXTS[kind], "checkpoint_storage", one - 1)
    assert "cannot work" in none


def test_a_volume_for_data_wants_to_know_how_much_lies_there() -> None:
    said = told(TEXTS["run"], "dataset_storage", 9e12)
    assert len(said) == 1
    assert "'dataset.size' says what lies there, and is not written" in said[0]
    assert told(LORA_70B, "dataset_storage", 9e12) == []


@pytest.mark.parametrize("kind", TEXTS)
def test_shared_memory_may_be_all_memory_of_a_pod(kind: str) -> None:
    memory = planned(kind)["host_memory_bytes"]
    assert told(TEXTS[kind], "shared_memory", memory) == []
    (said,) = told(TEXTS[kind], "shared_memory", memory + 1)
    assert "it is part of the memory of a pod" in said


@pytest.mark.parametrize("kind", ["chat", "batch"])
def test_a_step_has_a_token_for_each_request_that_runs(kind: str) -> None:
    for tokens, refused in ((64, 0), (63, 1)):
        said = told(TEXTS[kind], "max_num_batched_tokens", tokens, max_num_seqs=64)
        assert len(said) == refused


def test_a_reader_takes_its_longest_text_in_one_step() -> None:
    for tokens, refused in ((3000, 0), (2999, 1)):
        said = told(READER, "max_num_batched_tokens", tokens, max_model_len=3000)
        assert len(said) == refused
