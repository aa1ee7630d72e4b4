"""Ways to run the same work side by side, over months in which its load grows."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from decimal import Decimal
from functools import partial
from math import ceil

from gpuplan.catalog.load import Catalog
from gpuplan.frozen import frozen, record
from gpuplan.money.bought import Given, groups_of, one_price
from gpuplan.money.courses import (
    QUARTER,
    Course,
    Fleet,
    break_even_month,
    by_the_hour,
    carbon_tonnes,
    fleet,
    owned,
)
from gpuplan.money.extras import Extras, extra_parts, provider_of
from gpuplan.money.hybrid import Curve
from gpuplan.money.inputs import Value
from gpuplan.money.mixed import Mixed, mixed
from gpuplan.money.monthly import by_the_month
from gpuplan.money.owned import Group
from gpuplan.money.parts import Part
from gpuplan.money.regions import courses as region_courses
from gpuplan.money.tornado import Bar, bars
from gpuplan.money.ways import Lists
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.regions import Limits, Refused, Region, refused

OWN = ("owned", "rented", "hybrid")
RENT = "rent by the hour"
# Target, end of which month, part of the load → plan, or why there is none.
Planner = Callable[[str, int, Decimal], Plan | str]


@frozen
class Asked:
    """`given`: what a person says of nodes with a GPU type; `curve`: the load's durations, None
    where they are to be assumed; `carbon`: grams of a kilowatt-hour where owned nodes stand. The
    load grows until the end of month `growth_months`, and stays; 0: it never does."""

    name: str
    targets: tuple[str, ...]
    own_target: str
    months: int
    growth_months: int
    given: Given
    said: Extras
    curve: Curve | None = None
    carbon: Decimal | None = None
    regions: tuple[Region, ...] = ()
    limits: Limits = Limits()


@record
class Compared:
    """`best` is the cheapest of those that own nothing, `break_even` the month by whose end owning
    has cost no more. `assumed` says what nobody stated."""

    name: str
    months: int
    courses: tuple[Course, ...]
    best: str | None
    break_even: int | None
    bars: tuple[Bar, ...]
    mixed: Mixed | None
    inputs: tuple[Value, ...]
    assumed: tuple[str, ...]
    refused: tuple[Refused, ...] = ()


@frozen
class Scene:
    """What was planned: the nodes of each quarter that owned and rented ones are, with their inputs
    (`groups`), and the cheapest way that owns nothing."""

    asked: Asked
    fleets: tuple[Fleet, ...]
    plan: Plan
    groups: tuple[tuple[Group, ...], ...]
    beside: tuple[Part, ...]
    best: Course | None
    catalog: Catalog

    @property
    def values(self) -> dict[str, Value]:
        """The inputs of the last quarter's nodes, by name."""
        return {name: v for g in self.groups[-1] for name, v in g.values.items()}


def compare(asked: Asked, planner: Planner, lists: Lists, catalog: Catalog) -> Compared:
    """The nodes of `owned`, `rented` and `hybrid` are those of the target that costs least."""
    quarters = ceil(asked.months / QUARTER)
    named = [t for t in asked.targets if t not in OWN] or [asked.own_target]
    beside = partial(_fleet, lists=lists, said=asked.said)
    ends = _ends(asked, quarters)
    fleets = {t: _fleets(t, ends, partial(_whole, planner), beside) for t in named}
    courses = {t: _rented_course(t, planned, asked, lists) for t, planned in fleets.items()}

    def parts(target: str, share: Decimal) -> Sequence[Fleet] | str:
        planned = _fleets(target, ends, lambda t, month: planner(t, month, share), beside)
        return planned if isinstance(planned, str) else planned[0]

    several = region_courses(asked.regions, asked.limits, parts, asked.months)
    base = _base(fleets, courses)
    if base is None:
        return _compared(asked, courses, None, None)
    groups = tuple(groups_of(f.pools, catalog, lists.tariffs, asked.given) for f in base[0])
    beside_own = _beside_own(base[1], asked.said, lists)
    if "rented" in asked.targets:
        courses["rented"] = by_the_month(groups, asked.months, beside_own)
    best = min(
        (c for c in courses.values() if c.total is not None),
        key=lambda c: (c.total or 0, c.name),
        default=None,
    )
    scene = Scene(asked, tuple(base[0]), base[1], groups, beside_own, best, catalog)
    split = None
    courses |= {course.name: course for course in several}
    if "owned" in asked.targets:
        courses["owned"] = _owned(scene)
    if "hybrid" in asked.targets:
        split, courses["hybrid"] = mixed(
            (scene.fleets, scene.plan), groups, asked.curve, asked.months, beside_own
        )
    return _compared(asked, courses, scene, split)


