"""Records: the dataclasses that plans are made of."""

from __future__ import annotations

import copy
import pickle
from dataclasses import FrozenInstanceError, field, replace

import pytest

from gpuplan.frozen import frozen, record
from gpuplan.plan.records import Estimate, Input, Override, Shortfall
from gpuplan.source import Origin

FOUND = Input(name="layers", value=80.0, unit="1", source="model: x")


def test_a_record_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError, match="cannot be changed"):
        FOUND.value = 2.0  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        del FOUND.value
    assert FOUND.value == 80.0


def test_equal_records_are_equal_and_hash_alike() -> None:
    same = Input(source="model: x", unit="1", value=80.0, name="layers")
    assert (same, hash(same)) == (FOUND, hash(FOUND))
    assert replace(FOUND, value=2.0) != FOUND
    assert FOUND != ("layers", 80.0, "1", "model: x")


def test_where_a_record_comes_from_makes_no_difference() -> None:
    here, there = (
        Override(quantity="q", derived=1.0, value=2.0, unit="1", origin=Origin(d, ()))
        for d in ("a.yaml", "b.yaml")
    )
    assert (here, hash(here)) == (there, hash(there))


def test_fields_have_to_be_named_given_and_known() -> None:
    with pytest.raises(TypeError, match="Estimate needs 'high'"):
        Estimate(value=1.0, low=1.0, basis="derived")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="Shortfall has no limit"):
        Shortfall(resource="x", requested=1.0, used=0.0, capacity=1.0, unit="1", limit=2)  # type: ignore[call-arg]
    with pytest.raises(TypeError):
        Input("layers", 80.0, "1", "model: x")  # type: ignore[misc]


def test_copies_are_equal_and_shown_alike() -> None:
    for twin in (copy.copy(FOUND), copy.deepcopy(FOUND), pickle.loads(pickle.dumps(FOUND))):
        assert twin == FOUND
    assert repr(FOUND) == "Input(name='layers', value=80.0, unit='1', source='model: x')"


@record
class Disk:
    name: str
    gigabytes: float = 10.0
    labels: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        if self.gigabytes <= 0:
            raise ValueError(f"{self.name} holds nothing")


@frozen
class Slot:
    number: int
    disk: Disk | None = None


@frozen
class Bay(Slot):
    height: int = 1


def test_values_are_given_by_name_or_by_place() -> None:
    assert Slot(1, Disk(name="a")) == Slot(number=1, disk=Disk(name="a"))
    bay = Bay(2, None, 3)
    assert (bay.number, bay.disk, bay.height) == (2, None, 3)
    assert Bay(2, height=3) == bay != Bay(2)
    assert Slot(1) != Bay(1)
    with pytest.raises(TypeError, match="Slot has 2 fields, not 3"):
        Slot(1, None, 2)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match="number"):
        Slot(1, number=2)  # type: ignore[misc]


def test_each_has_defaults_of_its_own() -> None:
    one, other = Disk(name="a"), Disk(name="a")
    assert (one.gigabytes, one.labels) == (10.0, [])
    assert one.labels is not other.labels


def test_it_is_checked_when_it_is_made_and_when_it_is_replaced() -> None:
    for make in (
        lambda: Disk(name="a", gigabytes=0.0),
        lambda: replace(Disk(name="a"), gigabytes=-1),
    ):
        with pytest.raises(ValueError, match="a holds nothing"):
            make()
