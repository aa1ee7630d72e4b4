"""The numbers of a workload by their fields, and what several kinds of workload make of them."""

from __future__ import annotations

from collections.abc import Iterable

from gpuplan.manifest.v1 import Workload
from gpuplan.plan.times import PLAIN, STATISTICS, limited, time_name
from gpuplan.sizing.ask import fields as f
from gpuplan.sizing.ask.defaults import Defaults
from gpuplan.sizing.ask.fields import ManifestField
from gpuplan.sizing.ask.given import Given
from gpuplan.sizing.ask.parts import Objective, Objectives, OpenLoop, TimeLimit


class Numbers:
    """The numbers of a workload by their fields: as written, else their defaults."""

    def __init__(self, written: dict[str, Given], usual: Defaults) -> None:
        self._written, self._usual = written, usual

    def __call__(self, field: ManifestField) -> Given:
        """One that the kind needs: written, or with a default."""
        number = self.optional(field)
        assert number is not None, f"{field.path} is checked before"
        return number

    def optional(self, field: ManifestField) -> Given | None:
        written, usual = self._written.get(field.path), self._usual(field)
        if written is None:
            return usual
        if usual is None or not field.path.startswith("overrides."):
            return written
        return Given(written.value, written.unit, written.source, field, usual)


def open_loop(numbers: Numbers) -> OpenLoop:
    return OpenLoop(mean=numbers(f.MEAN_RATE), peak=numbers(f.PEAK_RATE))


def objectives(workload: Workload, numbers: Numbers) -> tuple[Objectives, Objectives]:
    """Those that must be met, and those that are accepted to be missed."""
    may = {name for limit in accepted_limits(workload) for name in limited(limit)}
    limits = {name: numbers.optional(field) for name, field in f.OBJECTIVES.items()}

    def those(names: Iterable[str]) -> Objectives:
        chosen = {name: limits[name] for name in names}
        return Objectives(
            **{
                time: Objective(**{s: chosen.get(time_name(time, s)) for s in STATISTICS})
                for time in PLAIN
            }
        )

    return those(limits.keys() - may), those(may)


def accepted_limits(workload: Workload) -> tuple[str, ...]:
    texts = workload.overrides
    return tuple(texts.accepted_misses or ()) if texts else ()


def time_limit(workload: Workload, numbers: Numbers) -> TimeLimit:
    within, deadline = numbers.optional(f.FINISH_WITHIN), numbers.optional(f.DEADLINE)
    if "finish_within" in accepted_limits(workload):
        return TimeLimit(deadline=deadline, accepted=within)
    return TimeLimit(finish_within=within, deadline=deadline)