def _said_of(scene: Scene) -> Iterator[str]:
    """What the plan of the cheapest target rests on."""
    plan = scene.plan
    if any(p.rented is None and p.priced_at is not None for p in plan.node_pools):
        yield f"{plan.target}: machines that are there already cost what the catalogue lists"
    if plan.cost.usd_of_runs is not None:
        yield "what ends runs once, from the first day"


def _beside_own(plan: Plan, said: Extras, lists: Lists) -> tuple[Part, ...]:
    """What is paid beside machines of one's own: volumes at the stated price. What leaves to the
    internet has no list price there."""
    internet = Part(name="internet traffic", what="a line of one's own", state="unpriced")
    return *extra_parts(plan, None, lists.tariffs, said), internet


def _base(fleets: Mapping[str, Planned | str], courses: Mapping[str, Course]) -> Planned | None:
    """The cheapest that is planned; without any price the first."""
    planned = {n: plans for n, plans in fleets.items() if not isinstance(plans, str)}
    priced = {n: c.total for n in planned if (c := courses[n]).total is not None}
    best = min(priced, key=lambda n: (priced[n] or 0, n), default=next(iter(planned), None))
    return None if best is None else planned[best]


def _compared(
    asked: Asked, courses: Mapping[str, Course], scene: Scene | None, split: Mixed | None
) -> Compared:
    assumed = [split.curve] if split else []
    if scene is not None:
        assumed += one_price(scene.groups[-1]) if {*asked.targets} & {*OWN} else ()
        assumed += _said_of(scene)
    if not asked.growth_months:
        assumed.append("the load does not grow: no workload states `growth` with a horizon")
    mine, best = courses.get("owned"), scene.best if scene else None
    order = list(dict.fromkeys((*asked.targets, *courses)))
    return Compared(
        name=asked.name,
        months=asked.months,
        courses=tuple(sorted(courses.values(), key=lambda c: order.index(c.name))),
        best=best.name if best else None,
        break_even=break_even_month(mine, best) if mine and mine.months and best else None,
        bars=bars(*_differences(scene)) if scene and mine else (),
        mixed=split,
        inputs=tuple(scene.values.values()) if scene and (mine or split) else (),
        assumed=tuple(assumed),
        refused=refused(asked.regions, asked.limits),
    )


def _rented_course(target: str, planned: Planned | str, asked: Asked, lists: Lists) -> Course:
    if isinstance(planned, str):
        return Course(name=target, machines="", why=planned)
    course = by_the_hour(target, planned[0], asked.months)
    return _with_carbon(course, *planned, asked, lists)


Planned = tuple[list[Fleet], Plan]


def _fleet(plan: Plan, *, lists: Lists, said: Extras) -> Fleet:
    return fleet(plan, tuple(extra_parts(plan, provider_of(plan), lists.tariffs, said)))


def _ends(asked: Asked, quarters: int) -> list[int]:
    """The month whose end each quarter's nodes are planned for; none after the growth's end."""
    return [min(QUARTER * (q + 1), asked.growth_months) for q in range(quarters)]


def _whole(planner: Planner, target: str, month: int) -> Plan | str:
    return planner(target, month, Decimal(1))


