"""Ways to make up a number of GPUs: of nodes with room for some, or of groups that go together."""

from __future__ import annotations

from collections.abc import Iterator, Sequence


def divisions(rooms: Sequence[int], k: int) -> Iterator[tuple[int, ...]]:
    """k divided between places with `rooms`, on few places first. Each is found in a few steps."""
    for places in range(1, len(rooms) + 1):
        yield from _divided(rooms, k, places)


def _divided(rooms: Sequence[int], k: int, places: int) -> Iterator[tuple[int, ...]]:
    """k divided between just so many places, each of which gets one or more."""
    if not places:
        yield (0,) * len(rooms)
        return
    for first, room in enumerate(rooms):
        rest = rooms[first + 1 :]
        largest = sum(sorted(rest, reverse=True)[: places - 1])
        able = sum(1 for r in rest if r) >= places - 1
        for share in range(max(1, k - largest), min(room, k - places + 1) + 1) if able else ():
            for others in _divided(rest, k - share, places - 1):
                yield (*(0,) * first, share, *others)


def ways(rooms: Sequence[int], k: int) -> int:
    """How many `divisions` there are."""
    counts = [1, *(0,) * k]
    for room in rooms:
        counts = [sum(counts[max(0, n - room) : n + 1]) for n in range(k + 1)]
    return counts[k]


def exactly(groups: Sequence[int], k: int) -> int:
    """The union of the fewest first of `groups`, disjoint sets as bits, that have k together, or
    0."""
    sizes = [group.bit_count() for group in groups]
    fewest: list[list[int | None]] = [[0, *(None,) * k]]  # of the last groups, for each number
    for size in reversed(sizes):
        after = fewest[-1]
        with_it = [None if n < size else after[n - size] for n in range(k + 1)]
        fewest.append([_fewer(a, w) for a, w in zip(after, with_it, strict=True)])
    fewest.reverse()
    union, left = 0, k
    for place, group in enumerate(groups):
        needed = fewest[place][left]
        if not left or needed is None:
            break
        if sizes[place] <= left and fewest[place + 1][left - sizes[place]] == needed - 1:
            union |= group
            left -= sizes[place]
    return union if not left else 0


def _fewer(without: int | None, rest: int | None) -> int | None:
    """Groups for a number, without one more and with it."""
    if rest is None:
        return without
    return rest + 1 if without is None else min(without, rest + 1)
