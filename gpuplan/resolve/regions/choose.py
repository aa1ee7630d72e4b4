"""A manifest of several regions → the manifests of those that are taken. Limits, then quotas, then
price: of two, three, … regions the ones that cost least together, with the region that costs least
for the work that is not divided."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from decimal import Decimal

from gpuplan.diagnostics import Diagnostic, Severity
from gpuplan.errors import Rejected
from gpuplan.frozen import frozen
from gpuplan.manifest.load import Loaded
from gpuplan.manifest.regions import RegionsSpec
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.regions import MOST, Member, Refused, Regions, refused
from gpuplan.resolve.regions import messages
from gpuplan.resolve.regions.load import divisible
from gpuplan.resolve.regions.origins import all_written
from gpuplan.resolve.regions.parts import contradictions, in_region, limits_said, regions_said
from gpuplan.source import Origin

Planned = Callable[[Loaded], Plan]  # raises `Rejected`
MISTAKES = {"GP004", "GP005", "GP006", "GP007", "GP008", "GP009"}  # of a document, in every region


@frozen
class Taken:
    """The manifests of the regions, each with its place in the list of the manifest, and notes."""

    manifests: tuple[tuple[Loaded, int], ...]
    diagnostics: tuple[Diagnostic, ...]


@frozen
class _Choice:
    """Regions by place in the list, the one with what is not divided, and their plans."""

    places: tuple[int, ...]
    home: int
    plans: tuple[Plan, ...]

    @property
    def rank(self) -> tuple[bool, Decimal, int]:
        costs = [p.cost.usd_per_month for p in self.plans]
        priced = [c for c in costs if c is not None]
        unpriced = len(priced) < len(costs) or any(p.cost.unpriced for p in self.plans)
        return unpriced, sum(priced, Decimal(0)), len(self.places)


def take(loaded: Loaded, spec: RegionsSpec, planned: Planned) -> Taken:
    """Raises `Rejected` with what is wrong with the manifest, or where too few regions are left."""
    wrong = [d for d in contradictions(loaded, spec) if d.severity is Severity.ERROR]
    if wrong:
        raise Rejected(wrong)
    return _Chooser(loaded, spec, planned).taken()


class _Chooser:
    def __init__(self, loaded: Loaded, spec: RegionsSpec, planned: Planned) -> None:
        self.loaded, self.spec, self.planned = loaded, spec, planned
        self.at = Origin(loaded.document, ("platform", "regions"))
        self.whole = all(map(divisible, loaded.manifest.workloads))  # nothing needs a home
        self.left_out: dict[int, str] = {}  # by a limit, whatever it costs
        self.short: dict[tuple[int, int], str] = {}  # what stands against it, by number of regions
        self.needed: dict[int, set[str]] = {}

    def taken(self) -> Taken:
        names = [p.region for p in self.spec.places]
        out = {r.target: r.why for r in refused(regions_said(self.spec), limits_said(self.spec))}
        self.left_out = {i: out[name] for i, name in enumerate(names) if name in out}
        least = self.spec.count or 2
        most = self.spec.count or min(MOST, len(names))
        choices = [c for n in range(least, most + 1) if (c := self._of(n)) is not None]
        if not choices:
            raise Rejected([messages.too_few(self._refused((), least), least, self.at)])
        best = min(choices, key=lambda choice: choice.rank)
        record = self._record(best)
        count = len(best.places)
        manifests = []
        for place in best.places:
            one = in_region(self.loaded, self.spec, place, count, home=place == best.home)
            manifests.append((replace(one, regions=record), place))
        notes = [messages.left_out(record.left_out, self.at)] if record.left_out else []
        return Taken(tuple(manifests), (*notes, *self._quota_notes()))

    def _of(self, count: int) -> _Choice | None:
        """The cheapest `count` regions; None where fewer can be planned."""
        shared = dict(self._plans(count, home=False))
        if len(shared) < count:
            return None
        homes = shared if self.whole else dict(self._plans(count, home=True))
        choices = [
            _Choice(tuple(sorted((home, *others))), home, (plan, *(shared[i] for i in others)))
            for home, plan in homes.items()
            if len(others := self._cheapest(shared, home)[: count - 1]) == count - 1
        ]
        return min(choices, key=lambda choice: choice.rank, default=None)

    @staticmethod
    def _cheapest(plans: dict[int, Plan], without: int) -> list[int]:
        def rank(place: int) -> tuple[bool, Decimal, int]:
            cost = plans[place].cost
            month = cost.usd_per_month
            return month is None or bool(cost.unpriced), month or Decimal(0), place

        return sorted((i for i in plans if i != without), key=rank)

    def _plans(self, count: int, *, home: bool) -> Iterator[tuple[int, Plan]]:
        """Of each region that nothing leaves out so far. One that holds all but what is not divided
        may still be taken beside the home."""
        for place in range(len(self.spec.places)):
            if place in self.left_out:
                continue
            one = in_region(self.loaded, self.spec, place, count, home=home)
            try:
                plan = self.planned(one)
            except Rejected as rejected:
                wrong = [d for d in rejected.diagnostics if d.severity is Severity.ERROR]
                if any(d.rule in MISTAKES for d in wrong):
                    raise Rejected(all_written(wrong, (), place)) from None
                self.short[count, place] = f"with {count} regions: {wrong[0].message}"
                continue
            if short := self._short(place, plan):
                self.short[count, place] = f"with {count} regions it {short}"
            else:
                yield place, plan

    def _short(self, place: int, plan: Plan) -> str:
        """Of which quota the plan needs more than was granted."""
        granted = self.spec.places[place].quotas
        lacking = []
        for quota in plan.cloud.quotas if plan.cloud else ():
            names = [n for n in (quota.code, quota.name) if n]
            self.needed.setdefault(place, set()).update(names)
            given = next((granted[n] for n in names if n in granted), None)
            if given is not None and quota.amount > given:
                lacking.append(f"{quota.amount} {quota.unit} of {names[0]}, of {given} granted")
        return f"needs {' and '.join(lacking)}" if lacking else ""

    def _quota_notes(self) -> Iterator[Diagnostic]:
        for place, needed in self.needed.items():
            for name in self.spec.places[place].quotas:
                if name not in needed:
                    at = self.at.child("places", place, "quotas", name)
                    yield messages.unknown_quota(name, sorted(needed), at)

    def _refused(self, taken: Sequence[int], count: int) -> tuple[Refused, ...]:
        return tuple(
            Refused(
                target=p.region,
                why=self.left_out.get(i) or self.short.get((count, i)) or "others cost less",
            )
            for i, p in enumerate(self.spec.places)
            if i not in taken
        )

    def _record(self, best: _Choice) -> Regions:
        plans = {plan.region: plan for plan in best.plans}

        def member(index: int) -> Member:
            place = self.spec.places[index]
            plan = plans[place.region]
            return Member(
                region=place.region,
                stack=plan.name,
                home=not self.whole and index == best.home,
                latency_seconds=place.latency,
                residency=place.residency,
                usd_per_hour=plan.cost.usd_per_hour,
                usd_per_month=plan.cost.usd_per_month,
                unpriced=plan.cost.unpriced,
                unpriced_storage=plan.cost.unpriced_storage,
            )

        return Regions(
            name=self.loaded.manifest.name,
            members=tuple(member(i) for i in best.places),
            left_out=self._refused(best.places, len(best.places)),
            budget_usd_per_hour=self.loaded.manifest.platform.budget,
        )
