"""Workloads that wait for others: whether these exist, end, and do not wait for each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.diagnostics import Diagnostic, Related, Severity, error
from gpuplan.manifest.v1 import Manifest, Workload
from gpuplan.resolve.messages import unknown_name
from gpuplan.source import Origin

ENDING = ("batch", "training", "finetuning")


def chain_problems(workloads: Sequence[Workload], at: Origin) -> Iterator[Diagnostic]:
    """`at` is the place of the list."""
    by_name = {w.name: w for w in workloads}
    for number, workload in enumerate(workloads):
        here = at.child(number, "after")
        for place, name in enumerate(workload.after):
            other, where = by_name.get(name), here.child(place)
            if name in workload.after[:place]:
                yield error("GP004", f"'{name}' stands twice in 'after'", where, help="remove one")
            elif other is None:
                ending = [w.name for w in workloads if w.task in ENDING and w is not workload]
                known = (
                    f"name one of: {', '.join(ending)}" if ending else "remove it: no other ends"
                )
                yield unknown_name("workload", name, ending, known, where)
            elif other.task not in ENDING:
                yield error(
                    "GP004",
                    f"'{workload.name}' would wait for ever: '{name}' is of task '{other.task}',"
                    " which does not end",
                    where,
                    help=f"name a workload of task {', '.join(ENDING)}",
                )
        if workload.after and workload.schedule:
            yield error(
                "GP004",
                f"'{workload.name}' has both a schedule and others to wait for",
                at.child(number, "schedule"),
                help=f"write the schedule of '{workload.after[0]}' alone: what is after it follows",
            )
    yield from _circles(workloads, at)


def reservation_problems(manifest: Manifest, at: Origin) -> Iterator[Diagnostic]:
    """`at` is the manifest's place."""
    spec = manifest.platform.slurm
    names, kept = [w.name for w in manifest.workloads], spec.reservations if spec else []
    for place, reserved in enumerate(kept):
        where = at.child("platform", "slurm", "reservations", place, "workload")
        if reserved.workload not in names:
            known = "name one of: " + ", ".join(names)
            yield unknown_name("workload", reserved.workload, names, known, where)
        elif reserved.workload in [r.workload for r in kept[:place]]:
            name = reserved.workload
            yield error("GP004", f"two reservations are for '{name}'", where, help="remove one")


def _circles(workloads: Sequence[Workload], at: Origin) -> Iterator[Diagnostic]:
    """One message for each circle, at the first of its workloads."""
    before = {w.name: w.after for w in workloads}
    places = {w.name: number for number, w in enumerate(workloads)}
    named: set[str] = set()
    for workload in workloads:
        way = _way_back(workload.name, before)
        if way is None or named & {*way}:
            continue
        named |= {*way}
        names = " waits for ".join(f"'{n}'" for n in (*way, way[0]))
        first = at.child(places[way[0]], "after", before[way[0]].index((*way, way[0])[1]))
        yield Diagnostic(
            rule="GP004",
            severity=Severity.ERROR,
            message=f"{names}: none would ever start" if len(way) > 1 else f"{names}: itself",
            origin=first,
            label="a circle",
            help="remove one of these 'after'",
            related=tuple(
                Related(f"'{name}' waits here", at.child(places[name], "after")) for name in way[1:]
            ),
        )


def _way_back(name: str, before: dict[str, list[str]]) -> tuple[str, ...] | None:
    """The shortest way from a workload over what it waits for back to itself."""
    ways: list[tuple[str, ...]] = [(name,)]
    seen: set[str] = set()
    for way in ways:
        for other in before.get(way[-1], ()):
            if other == name:
                return way
            if other not in seen:
                seen.add(other)
                ways.append((*way, other))
    return None
