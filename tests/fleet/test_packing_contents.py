"""Contents of nodes against all contents that a node can have."""

from __future__ import annotations

import functools
import random
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import product

import pytest

from gpuplan.fleet.problem import Card, HostType, NumaCapacity, Option, Problem
from gpuplan.fleet.solver.answer import answer
from gpuplan.fleet.solver.classes import SHARED, Fleet, compile_fleet
from gpuplan.fleet.solver.improve import Packer
from gpuplan.fleet.solver.model import Columns, without_integers
from gpuplan.fleet.solver.nodes.contents import Content, Item, sites_of
from gpuplan.fleet.solver.nodes.cover import Cover
from gpuplan.fleet.solver.nodes.generate import Generator, limits
from gpuplan.fleet.solver.nodes.pricing import Pricing
from gpuplan.fleet.solver.nodes.seat import seat
from gpuplan.fleet.solver.nodes.seen import contents_of
from gpuplan.fleet.solver.nodes.spread import Spread
from gpuplan.fleet.solver.outline.formulate import EPSILON, SCALE, unplaced_hosts
from gpuplan.fleet.solver.outline.master import whole_outline
from gpuplan.fleet.solver.run import construct
from gpuplan.fleet.solver.state import State
from gpuplan.sharing.geometry import reachable
from gpuplan.sharing.modes import Mode
from tests.fleet.test_packing_core import GB, SEVEN, UNIFORM, USD, ask, host, problem, whole
from tests.fleet.test_packing_tight import tight
from tests.support.packing_check import faults

SEEDS = range(12)
SHAPES = ("1g", "2g", "3g", "4g", "8q", "24q", 1, 1, 2)
Counts = tuple[int, ...]  # items of each request


def node(draw: random.Random) -> HostType:
    """One NUMA node of two or three GPUs, on which each resource is short for somebody."""
    capacity = NumaCapacity(
        gpus=tuple(range(draw.choice((2, 3)))),
        cores=draw.choice((6, 9, 12)),
        memory_bytes=draw.choice((6, 9, 12)) * GB,
        cards=(Card(functions=draw.choice((2, 4))),),
    )
    return HostType(
        name="h", gpu="g", nodes=(capacity,), cost=draw.choice((1, 3)) * USD, available=None
    )


def option(draw: random.Random) -> Option:
    shape = draw.choice(SHAPES)
    asked = Option(
        gpu="g",
        gpus=1,
        cores=draw.randint(0, 5),
        memory_bytes=draw.randint(0, 5) * GB,
        functions=draw.choice((0, 0, 1)),
    )
    if isinstance(shape, int):
        return replace(asked, gpus=shape)
    mode = "vgpu" if shape.endswith("q") else "mig"
    return replace(asked, gpus=0, mode=mode, part=shape)


def case(seed: int) -> Problem:
    """Three requests of some items of one team."""
    draw = random.Random(seed)
    kind = node(draw)
    requests = [
        ask(f"r{n}", draw.randint(2, 5), option(draw), spread=draw.choice((None, None, f"r{n}")))
        for n in range(3)
    ]
    return problem(kind, *requests, modes=(SEVEN, UNIFORM))


