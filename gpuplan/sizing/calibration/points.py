"""Stored settings, and ways to them: those of a kind, and where each lies. A plan asks for a few of
thousands, a fit for all: each is looked for when it is asked for."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import Any, TypeVar

from gpuplan.frozen import frozen

K = TypeVar("K")
Place = tuple[float, ...]  # numbers of a term, in units of its lengths
FEW = 16  # keys that are looked for one by one


@frozen
class Points:
    """Stored settings, as columns: of each its texts and numbers in the order of their names, the
    weight of its kernel and the variance of its noise."""

    names: Sequence[str]
    places: Sequence[str]
    texts: Sequence[Sequence[str]]
    numbers: Sequence[Sequence[float]]
    weights: Sequence[float]
    noises: Sequence[float]


def taker(same: Sequence[Any]) -> Callable[[Any], object]:
    """Takes some entries as one key: `same` are the names of features, or places in a row."""
    return operator.itemgetter(*same) if same else lambda _: ()


def other_axes(place: Place, axis: int) -> Place:
    return (*place[:axis], *place[axis + 1 :])


class Places(dict[int, Place]):
    """Where the points lie on some axes: each is reckoned when it is asked for, since a plan asks
    for few."""

    def __init__(self, points: Points, scales: Sequence[tuple[str, float]]) -> None:
        super().__init__()
        self._columns = [(points.places.index(name), length) for name, length in scales]
        self._rows = points.numbers

    def __missing__(self, number: int) -> Place:
        row = self._rows[number]
        place = self[number] = tuple([row[n] / length for n, length in self._columns])
        return place


class Groups:
    """The numbers of the kinds that have a key; none has None. A plan asks for a few of a thousand
    keys, a fit for all: each is looked for when it is asked for, until an index is worth its
    time."""

    def __init__(self, column: Sequence[object]) -> None:
        self._column = column
        self._places: dict[object, list[int]] = {}
        self._whole = False

    def __getitem__(self, key: object) -> list[int]:
        places = self._places.get(key)
        if places is None and key is not None and not self._whole:
            if len(self._places) < FEW:
                places = [i for i, other in enumerate(self._column) if other == key]
                self._places[key] = places
            else:
                self._places, self._whole = indexed(self._column), True
                places = self._places.get(key)
        return places or []


class Members(dict[object, list[int]]):
    """The numbers of the points whose kind has a key, in their order; `known` gives the key, or
    None for one that no kinds share."""

    def __init__(
        self,
        kinds: Groups,
        points: Sequence[Sequence[int]],
        known: Callable[[object], object] = lambda key: key,
    ) -> None:
        super().__init__()
        self._of_key, self._points, self._known = kinds, points, known

    def kinds(self, key: object) -> list[int]:
        """The kinds that have the key."""
        return self._of_key[self._known(key)]

    def __missing__(self, key: object) -> list[int]:
        kinds = (self._points[kind] for kind in self.kinds(key))
        members = self[key] = sorted(chain.from_iterable(kinds))
        return members


def indexed(column: Iterable[K]) -> dict[K, list[int]]:
    groups: dict[K, list[int]] = {}
    for place, key in enumerate(column):
        groups.setdefault(key, []).append(place)
    return groups
