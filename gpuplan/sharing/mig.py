"""Where MIG instances go on one GPU.

A layout is legal iff every instance sits at one of its profile's starts, no two share a memory
slice and no profile exceeds its maximum (NVIDIA MIG User Guide, "Supported MIG Profiles"). A
profile with media extensions (`+me`) exists once on a GPU.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from gpuplan.catalog.model import MigProfile
from gpuplan.plan.model import MigInstance


def layout(profiles: Sequence[MigProfile]) -> tuple[MigInstance, ...] | None:
    """A legal layout of these instances on one GPU in the order they are created, or None.

    Three-slice instances first, then the largest: in another order the driver leaves no room for
    them (MIG User Guide, known issues). Of the legal layouts it is the one whose bigger instances
    start last, so that a lone 3g stands at 4 and leaves the first half whole."""
    counts = Counter(p.name for p in profiles)
    if any(counts[p.name] > p.maximum for p in profiles) or not _engines_suffice(profiles):
        return None
    ordered = sorted(profiles, key=_creation_order)
    starts = next(_places([(p.name, p.starts, p.memory_slices) for p in ordered], 0), None)
    if starts is None:
        return None
    return tuple(
        MigInstance(profile=p.name, start=start, size=p.memory_slices)
        for p, start in zip(ordered, starts, strict=True)
    )


def _engines_suffice(profiles: Sequence[MigProfile]) -> bool:
    """At most one instance has media extensions; beside one that takes all engines the others have
    none (`-me`)."""
    extended = [p.name for p in profiles if "+me" in p.name]
    others = [p.name for p in profiles if "+me" not in p.name]
    everything = any(name.endswith("+me.all") for name in extended)
    return len(extended) <= 1 and (not everything or all(n.endswith("-me") for n in others))


def _creation_order(profile: MigProfile) -> tuple[bool, int, int, str]:
    three = profile.name.startswith("3g.")
    return not three, -profile.memory_slices, -profile.compute_slices, profile.name


def _places(
    wanted: Sequence[tuple[str, tuple[int, ...], int]], taken: int
) -> Iterator[tuple[int, ...]]:
    """Starts for each (name, legal starts, size) that avoid the `taken` bits, best first."""
    if not wanted:
        yield ()
        return
    (name, starts, size), rest = wanted[0], wanted[1:]
    first = sorted(starts, reverse=name.startswith("3g."))
    for start in first:
        bits = ((1 << size) - 1) << start
        if not bits & taken:
            for others in _places(rest, taken | bits):
                yield (start, *others)


def completed(cut: Mapping[str, int], profiles: Sequence[MigProfile]) -> dict[str, int]:
    """The layout with as many more instances of `profiles` as it legally takes, the smallest of
    them first: room for more replicas."""
    counts = dict(cut)
    for profile in sorted(profiles, key=lambda p: (p.memory_slices, p.compute_slices, p.name)):
        while True:
            more = counts | {profile.name: counts.get(profile.name, 0) + 1}
            if layout(list(_listed(more, profiles))) is None:
                break
            counts = more
    return counts


def cut(counts: Mapping[str, int], profiles: Sequence[MigProfile]) -> tuple[MigInstance, ...]:
    """The layout of `counts` instances, which together are legal."""
    found = layout(list(_listed(counts, profiles)))
    assert found is not None, f"{dict(counts)}: not a legal layout"
    return found


def _listed(counts: Mapping[str, int], profiles: Sequence[MigProfile]) -> Iterator[MigProfile]:
    by_name = {p.name: p for p in profiles}
    for name, count in counts.items():
        yield from [by_name[name]] * count
