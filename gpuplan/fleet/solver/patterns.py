"""The legal ways to share one GPU: states, transitions, and layouts with no room for more."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.fleet.solver.effort import MOST_LAYOUTS
from gpuplan.sharing.geometry import Counts, free_starts, reachable, together, units
from gpuplan.sharing.modes import Mode, Part

SlotAt = tuple[int, int | None]  # the part's place in the list, and its first unit
Filling = tuple[int, Counts]  # units taken, as bits; parts of each kind


class Geometry:
    """A mode of a GPU, over the parts that somebody may use. State 0 is the empty GPU."""

    def __init__(self, gpu: str, mode: Mode, parts: tuple[Part, ...]) -> None:
        self.gpu, self.mode, self.parts = gpu, mode, parts
        self.states: list[Filling] = [(0, (0,) * len(parts))]
        self._ids: dict[Filling, int] = {self.states[0]: 0}
        self._next: dict[tuple[int, int], tuple[int, int | None] | None] = {}
        self._exact: dict[tuple[int, int, int | None], int | None] = {}
        self._dropped: dict[tuple[int, int, int | None], int] = {}
        self._values: dict[int, float] = {}
        self.fractions = tuple(self._fraction(part) for part in parts)
        self.layouts = self._layouts()

    def _fraction(self, part: Part) -> float:
        if self.mode.uniform:
            return 1 / part.maximum
        compute = part.compute / self.mode.compute_units if self.mode.compute_units else 0.0
        return max(part.size / self.mode.units, compute)

    def add(self, state: int, part: int) -> tuple[int, int | None] | None:
        """The state after one more `part`, and its start (None in uniform modes), or None. Of the
        legal starts the one that leaves most room for others."""
        key = (state, part)
        if key not in self._next:
            self._next[key] = self._add(state, part)
        return self._next[key]

    def _add(self, state: int, part: int) -> tuple[int, int | None] | None:
        reached = [(self._id(after), start) for after, start in self._successors(state, part)]
        return max(reached, key=lambda pair: (self.value(pair[0]), pair[1]), default=None)

    def _successors(self, state: int, part: int) -> Iterator[tuple[Filling, int | None]]:
        taken, counts = self.states[state]
        more = _with(counts, part, 1)
        if not together(self.parts, more, uniform=self.mode.uniform):
            return
        if self.mode.uniform:
            yield (0, more), None
            return
        for start in free_starts(self.parts[part], taken):
            yield (taken | units(self.parts[part], start), more), start

    def at(self, state: int, part: int, start: int | None) -> int | None:
        """The state after `part` at just this start, or None where that is not legal."""
        key = (state, part, start)
        if key not in self._exact:
            fit = (after for after, where in self._successors(state, part) if where == start)
            after = next(fit, None)
            self._exact[key] = None if after is None else self._id(after)
        return self._exact[key]

    def drop(self, state: int, part: int, start: int | None) -> int:
        key = (state, part, start)
        if key not in self._dropped:
            self._dropped[key] = self._drop(state, part, start)
        return self._dropped[key]

    def _drop(self, state: int, part: int, start: int | None) -> int:
        taken, counts = self.states[state]
        if start is not None:
            taken &= ~units(self.parts[part], start)
        return self._id((taken, _with(counts, part, -1)))

    def _id(self, state: Filling) -> int:
        known = self._ids.get(state)
        if known is None:
            known = self._ids[state] = len(self.states)
            self.states.append(state)
        return known

    def value(self, state: int) -> float:
        """What still fits, each part as if it came alone; bigger parts count more than their size,
        since room for them is rarer."""
        known = self._values.get(state)
        if known is None:
            weights = (f**1.2 for f in self.fractions)
            room = (self._further(state, p) for p in range(len(self.parts)))
            known = sum(w * n for w, n in zip(weights, room, strict=True))
            self._values[state] = known
        return known

    def _further(self, state: int, number: int) -> int:
        """How many more of a part fit, each at the first start that is free."""
        taken, counts = self.states[state]
        part, further = self.parts[number], 0
        starts = range(part.maximum) if self.mode.uniform else part.starts
        for start in starts:
            more = _with(counts, number, further + 1)
            free = self.mode.uniform or not units(part, start) & taken
            if free and together(self.parts, more, uniform=self.mode.uniform):
                further += 1
                taken |= 0 if self.mode.uniform else units(part, start)
        return further

    def _layouts(self) -> tuple[tuple[SlotAt, ...], ...] | None:
        """Layouts of which none holds as many of each part as another; None if there are too many
        to list."""
        listed = self._uniform() if self.mode.uniform else reachable(self.parts, self.mode.units)
        if listed is None:
            return None
        kept: list[Counts] = []
        for counts in sorted(listed, key=lambda c: (-sum(c), c)):
            if not any(all(a >= b for a, b in zip(k, counts, strict=True)) for k in kept):
                kept.append(counts)
                if len(kept) > MOST_LAYOUTS:
                    return None
        return tuple(listed[counts] for counts in sorted(kept) if any(counts))

    def _uniform(self) -> dict[Counts, tuple[SlotAt, ...]]:
        none = (0,) * len(self.parts)
        return {
            _with(none, number, part.maximum): ((number, None),) * part.maximum
            for number, part in enumerate(self.parts)
        }


def _with(counts: Counts, part: int, more: int) -> Counts:
    return (*counts[:part], counts[part] + more, *counts[part + 1 :])