def _fleets(
    target: str,
    ends: Sequence[int],
    planner: Callable[[str, int], Plan | str],
    made: Callable[[Plan], Fleet],
) -> Planned | str:
    """The fleet of each quarter. Where two quarters have the same nodes so have those between: more
    load never takes fewer."""
    known: dict[int, Fleet] = {}
    plans: dict[int, Plan] = {}
    ahead = [(0, len(ends) - 1)]
    while ahead:
        low, high = ahead.pop()
        for quarter in (low, high):
            month = ends[quarter]
            if month not in known:
                plan = planner(target, month)
                if isinstance(plan, str):
                    return plan
                known[month], plans[month] = made(plan), plan
        if _same(known[ends[low]], known[ends[high]]):
            known |= dict.fromkeys(ends[low:high], known[ends[low]])
        elif high - low > 1:
            middle = (low + high) // 2
            ahead += [(low, middle), (middle, high)]
    return [known[month] for month in ends], plans[ends[-1]]


def _same(first: Fleet, second: Fleet) -> bool:
    def shapes(fleet: Fleet) -> list[tuple[str, str | None, int]]:
        return [(p.name, p.node_type, p.node_count) for p in fleet.pools]

    return shapes(first) == shapes(second)


def _with_carbon(
    course: Course, fleets: Sequence[Fleet], plan: Plan, asked: Asked, lists: Lists
) -> Course:
    """Of nodes in a region whose grid's factor a source states; IT power alone, since providers'
    PUE by region is in no source that was read."""
    places = {pool.rented_from for pool in plan.node_pools}
    if len(places) != 1 or (place := places.pop()) is None:
        return course
    factor = lists.tariffs.carbon(place[0], place[1])
    if factor is None:
        return course
    tonnes = carbon_tonnes(fleets, asked.months, factor.grams_per_kwh, Decimal(1))
    return replace(course, carbon_tonnes=tonnes, carbon_source=factor.source)


def _owned(scene: Scene) -> Course:
    asked, values = scene.asked, scene.values
    course = owned(scene.groups, asked.months, scene.beside)
    if asked.carbon is None or not course.months:
        return course
    factor = Decimal(1)
    for name in ("owned.load", "owned.pue"):
        factor *= values[name].typical if name in values else 1
    tonnes = carbon_tonnes(scene.fleets, asked.months, asked.carbon, factor)
    return replace(course, carbon_tonnes=tonnes, carbon_source="costs file: carbon_grams_per_kwh")


def _differences(
    scene: Scene,
) -> tuple[dict[str, Value], Callable[[Mapping[str, Value]], Decimal | None]]:
    """The inputs that may move, and what owning costs more than the best other way with them."""
    values, best, rent = scene.values, scene.best, _rent(scene)
    if rent is not None:
        values[RENT] = rent

    def difference(given: Mapping[str, Value]) -> Decimal | None:
        changed = [
            [replace(g, values={n: given.get(n, v) for n, v in g.values.items()}) for g in quarter]
            for quarter in scene.groups
        ]
        total = owned(changed, scene.asked.months, scene.beside).total
        other = None if best is None else best.total
        if best is not None and best.name == "rented":
            other = by_the_month(changed, scene.asked.months, scene.beside).total
        if total is None or other is None:
            return None
        return total - other * (given[RENT].typical / rent.typical if rent else 1)

    return values, difference


def _rent(scene: Scene) -> Value | None:
    """The price of a GPU by the hour that the best way pays, between the cheapest and the dearest
    that the catalogue lists of its type; of one pool."""
    pools = scene.plan.node_pools
    row = scene.catalog.rental(pools[0].gpu) if len(pools) == 1 else None
    paid = pools[0].usd_per_hour
    if row is None or row.low is None or row.high is None or paid is None or scene.best is None:
        return None
    if scene.best.name in OWN:
        return None
    each = paid / pools[0].gpus_per_node
    return Value(
        name=RENT,
        unit="USD/GPU-hour",
        low=min(row.low, each),
        typical=each,
        high=max(row.high, each),
        source=f"{row.sources[0]}: {row.about}",
    )
