"""The legal ways to share one GPU: states, transitions, and layouts with no room for more."""

from __future__ import annotations

from gpuplan.fleet.problem import Mode, Part

MOST_LAYOUTS = 400  # beyond it a mode is modelled by its units alone
MOST_STEPS = 60_000

State = tuple[int, tuple[int, ...]]  # units taken, as bits; parts of each kind
Slot = tuple[int, int]  # part, start


class Geometry:
    """A mode of a GPU, over the parts that somebody may use. State 0 is the empty GPU."""

    def __init__(self, gpu: str, mode: Mode, parts: tuple[Part, ...]) -> None:
        self.gpu, self.mode, self.parts = gpu, mode, parts
        self.states: list[State] = [(0, (0,) * len(parts))]
        self._ids: dict[State, int] = {self.states[0]: 0}
        self._next: dict[tuple[int, int], tuple[int, int] | None] = {}
        self._exact: dict[tuple[int, int, int], int | None] = {}
        self._dropped: dict[tuple[int, int, int], int] = {}
        self._values: dict[int, float] = {}
        self.fractions = tuple(self._fraction(part) for part in parts)
        self.layouts = self._layouts()

    def _fraction(self, part: Part) -> float:
        if self.mode.uniform:
            return 1 / part.maximum
        compute = part.compute / self.mode.compute_units if self.mode.compute_units else 0.0
        return max(part.size / self.mode.units, compute)

    def add(self, state: int, part: int) -> tuple[int, int] | None:
        """The state after one more `part`, and its start (-1 in uniform modes), or None. Of the
        legal starts the one that leaves most room for others."""
        key = (state, part)
        if key not in self._next:
            self._next[key] = self._add(state, part)
        return self._next[key]

    def _add(self, state: int, part: int) -> tuple[int, int] | None:
        found = [(self._id(after), start) for after, start in self._successors(state, part)]
        return max(found, key=lambda f: (self.value(f[0]), f[1]), default=None)

    def _successors(self, state: int, part: int) -> list[tuple[State, int]]:
        mask, counts = self.states[state]
        more = (*counts[:part], counts[part] + 1, *counts[part + 1 :])
        if not self.suits(more):
            return []
        if self.mode.uniform:
            return [((0, more), -1)]
        bits = (1 << self.parts[part].size) - 1
        return [
            ((mask | bits << start, more), start)
            for start in self.parts[part].starts
            if not mask & bits << start and start + self.parts[part].size <= self.mode.units
        ]

    def at(self, state: int, part: int, start: int) -> int | None:
        """The state after `part` at just this start, or None where that is not legal."""
        key = (state, part, start)
        if key not in self._exact:
            fit = (after for after, where in self._successors(state, part) if where == start)
            after = next(fit, None)
            self._exact[key] = None if after is None else self._id(after)
        return self._exact[key]

    def drop(self, state: int, part: int, start: int) -> int:
        key = (state, part, start)
        if key not in self._dropped:
            self._dropped[key] = self._drop(state, part, start)
        return self._dropped[key]

    def _drop(self, state: int, part: int, start: int) -> int:
        mask, counts = self.states[state]
        fewer = (*counts[:part], counts[part] - 1, *counts[part + 1 :])
        bits = 0 if self.mode.uniform else ((1 << self.parts[part].size) - 1) << start
        return self._id((mask & ~bits, fewer))

    def _id(self, state: State) -> int:
        known = self._ids.get(state)
        if known is None:
            known = self._ids[state] = len(self.states)
            self.states.append(state)
        return known

    def suits(self, counts: tuple[int, ...]) -> bool:
        """Numbers, compute units and media engines; not yet where the parts stand."""
        if any(n > part.maximum for n, part in zip(counts, self.parts, strict=True)):
            return False
        if self.mode.uniform:
            return sum(n > 0 for n in counts) <= 1
        used = sum(n * part.compute for n, part in zip(counts, self.parts, strict=True))
        return used <= self.mode.compute_units and self._media(counts)

    def _media(self, counts: tuple[int, ...]) -> bool:
        """One `+me` on a GPU; beside `+me.all`, which takes all engines, only `-me`."""
        there = [(part.media, n) for n, part in zip(counts, self.parts, strict=True) if n]
        extended = sum(n for media, n in there if media.startswith("+me"))
        if any(media == "+me.all" for media, _ in there):
            return extended == 1 and all(media in {"+me.all", "-me"} for media, _ in there)
        return extended <= 1

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

    def _further(self, state: int, part: int) -> int:
        mask, counts = self.states[state]
        size, number = self.parts[part].size, 0
        starts = (0,) * self.parts[part].maximum if self.mode.uniform else self.parts[part].starts
        bits = 0 if self.mode.uniform else (1 << size) - 1
        for start in starts:
            more = (*counts[:part], counts[part] + number + 1, *counts[part + 1 :])
            if not mask & bits << start and self.suits(more):
                number += 1
                mask |= bits << start
        return number

    def _layouts(self) -> tuple[tuple[Slot, ...], ...] | None:
        """Layouts of which none holds as many of each part as another; None if there are too many
        to list."""
        found = self._uniform() if self.mode.uniform else self._walk()
        if found is None:
            return None
        kept: list[tuple[int, ...]] = []
        for counts in sorted(found, key=lambda c: (-sum(c), c)):
            if not any(all(a >= b for a, b in zip(k, counts, strict=True)) for k in kept):
                kept.append(counts)
                if len(kept) > MOST_LAYOUTS:
                    return None
        return tuple(found[counts] for counts in sorted(kept) if any(counts))

    def _uniform(self) -> dict[tuple[int, ...], tuple[Slot, ...]]:
        width = len(self.parts)
        return {
            tuple(part.maximum if i == p else 0 for i in range(width)): ((p, -1),) * part.maximum
            for p, part in enumerate(self.parts)
        }

    def _walk(self) -> dict[tuple[int, ...], tuple[Slot, ...]] | None:
        """Every reachable number of parts, from the first unit to the last."""
        empty = (0,) * len(self.parts)
        fronts: list[dict[tuple[int, ...], tuple[Slot, ...]]] = [
            {} for _ in range(self.mode.units + 1)
        ]
        fronts[0][empty] = ()
        steps = 0
        for unit in range(self.mode.units):
            for counts, slots in fronts[unit].items():
                fronts[unit + 1].setdefault(counts, slots)
                steps += 1
                for after, slot, end in self._placed_at(unit, counts):
                    fronts[end].setdefault(after, (*slots, slot))
            if steps > MOST_STEPS:
                return None
        return fronts[-1]

    def _placed_at(
        self, unit: int, counts: tuple[int, ...]
    ) -> list[tuple[tuple[int, ...], Slot, int]]:
        found = []
        for p, part in enumerate(self.parts):
            if unit not in part.starts or unit + part.size > self.mode.units:
                continue
            after = (*counts[:p], counts[p] + 1, *counts[p + 1 :])
            if self.suits(after):
                found.append((after, (p, unit), unit + part.size))
        return found
