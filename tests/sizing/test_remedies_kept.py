"""Which proposals a person reads where nothing fits: in which order, how many, how far from what
was asked, how dear, and what is said instead."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

import pytest

from gpuplan.diagnostics import Change
from gpuplan.plan.model import Flip, Shortfall
from gpuplan.sizing.ask.demand import Demand, TrainingDemand
from gpuplan.sizing.candidates.choose import Candidate
from gpuplan.sizing.decide.attempts import asked_number, attempts
from gpuplan.sizing.decide.remedies import Advice, Searched, advice
from gpuplan.sizing.decide.searched import Search
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.devices import whole
from gpuplan.sizing.hardware.offers import OtherSite, Site
from gpuplan.source import Origin
from tests.support.sizing_cases import CHAT_8B, FULL_8B, IB, offer, site, wanted

CHAT = (
    CHAT_8B
    + "    slo: {time_to_first_token: 1 s, time_per_output_token: 40 ms, request_latency: 9 s}\n"
)
FIRST, TOKEN, WHOLE = (
    f"slo.{name}" for name in ("time_to_first_token", "time_per_output_token", "request_latency")
)
HERE = site("l40s")
AT = Origin("m.yaml", ("workloads", 0))


def takes(gpus: int, usd: float | None = 1.0, gpu: str = "l40s", **changes: object) -> Candidate:
    """So many GPUs, each its own node at `usd` an hour."""
    price = None if usd is None else Quantity(usd, "USD/h", "test")
    made = whole(offer(gpu, gpus_per_node=1, usd_per_gpu_hour=price))
    one = Candidate(device=made, gpus=1, replicas=gpus, isolation="gpu")
    return replace(one, **changes)  # type: ignore[arg-type]


def stopped(
    quantity: str, now: float, needed: float, unit: str = "s", gpu: str = "l40s"
) -> Candidate:
    short = Shortfall(resource=quantity, requested=needed, used=0.0, capacity=now, unit=unit)
    flip = Flip(quantity=quantity, now=now, needed=needed, unit=unit)
    return takes(1, gpu=gpu, shortfalls=(short,), flip=flip)


def found(*candidates: Candidate) -> Callable[[Demand], Search]:
    return lambda demand: Search(demand, tuple((c.device.offer, (c,)) for c in candidates))


def elsewhere(*layouts: tuple[str, tuple[str, ...], Candidate]) -> tuple[list[OtherSite], Searched]:
    """Sites, each with the fields that change, and a search that finds its layout there."""
    sites, there = [], {}
    for words, fields, layout in layouts:
        changes = tuple(Change(Origin("m.yaml", tuple(f.split("."))), 1) for f in fields)
        where = Site(target="kubernetes", gpus=(layout.device.offer,), fabric=IB)
        sites.append(OtherSite(words=words, changes=changes, site=where))
        there[id(where)] = layout

    def searched(demand: Demand, where: Site) -> Search:
        layout = there.get(id(where))
        return found(*([layout] if layout else []))(demand)

    return sites, searched


def kept(*layouts: tuple[str, tuple[str, ...], Candidate]) -> list[str]:
    sites, searched = elsewhere(*layouts)
    words = advice(Search(wanted(CHAT), ()), HERE, sites, searched).words
    return [part.partition(" takes ")[0] for part in words.split("; or ")] if words else []


def test_fewest_fields_come_first_and_of_as_many_the_cheapest() -> None:
    two = ("platform.gpus", "workloads.precision")
    assert kept(
        ("both", two, takes(1)),
        ("dear", ("platform.gpus.0",), takes(3)),
        ("cheap", ("workloads.precision",), takes(2)),
    ) == ["cheap", "dear", "both"]


def test_fields_of_one_part_are_one_change_and_those_of_two_parts_are_two() -> None:
    alike = ("platform.fabric.kind", "platform.fabric.rate")
    apart = ("platform.fabric.kind", "platform.storage.rate")
    assert kept(("apart", apart, takes(1)), ("alike", alike, takes(2))) == ["alike", "apart"]


def test_machines_that_the_manifest_cannot_name_come_last() -> None:
    many = tuple(f"platform.{name}.x" for name in "abcdefgh")
    assert kept(("bought", (), takes(1)), ("written", many, takes(2))) == ["written", "bought"]


def test_what_has_a_price_comes_before_what_has_none() -> None:
    assert kept(("unpriced", ("a.b",), takes(1, None)), ("priced", ("c.d",), takes(9, 1.0))) == [
        "priced",
        "unpriced",
    ]


def test_a_person_reads_three_and_two_of_a_field() -> None:
    rows = [(f"way {n}", ("platform.gpus",), takes(n)) for n in (1, 2, 3)]
    other = [(f"other {n}", (f"platform.x{n}",), takes(n)) for n in (2, 3)]
    assert kept(*rows) == ["way 1", "way 2"]
    assert kept(*rows, *other) == ["way 1", "way 2", "other 2"]
    listed = [(f"way {n}", ("platform.gpus",), takes(n)) for n in (1, 2)]
    assert len(kept(*listed, *other, ("last", ("platform.y",), takes(4)))) == 3


@pytest.mark.parametrize(("gpus", "sensible"), [(4, True), (5, False)])
def test_what_costs_over_four_times_the_cheapest_is_left_out(gpus: int, *, sensible: bool) -> None:
    words = kept(("cheap", ("a.b",), takes(1)), ("dear", ("c.d",), takes(gpus)))
    assert words == (["cheap", "dear"] if sensible else ["cheap"])
    unpriced = kept(("cheap", ("a.b",), takes(1)), ("dear", ("c.d",), takes(gpus, None)))
    assert unpriced == ["cheap", "dear"]


@pytest.mark.parametrize(("gpus", "sensible"), [(4, True), (5, False)])
def test_gpus_that_mostly_wait_are_said_and_not_proposed(gpus: int, *, sensible: bool) -> None:
    """The load alone, without objectives, takes one."""
    sites, searched = elsewhere(("much", ("platform.gpus",), takes(gpus)))

    def alone(demand: Demand, where: Site) -> Search:
        free = asked_number(demand, FIRST) is None and asked_number(demand, TOKEN) is None
        return found(takes(1))(demand) if free else searched(demand, where)

    said = advice(Search(wanted(CHAT), ()), HERE, sites, alone)
    assert len(said.remedies) == sensible
    price = f"much takes {gpus} × l40s at ${gpus}.00/h"
    more = "" if sensible else ", over 4 times what the load alone takes"
    assert said.words.endswith(price + more)


# --- objectives that give way -------------------------------------------------------------------


def meeting(limits: Mapping[str, float], *others: Candidate, gpus: int = 1) -> Searched:
    """A search that finds a layout where every objective is at least so loose; else what comes
    next is the first that is not."""

    def searched(demand: Demand, where: Site) -> Search:
        for path, least in limits.items():
            asked = asked_number(demand, path)
            if asked is not None and asked < least:
                return found(stopped(path, asked, least), *others)(demand)
        return found(takes(gpus))(demand)

    return searched


def eased(limits: Mapping[str, float], *others: Candidate) -> Advice:
    searched, asked = meeting(limits, *others), wanted(CHAT)
    return advice(searched(asked, HERE), HERE, (), searched)


def test_an_objective_gives_way_as_far_as_it_must_and_others_with_it() -> None:
    one = eased({TOKEN: 0.0501})
    assert one.words == f"`{TOKEN}: 50.1 ms` instead of 40 ms takes 1 × l40s at $1.00/h"
    assert [[c.value for c in remedy] for remedy in one.remedies] == [["50.1 ms"]]
    both = eased({TOKEN: 0.05, FIRST: 1.5})
    assert both.words.startswith(f"`{TOKEN}: 50 ms` instead of 40 ms and `{FIRST}: 1.5 s` instead")
    assert {c.origin.path[2:] for c in both.remedies[0]} == {
        tuple(TOKEN.split(".")),
        tuple(FIRST.split(".")),
    }
    assert eased({TOKEN: 0.05, FIRST: 1.5, WHOLE: 12.0}).remedies


@pytest.mark.parametrize(("needed", "near"), [(0.08, True), (0.0801, False)])
def test_an_objective_further_than_twice_away_is_another_one(needed: float, *, near: bool) -> None:
    said = eased({TOKEN: needed})
    assert bool(said.remedies) == near
    if not near:
        assert said.words == (f"no allowed GPU reaches {TOKEN} 40 ms: the best is 80.1 ms on l40s")


@pytest.mark.parametrize("hours", [49, 480, 4800])
def test_a_run_is_told_the_nearest_answer_however_far(hours: int) -> None:
    asked, path = wanted(FULL_8B), "slo.finish_within"
    searched = meeting({path: hours * 3600.0})
    said = advice(searched(asked, HERE), HERE, (), searched)
    assert len(said.remedies) == 1
    assert f"`{path}: " in said.words
    assert "instead of 2 d" in said.words


def test_where_going_a_little_further_saves_much_it_is_proposed() -> None:
    """At 41 ms each replica serves hardly any: 100 of them, 10 at a tenth more than was asked, 4 at
    a quarter more. Proposed is the first within twice the least."""
    asked, path = wanted(CHAT), TOKEN
    counts = {0.041: 100, 0.044: 10, 0.05: 5, 0.06: 4, 0.08: 3}

    def searched(demand: Demand, where: Site) -> Search:
        limit = asked_number(demand, path) or 9.0
        fitting = [n for least, n in counts.items() if limit >= least - 1e-9]
        layout = takes(min(fitting)) if fitting else stopped(path, limit, 0.041)
        return found(layout)(demand)

    said = advice(searched(asked, HERE), HERE, (), searched)
    assert said.words == f"`{path}: 50 ms` instead of 40 ms takes 5 × l40s at $5.00/h"


def test_where_no_layout_is_found_a_little_further_the_nearer_ones_are_proposed() -> None:
    asked, path = wanted(CHAT), TOKEN

    def searched(demand: Demand, where: Site) -> Search:
        limit = asked_number(demand, path) or 9.0
        count = 100 if limit < 0.043 else 10
        fits = 0.041 - 1e-9 <= limit < 0.0499
        return found(takes(count) if fits else stopped(path, limit, 0.041))(demand)

    said = advice(searched(asked, HERE), HERE, (), searched)
    assert said.words == f"`{path}: 44 ms` instead of 40 ms takes 10 × l40s at $10.00/h"


def test_of_several_the_nearest_objective_is_tried_first() -> None:
    """Two GPUs, of which one is nearer: what is said is of that one."""
    near, far = (
        stopped(TOKEN, 0.04, needed, gpu=gpu) for needed, gpu in ((0.2, "a10"), (0.4, "l4"))
    )
    for order in ((near, far), (far, near)):
        said = advice(found(*order)(wanted(CHAT)), HERE, (), lambda d, s: Search(d, ()))
        assert said.words == f"no allowed GPU reaches {TOKEN} 40 ms: the best is 200 ms on a10"


@pytest.mark.parametrize(
    ("text", "gpus", "where"),
    [(CHAT, 1, "l40s"), (CHAT, 4, "l40s, tensor parallel 4"), (FULL_8B, 4, "l40s, 4 GPUs")],
)
def test_what_comes_nearest_is_said_with_its_gpus(text: str, gpus: int, where: str) -> None:
    path = "slo.finish_within" if text is FULL_8B else TOKEN
    asked = wanted(text)
    now = asked_number(asked, path)
    assert now is not None
    one = replace(stopped(path, now, 5 * now), gpus=gpus)
    said = advice(found(one)(asked), HERE, (), lambda d, s: Search(d, ())).words
    assert said.endswith(f" on {where}")


def test_a_rate_that_is_too_high_gives_way_downwards_and_the_best_is_the_most() -> None:
    asked = wanted(CHAT_8B + "    slo: {tokens_per_second: 1000}\n")
    path = "slo.tokens_per_second"
    some, more = (
        stopped(path, 1000, needed, "1/s", gpu) for needed, gpu in ((100, "l4"), (300, "a10"))
    )
    said = advice(found(some, more)(asked), HERE, (), lambda d, s: Search(d, ())).words
    assert said.startswith(f"no allowed GPU reaches {path} 1,000/s: the best is 300/s on a10")

    def searched(demand: Demand, where: Site) -> Search:
        enough = (asked_number(demand, path) or 0) <= 700
        return found(takes(1) if enough else stopped(path, 1000, 700, "1/s"))(demand)

    (remedy,) = advice(searched(asked, HERE), HERE, (), searched).remedies
    assert [c.value for c in remedy] == [700]


def test_storage_and_nodes_give_way_as_fields_of_the_platform() -> None:
    described = Site(target="kubernetes", gpus=(offer("l40s", node_count=2),), fabric=IB)

    def searched(demand: Demand, where: Site) -> Search:
        (there,) = where.gpus
        if (where.storage_bytes_per_s or Quantity(1e9, "B/s", "")).value < 2.5e9:
            return found(stopped("storage.bandwidth", 1e9, 2.5e9, "B/s"))(demand)
        if (there.node_count or 0) < 5:
            return found(stopped("node.count", 2, 5, "nodes"))(demand)
        return found(takes(1))(demand)

    asked = wanted(FULL_8B)
    said = advice(searched(asked, described), described, (), searched)
    assert said.words.startswith(
        "`platform.storage.bandwidth: 2.5 GB/s` instead of 1 GB/s and `platform.node.count: 5`"
        " instead of 2 takes"
    )
    (remedy,) = said.remedies
    assert [(c.origin.path, c.value) for c in remedy] == [
        (("platform", "storage", "bandwidth"), "2.5 GB/s"),
        (("platform", "node", "count"), 5),
    ]


def test_overrides_that_are_taken_away_are_part_of_every_remedy() -> None:
    sites, searched = elsewhere(("more", ("platform.gpus",), takes(1)))
    asked = Search(wanted(CHAT), ())
    said = advice(asked, HERE, sites, searched, ["replicas", "gpu"])
    assert said.words.startswith("without 'replicas' and 'gpu' overridden; more takes")
    assert [[c.origin.path[-1] for c in remedy] for remedy in said.remedies] == [
        ["replicas", "gpu", "gpus"]
    ]


def test_a_price_is_of_the_gpus_and_with_the_rest_of_their_nodes() -> None:
    """Of 8 GPUs at $1 two are taken, on one node or on three."""
    node = whole(
        offer("l40s", gpus_per_node=8, node_count=4, usd_per_gpu_hour=Quantity(1.0, "USD/h", "t"))
    )
    one = Candidate(device=node, gpus=2, replicas=1, isolation="gpu")
    assert kept_words(one) == "2 × l40s at $2.00/h ($8.00/h with the rest of its node)"
    three = replace(one, gpus=5, replicas=3)
    assert kept_words(three) == "15 × l40s at $15.00/h ($24.00/h with the rest of its 3 nodes)"
    full = replace(one, gpus=8)
    assert kept_words(full) == "8 × l40s at $8.00/h"
    unpriced = replace(one, device=whole(offer("l40s", usd_per_gpu_hour=None)))
    assert kept_words(unpriced) == "2 × l40s"


def kept_words(layout: Candidate) -> str:
    sites, searched = elsewhere(("so", ("a.b",), layout))
    return advice(Search(wanted(CHAT), ()), HERE, sites, searched).words.removeprefix("so takes ")


# --- spare nodes --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counts", "stated", "proposed"),
    [
        ((4,), 7, [3, 0]),  # the run takes one node
        ((4,), 4, [3, 0]),
        ((4,), 3, [0]),
        ((1,), 3, [0]),
        ((4, 2), 7, [3, 1]),
        ((4, 2), 3, [1, 0]),
        ((None,), 7, [0]),
        ((4,), 0, []),
        ((4,), None, []),
    ],
)
def test_as_many_spares_as_the_nodes_leave_are_proposed_and_none(
    counts: tuple[int | None, ...], stated: int | None, proposed: list[int]
) -> None:
    more = "" if stated is None else f", spare_nodes: {stated}"
    asked = wanted(FULL_8B.replace("tokens: 1e9", f"tokens: 1e9{more}"))
    assert isinstance(asked, TrainingDemand)
    gpus = tuple(offer("h100-sxm-80gb", node_count=n) for n in counts)
    where = Site(target="kubernetes", gpus=gpus, fabric=IB)
    found = [a for a in attempts(asked, where) if "spare_nodes" in a.words]
    assert [a.changes[0].value for a in found] == proposed
    for attempt in found:
        changed = attempt.demand
        assert isinstance(changed, TrainingDemand)
        assert changed.spare_nodes is not None
        assert int(changed.spare_nodes) == attempt.changes[0].value
        said = f"`training.spare_nodes: {attempt.changes[0].value}` instead of {stated}"
        assert attempt.words == said


@pytest.mark.parametrize(
    ("counts", "hours", "needed"),
    [
        ((1,), 2, 2),  # a node takes 5 h, two take half of that, with a margin
        ((1,), 48, None),  # they end it in time
        ((4,), 3, None),
        ((1, 1), 3, 2),
        ((None,), 3, None),  # more of them may be bought
        ((1, None), 3, None),
    ],
)
def test_as_many_nodes_as_end_a_run_in_time_are_proposed_where_their_number_is_stated(
    counts: tuple[int | None, ...], hours: int, needed: int | None
) -> None:
    asked = wanted(FULL_8B.replace("2 d", f"{hours} h"))
    gpus = tuple(offer("h100-sxm-80gb", node_count=n) for n in counts)
    where = Site(target="kubernetes", gpus=gpus, fabric=IB)
    told = [a for a in attempts(asked, where) if "node.count" in a.words]
    if needed is None:
        assert told == []
        return
    (attempt,) = told
    more = attempt.changes[0].value
    assert isinstance(more, int)
    assert more >= needed
    assert attempt.words == f"`platform.node.count: {more}` instead of 1"
    assert [o.node_count for o in attempt.site.gpus] == [more] * len(counts)
    assert attempt.changes[0].origin.path == ("platform", "node", "count")
    named = tuple(replace(o, node_names=("a",)) for o in gpus)
    fixed = replace(where, gpus=named)
    assert [a for a in attempts(asked, fixed) if "node.count" in a.words] == []


def test_spares_of_one_nvlink_domain_say_so() -> None:
    asked = wanted(FULL_8B.replace("tokens: 1e9", "tokens: 1e9, spare_nodes: 9"))
    tray = offer("h100-sxm-80gb", node_count=4, nvlink_nodes=4)
    where = Site(target="kubernetes", gpus=(tray,), fabric=IB)
    (first, *_) = (a for a in attempts(asked, where) if "spare_nodes" in a.words)
    assert first.words.startswith("spare nodes lie in the NVLink domain of their run: `")
