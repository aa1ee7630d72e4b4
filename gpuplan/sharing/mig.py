"""How MIG cuts one GPU: legal layouts in the order in which instances are created."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from gpuplan.catalog.model import MigProfile
from gpuplan.plan.model import MigInstance
from gpuplan.sharing.geometry import free_starts, together, units
from gpuplan.sharing.modes import Part, mig_part

ProfileCounts = tuple[tuple[MigProfile, int], ...]  # instances of a GPU, by profile


def counted(profiles: Sequence[MigProfile]) -> ProfileCounts:
    """`profiles`, one an instance, by number."""
    by_name = {p.name: p for p in profiles}
    return tuple((by_name[name], n) for name, n in Counter(p.name for p in profiles).items())


def layout(profiles: Sequence[MigProfile]) -> tuple[MigInstance, ...] | None:
    """A legal layout of instances of `profiles` on one GPU in the order they are created, or None.

    Three-slice instances first, then the largest: in another order the driver leaves no room for
    them (MIG User Guide, known issues). Of the legal layouts it is the one whose bigger instances
    start last, so that a lone 3g stands at 4 and leaves the first half whole."""
    return _layout(counted(profiles))


def _layout(cut: ProfileCounts) -> tuple[MigInstance, ...] | None:
    ordered = sorted(cut, key=lambda pair: _creation_order(pair[0]))
    parts = [mig_part(profile) for profile, _ in ordered]
    if not together(parts, tuple(n for _, n in ordered)):
        return None
    instances = [part for part, (_, n) in zip(parts, ordered, strict=True) for _ in range(n)]
    starts = next(_places(instances, 0), None)
    if starts is None:
        return None
    names = (profile.name for profile, n in ordered for _ in range(n))
    return tuple(
        MigInstance(profile=name, start=start, size=part.size)
        for name, part, start in zip(names, instances, starts, strict=True)
    )


def _creation_order(profile: MigProfile) -> tuple[bool, int, int, str]:
    three = profile.compute_slices == 3
    return not three, -profile.memory_slices, -profile.compute_slices, profile.name


def _places(instances: Sequence[Part], taken: int) -> Iterator[tuple[int, ...]]:
    """Starts for each of `instances` that avoid the `taken` units, best first."""
    if not instances:
        yield ()
        return
    part, later = instances[0], instances[1:]
    for start in sorted(free_starts(part, taken), reverse=part.compute == 3):
        for starts in _places(later, taken | units(part, start)):
            yield (start, *starts)


def completed(cut: ProfileCounts, profiles: Sequence[MigProfile]) -> ProfileCounts:
    """The layout with as many more instances of `profiles` as it legally takes, the smallest of
    them first: room for more replicas. By name, so that layouts that are alike are equal."""
    by_name = {p.name: p for p in profiles}
    counts = Counter({profile.name: number for profile, number in cut})

    def as_counts() -> ProfileCounts:
        return tuple((by_name[name], n) for name, n in sorted(counts.items()) if n)

    for profile in sorted(profiles, key=lambda p: (p.memory_slices, p.compute_slices, p.name)):
        while _layout(as_counts()) is not None:
            counts[profile.name] += 1
        counts[profile.name] -= 1
    return as_counts()


def instances(cut: ProfileCounts) -> tuple[MigInstance, ...]:
    """The layout of instances that are legal together."""
    legal = _layout(cut)
    assert legal is not None, f"{[(p.name, n) for p, n in cut]}: not a legal layout"
    return legal