@functools.cache
def fewest(mode: Mode, parts: Counts) -> int:
    """GPUs that hold so many of each part of a mode."""
    if not any(parts):
        return 0
    if mode.uniform:
        return sum(-(-n // p.maximum) for n, p in zip(parts, mode.parts, strict=True))
    listed = reachable(mode.parts, mode.units)
    assert listed is not None
    least = {
        tuple(max(0, n - c) for n, c in zip(parts, counts, strict=True))
        for counts in listed
        if any(c and n for n, c in zip(parts, counts, strict=True))
    }
    return 1 + min(fewest(mode, rest) for rest in least)


def holds(asked: Problem, counts: Counts) -> bool:
    """Whether a node has room for so many items of each request."""
    (capacity,) = asked.hosts[0].nodes
    options = [r.options[0] for r in asked.requests]
    pairs = list(zip(options, counts, strict=True))
    gpus = sum(o.gpus * n for o, n in pairs)
    for mode in (SEVEN, UNIFORM):
        parts = Counter[str]()
        for o, n in pairs:
            parts[o.part or ""] += n if o.mode == mode.name else 0
        gpus += fewest(mode, tuple(parts[p.name] for p in mode.parts))
    return (
        gpus <= len(capacity.gpus)
        and sum(o.cores * n for o, n in pairs) <= capacity.cores
        and sum(o.memory_bytes * n for o, n in pairs) <= capacity.memory_bytes
        and sum(o.functions * n for o, n in pairs) <= capacity.cards[0].functions
    )


def every(asked: Problem) -> list[Counts]:
    """All contents of a node; of a spread group one."""
    most = [1 if r.spread else r.count for r in asked.requests]
    found = product(*(range(n + 1) for n in most))
    return [counts for counts in found if any(counts) and holds(asked, counts)]


def counted(fleet: Fleet, content: Content) -> Counts:
    """Items of each request in a content, whose classes have no two requests' items."""
    of = {kind.index: fleet.request[kind.items[0]] for kind in fleet.classes}
    counts = [0] * len(fleet.problem.requests)
    for kind, number in content.counts.items():
        counts[of[kind]] += number
    return tuple(counts)


def cases() -> Iterator[tuple[int, Problem, Fleet]]:
    """Those whose requests all find a place, and are classes of their own."""
    for seed in SEEDS:
        asked = case(seed)
        fleet = compile_fleet(asked)
        if not fleet.refused and len(fleet.classes) == len(asked.requests):
            yield seed, asked, fleet


CASES = list(cases())


def generator(fleet: Fleet) -> Generator:
    sites = sites_of(whole_outline(fleet).model)
    cover = Cover(fleet, [None], sites.all)
    return Generator(fleet, sites, cover)


def test_most_seeds_are_cases() -> None:
    assert len(CASES) > len(SEEDS) / 2


@pytest.mark.parametrize("number", range(len(CASES)))
def test_the_content_that_is_worth_most_is_found(number: int) -> None:
    seed, asked, fleet = CASES[number]
    draw = random.Random(seed)
    ((site, loads),) = sites_of(whole_outline(fleet).model).inside.items()
    pricing = Pricing(fleet, site, loads, limits(fleet))
    classes = [fleet.class_of[fleet.items[r.name, 0]] for r in asked.requests]
    all_of_them = every(asked)
    for _ in range(12):
        values = [draw.choice((0.0, 1.0, 2.5, 4.0, 7.0)) for _ in asked.requests]
        worth = [values[classes.index(kind.index)] for kind in fleet.classes]
        left = [draw.randint(0, r.count) for r in asked.requests]
        there = dict(zip(classes, left, strict=True))

        def total(counts: Sequence[int], values: list[float] = values) -> float:
            return sum(v * n for v, n in zip(values, counts, strict=True))

        possible = [c for c in all_of_them if all(a <= b for a, b in zip(c, left, strict=True))]
        best = max(map(total, possible), default=0.0)
        found = pricing.best(worth, there, 0.5)
        assert (found is not None) == (best > 0.5)
        if found is not None:
            assert counted(fleet, found) in possible
            assert total(counted(fleet, found)) == pytest.approx(best, rel=2e-3)
        highest = max(map(total, all_of_them))
        assert highest - 1e-6 <= pricing.ceiling(worth, 0.5) <= max(0.5, highest) * 1.001


@pytest.mark.parametrize("number", range(len(CASES)))
def test_what_is_generated_costs_as_little_as_all_contents(number: int) -> None:
    """Fractions of contents that cover all items."""
    _, asked, fleet = CASES[number]
    grouped = any(r.spread for r in asked.requests)
    model = Columns()
    cost = asked.hosts[0].cost / SCALE
    rows: list[dict[int, float]] = [{} for _ in asked.requests]
    for counts in every(asked):
        column = model.column(cost)
        for terms, n in zip(rows, counts, strict=True):
            terms.update({column: n} if n else {})
    for terms, request in zip(rows, asked.requests, strict=True):
        model.row(request.count, float("inf"), terms)
    least = without_integers(model)
    found = generator(fleet).generate(0.0)
    most = 2 * least if grouped else least  # hosts for each of a group may be more
    assert least * 0.999 <= found.objective <= most * 1.001


def one_of_each(content: Content) -> list[Item]:
    return [replace(item, number=1) for item in content.items]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_what_is_forbidden_is_in_no_answer(number: int) -> None:
    """Of no content a part or less than none."""
    _, _, fleet = CASES[number]
    made = generator(fleet)
    before = made.generate(0.0)
    cover = made.cover
    (dearest, *_) = sorted(cover.contents, key=lambda c: -before.values[c])
    assert before.values[dearest] > 0
    cover.forbid(dearest)
    after = cover.solve()
    assert after.values[dearest] == 0
    assert min(after.values) >= -1e-9
    assert after.objective > before.objective - 1e-9
    poor = [
        replace(cover.contents[dearest], items=(item,))
        for item in one_of_each(cover.contents[dearest])
    ]
    known = set(cover.contents)
    for content in poor:
        cover.add(content)
    for column in cover.contents.keys() - known:
        cover.forbid(column)
    assert min(cover.solve().values) >= -1e-9
    assert cover.solve().objective == pytest.approx(after.objective)
    for column in cover.contents:
        cover.forbid(column)
    assert {cover.solve().values[column] for column in cover.contents} == {0.0}


# --- the linear model against one that is made anew -------------------------------------------


def covers(*, grouped: bool) -> Iterator[Generator]:
    """Of fleets of several host types with every rule, too small ones among them."""
    for seed in range(40):
        asked = tight(seed)
        alone = tuple(replace(r, spread=None) for r in asked.requests)
        fleet = compile_fleet(asked if grouped else replace(asked, requests=alone))
        sites = sites_of(whole_outline(fleet).model)
        if sites.inside:
            available = [chassis.available for chassis in fleet.chassis]
            made = Generator(fleet, sites, Cover(fleet, available, sites.all))
            for content in sites.across:
                made.cover.add(content)
            yield made


def cost_of(fleet: Fleet, content: Content) -> float:
    chassis = fleet.chassis[content.site[0]]
    return EPSILON * content.gpus * chassis.cost / chassis.gpus / SCALE


def anew(cover: Cover) -> float:
    """The least cost of what is left to cover by the contents that there are, but for groups."""
    fleet, model = cover.fleet, Columns()
    dearest = max(chassis.cost for chassis in fleet.chassis) / SCALE
    demand = {
        kind.index: {model.column(unplaced_hosts(fleet, kind) * dearest): 1.0}
        for kind in fleet.classes
    }
    hosts = {kind: model.column(fleet.chassis[kind[0]].cost / SCALE) for kind in cover.hosts}
    nodes = {site: {hosts[site[:2]]: -float(cover.on_host(site))} for site in cover.taken}
    for content in cover.contents.values():
        column = model.column(cost_of(fleet, content))
        nodes[content.site][column] = content.spans
        for kind, number in content.counts.items():
            if number and cover.left[kind]:
                demand[kind][column] = min(number, cover.left[kind])
    for kind, terms in demand.items():
        model.row(cover.left[kind], float("inf"), terms)
    for site, terms in nodes.items():
        model.row(-float("inf"), -cover.taken[site], terms)
    for chassis, number in enumerate(cover.available):
        of = {column: 1.0 for kind, column in hosts.items() if kind[0] == chassis}
        if number is not None:
            model.row(-float("inf"), number, of)
    return without_integers(model)


def test_what_is_left_costs_as_much_as_in_a_model_of_that_alone() -> None:
    """While contents are chosen, one of the fullest after the other."""
    steps = 0
    for made in covers(grouped=False):
        cover = made.cover
        answer = made.generate(0.0)
        while any(cover.left.values()):
            assert answer.objective == pytest.approx(anew(cover))
            fullest = max(cover.contents, key=lambda c: answer.values[c], default=None)
            if fullest is None or answer.values[fullest] < 1e-6:
                break
            cover.choose(fullest, 1)
            answer, steps = cover.solve(), steps + 1
    assert steps > 20


def test_an_answer_is_one_of_hosts_that_there_are_and_its_worths_pay_for_its_contents() -> None:
    """Groups too: no host less than none, and what is on a node is worth what the node costs."""
    seen = 0
    for made in covers(grouped=True):
        cover, fleet = made.cover, made.fleet
        answer = made.generate(0.0)
        assert min(answer.values) >= -1e-6
        for at, column in cover.hosts.items():
            most = cover.available[at[0]]
            assert answer.values[column] <= (float("inf") if most is None else most) + 1e-6
        for site, price in answer.price.items():
            of = [(c, each) for c, each in cover.contents.items() if each.site == site]
            nodes = sum(answer.values[c] * each.spans for c, each in of)
            assert nodes <= answer.values[cover.hosts[site[:2]]] * cover.on_host(site) + 1e-6
            worth = answer.at(site[0])
            for column, content in of:
                paid = content.spans * price + cost_of(fleet, content)
                counts = content.counts.items()
                gets = sum(worth[kind] * min(n, cover.left[kind]) for kind, n in counts)
                assert gets <= paid + 1e-5
                if answer.values[column] > 1e-6:
                    assert gets == pytest.approx(paid, abs=1e-5)
                    seen += 1
    assert seen > 20


# --- how often each is chosen -----------------------------------------------------------------


def owned(seed: int, available: int | None) -> Problem:
    """Items of two teams that want hosts of their own, and of a third, on hosts of two nodes."""
    draw = random.Random(seed)
    capacity = NumaCapacity(gpus=(0, 1, 2), cores=12, memory_bytes=64 * GB)
    nodes = (capacity, replace(capacity, gpus=(3, 4, 5)))
    kind = HostType(name="h", gpu="g", nodes=nodes, cost=USD, available=available)
    requests = []
    for n, (tenant, isolation) in enumerate(
        (("red", "node"), ("blue", "node"), ("green", "shared")) * 2
    ):
        asked = Option(gpu="g", gpus=1, cores=draw.randint(2, 7), memory_bytes=GB)
        requests.append(ask(f"r{n}", draw.randint(2, 9), asked, tenant=tenant, isolation=isolation))
    return problem(kind, *requests)


def hosts_of(made: Generator, chosen: Sequence[tuple[Content, int]]) -> Counter[str | None]:
    """The hosts that the chosen contents take, by owner."""
    nodes = Counter[tuple[str | None, int]]()
    for content, number in chosen:
        nodes[content.site[1], content.site[2]] += number * content.spans
    hosts = Counter[str | None]()
    for (owner, kind), number in nodes.items():
        on_host = made.fleet.chassis[0].kinds[kind].count
        hosts[owner] = max(hosts[owner], -(-number // on_host))
    return hosts


def chosen_of(
    asked: Problem, low: dict[str | None, int] | None, *, closed: bool
) -> tuple[Generator, Counter[str | None], Counter[str | None]]:
    """The hosts that are chosen with so many of each owner paid, and those of the outline."""
    fleet = compile_fleet(asked)
    outline = whole_outline(fleet)
    sites = sites_of(outline.model)
    made = Generator(fleet, sites, Cover(fleet, [asked.hosts[0].available], sites.all))
    made.generate(0.0)
    paid = {(0, owner): n for owner, n in low.items()} if low is not None else outline.hosts
    made.pay(paid, closed=closed)
    hosts = hosts_of(made, made.choose(0.5))
    return made, hosts, Counter({owner: n for (_, owner), n in paid.items()})


@pytest.mark.parametrize("closed", [True, False])
def test_hosts_of_a_type_that_the_outline_has_none_of_are_not_had_or_paid(closed: bool) -> None:
    """Four items on hosts of two, of which one is paid: the others are left, or pay another."""
    kinds = host(nodes=(2,)), host("dear", "big", nodes=(2,), cost=3 * USD)
    asked = problem(kinds, ask("w", 4, whole(1), whole(1, gpu="big")))
    fleet = compile_fleet(asked)
    sites = sites_of(whole_outline(fleet).model)
    made = Generator(fleet, sites, Cover(fleet, [None, None], sites.all))
    made.generate(0.0)
    made.pay({(0, None): 1}, closed=closed)
    chosen = Counter[int]()
    for content, number in made.choose(0.5):
        chosen[content.site[0]] += number
    assert chosen == ({0: 1} if closed else {0: 2})
    assert made.cover.left == {0: 2 if closed else 0}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("closed", [True, False])
def test_no_more_hosts_are_chosen_than_there_are(seed: int, closed: bool) -> None:
    """Of those that the outline says where it is `closed`, else of those that exist: one more, or
    as many as the outline has; one less where no owner's host is half another's."""
    _, _, outlined = chosen_of(owned(seed, None), None, closed=True)
    total = outlined.total()
    for more in (1, 0, -1) if closed else (1, 0):
        asked = owned(seed, total + more)
        low = dict(outlined) if more >= 0 else dict.fromkeys(outlined, 1)
        made, hosts, paid = chosen_of(asked, low, closed=closed)
        assert hosts.total() <= total + more
        if closed:
            assert all(hosts[owner] <= paid[owner] for owner in hosts)
        elif more > 0:
            assert hosts.total() >= total or not any(made.cover.left.values())


@pytest.mark.parametrize("seed", range(12))
def test_what_hosts_without_end_can_hold_is_covered(seed: int) -> None:
    """With those of the outline paid: few items are left for the ends of rounding."""
    for closed in (True, False):
        made, _, _ = chosen_of(owned(seed, None), None, closed=closed)
        left, items = sum(made.cover.left.values()), len(made.fleet.request)
        assert left == 0 if not closed else left <= items // 8, (left, items)


@pytest.mark.parametrize("seed", [11, 16, 19, 29])
def test_what_is_left_of_whole_contents_gets_contents_of_its_own(seed: int) -> None:
    """Few items of ten sizes, of two teams with hosts of their own: as few hosts as are proven."""
    draw = random.Random(seed)
    teams = [(tenant, draw.randint(2, 8), draw.randint(1, 2)) for tenant in ("red", "blue") * 5]
    requests = [
        ask(f"r{n}", count, whole(1, cores=cores), tenant=tenant, isolation="node")
        for n, (tenant, cores, count) in enumerate(teams)
    ]
    asked = problem(host(nodes=(3,), cores=12), *requests)
    made, hosts, outlined = chosen_of(asked, None, closed=False)
    assert not any(made.cover.left.values())
    assert hosts.total() == outlined.total()


class Rows(Columns):
    """A program that keeps the rows that are added to it, as they are changed."""

    def add_row(self, low: float, high: float, terms: dict[int, float]) -> int:
        super().row(low, high, dict(terms))
        return len(self.rows) - 1

    def row(self, row: int, low: float, high: float) -> None:  # type: ignore[override]
        self.rows[row] = (low, high, self.rows[row][2])


@pytest.mark.parametrize("seed", range(12))
def test_more_of_a_group_than_hosts_hold_is_cut_and_nothing_that_they_hold(seed: int) -> None:
    """Of a group of four and one of two, beside workloads that may stand anywhere."""
    draw = random.Random(seed)
    wide = NumaCapacity(gpus=tuple(range(8)), cores=64, memory_bytes=64 * GB)
    kind = HostType(name="h", gpu="g", nodes=(wide,), cost=USD, available=None)
    one = Option(gpu="g", gpus=1, cores=1, memory_bytes=GB)
    four, two = (ask(name, n, one, spread=name) for name, n in (("four", 4), ("two", 2)))
    fleet = compile_fleet(problem(kind, four, two, ask("other", 9, replace(one, cores=2))))
    group, other = fleet.classes
    made, program = Columns(), Rows()
    hosts = made.column(1.0)
    spread = Spread(fleet, made, {(0, None): hosts})
    contents = [
        Content(
            (0, None, 0),
            tuple(
                Item(each.index, each.choices[0], SHARED, n)
                for each, n in ((group, grouped), (other, alone))
                if n
            ),
        )
        for grouped, alone in ((1, 0), (2, 1), (0, 3), (2, 4))
    ]
    columns = [made.column(1.0) for _ in contents]
    spread.paid[hosts] = paid = draw.choice((0, 1, 2))
    number = [draw.choice((0.0, 0.5, 1.0, 2.0)) for _ in contents]
    there = draw.choice((0.5, 1.0, 1.5, 2.0, 3.0))
    values = [there, *number]
    stand = sum(c.counts.get(group.index, 0) * n for c, n in zip(contents, number, strict=True))
    cut = spread.cut(program, list(zip(columns, contents, number, strict=True)), values)  # type: ignore[arg-type]
    assert cut == (stand > min(there, 4) + min(there, 2))
    if cut:
        ((_, high, terms),) = program.rows
        said = [terms.get(column, 0.0) for column in columns]
        assert said == [content.counts.get(group.index, 0) for content in contents]
        assert said == [spread.terms(content).get(0, 0.0) for content in contents]
        assert stand + terms[hosts] * there > high
        for whole in range(6):
            assert min(whole, 4) + min(whole, 2) + terms[hosts] * whole <= high + 1e-9
        assert spread.less([-0.5]) == {(group.index, 0): -0.5}
        for content, items in zip(contents, (1, 2, 3, 1), strict=True):
            spread.choose(program, content, dict.fromkeys(content.counts, items))  # type: ignore[arg-type]
            high -= items if group.index in content.counts else 0
            assert program.rows[0][1] == max(high, terms[hosts] * paid)


# --- contents onto hosts, and what stands there ------------------------------------------------


def free_of_groups() -> Iterator[Problem]:
    for seed in range(12):
        asked = case(seed)
        yield replace(asked, requests=tuple(replace(r, spread=None) for r in asked.requests))
        yield owned(seed, None)


@pytest.mark.parametrize("number", range(24))
def test_what_contents_cover_stands_on_the_nodes_that_they_are_of(number: int) -> None:
    asked = list(free_of_groups())[number]
    fleet = compile_fleet(asked)
    sites = sites_of(whole_outline(fleet).model)
    made = Generator(fleet, sites, Cover(fleet, [None], sites.all))
    made.generate(0.0)
    chosen = made.choose(0.5)
    state = State(fleet)
    queues = {kind.index: list(kind.items) for kind in fleet.classes}
    seat(state, chosen, queues)
    covered = {k.index: len(k.items) - made.cover.left[k.index] for k in fleet.classes}
    standing = Counter(fleet.class_of[i] for i, where in enumerate(state.where) if where)
    assert standing == Counter(covered)
    assert {k: len(queue) for k, queue in queues.items()} == made.cover.left
    result = answer(Packer(state), 0, 0, ())
    assert faults(asked, result, refusals=False) == []
    assert len(state.hosts) <= hosts_of(made, chosen).total()
    kinds = Counter[str | None](host.owner for host in state.hosts.values())
    assert all(kinds[owner] <= n for owner, n in hosts_of(made, chosen).items())


@pytest.mark.parametrize("number", range(24))
def test_the_contents_of_a_packing_are_what_stands_on_each_node(number: int) -> None:
    asked = list(free_of_groups())[number]
    fleet = compile_fleet(asked)
    packer = construct(fleet, whole_outline(fleet))
    seen = list(contents_of(packer.state))
    assert len(seen) == len(set(seen))
    nodes = Counter[tuple[tuple[int, str | None, int], tuple[tuple[int, int], ...], int]]()
    for here in packer.state.hosts.values():
        for mask, kind in zip(here.chassis.masks, here.chassis.kind_of, strict=True):
            stand = [
                (fleet.class_of[i], w[2])
                for i in here.items
                if (w := packer.state.where[i]) is not None and w[2] & mask
            ]
            counts = Counter(number for number, _ in stand)
            gpus = sum((1 << n) & mask > 0 for n in range(12) if any(m >> n & 1 for _, m in stand))
            if counts:
                site = (here.chassis.index, here.owner, kind)
                nodes[site, tuple(sorted(counts.items())), gpus] += 1
    told = {(c.site, tuple(sorted(c.counts.items())), c.gpus) for c in seen}
    assert told == set(nodes)
