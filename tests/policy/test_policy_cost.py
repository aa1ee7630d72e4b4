"""What a plan could cost elsewhere: machines of other lists, and what a move there asks for."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from gpuplan.errors import Rejected
from gpuplan.findings import Verdict
from gpuplan.plan.model import Estimate, Flip, Metric, Parallelism, Partition, Plan
from gpuplan.plan.outside.regions import Member, Regions
from gpuplan.plan.site import CheaperMachine
from gpuplan.policy.reading import read_stacks
from gpuplan.source import Origin
from gpuplan.units import GIB
from tests.support.policy_samples import (
    alternative,
    judge,
    stack,
    with_cost,
    with_machine,
    with_pool,
    with_workload,
    write,
)
from tests.support.samples import (
    estimate,
    libvirt_plan,
    serving_plan,
    serving_pool,
    serving_workload,
    training_plan,
)

HERE = "aws, us-east-1"


def listed(usd: str, *, rented: str = HERE, nodes: int = 2) -> Plan:
    """A pool of so many nodes at $20 an hour each, and one that somebody lists at `usd`."""
    other = CheaperMachine(
        node_type="other.8x", rented=rented, usd_per_hour=Decimal(usd), priced_at="list of May"
    )
    return with_pool(
        serving_plan(),
        node_type="own.8x",
        rented=HERE,
        node_count=nodes,
        usd_per_hour=Decimal(20),
        cheaper=other,
    )


def dearer(plan: Plan) -> list[Verdict]:
    return [v for v in judge(plan) if v.rule == "GP201"]


@pytest.mark.parametrize(("usd", "count"), [("13.99", 1), ("14.00", 0), ("14.01", 0)])
def test_a_machine_elsewhere_counts_when_it_saves_more_than_the_threshold(
    usd: str, count: int
) -> None:
    """More than 30 % of $20."""
    assert len(dearer(listed(usd))) == count


@pytest.mark.parametrize("nodes", [1, 3])
def test_what_a_machine_elsewhere_saves_is_of_all_nodes(nodes: int) -> None:
    [found] = dearer(listed("12.50", nodes=nodes))
    assert (found.requested, found.capacity) == (20 * nodes, 12.5 * nodes)
    assert found.usd_per_hour == 7.5 * nodes
    assert f"{nodes} × own.8x ({HERE}) at $20.00/h each; other.8x ({HERE}; list of May)" in (
        found.message
    )
    assert f"saves ${7.5 * nodes * 730:,.0f} a month while all run (38 %)" in found.message


@pytest.mark.parametrize(
    ("rented", "risk"),
    [
        (HERE, None),
        ("aws, eu-west-1", "eu-west-1 is another region"),
        ("google, us-east-1", "google is another provider"),
        ("google", "google is another provider"),
    ],
)
def test_a_move_to_another_provider_or_region_is_named_as_the_risk(
    rented: str, risk: str | None
) -> None:
    candidate = alternative("9.00", rented=rented, node_type="other.8x", priced_at="list of May")
    there = with_workload(with_pool(serving_plan(), rented=HERE), alternatives=(candidate,))
    for plan in (listed("10", rented=rented), there):
        [found] = dearer(plan)
        assert ("; risk: " in found.message) == (risk is not None)
        assert f"; risk: {risk}: quota" in found.message or risk is None


@pytest.mark.parametrize("other", [HERE, f"{HERE}, spot"])
def test_spot_nodes_of_a_region_are_no_move_away_from_it(other: str) -> None:
    plan = listed("10", rented=other)
    [found] = dearer(with_pool(plan, rented=f"{HERE}, spot"))
    assert "; risk: " not in found.message


@pytest.mark.parametrize(
    ("rented", "node_type", "priced_at", "shown"),
    [
        (HERE, "other.8x", "list of May", " on other.8x (aws, us-east-1; list of May) meets"),
        (HERE, "other.8x", None, " on other.8x (aws, us-east-1) meets"),
        (None, "other.8x", "list of May", "4 × l40s meets"),
        (HERE, None, "list of May", "4 × l40s meets"),
    ],
)
def test_a_candidate_is_named_with_its_machine_where_one_is_rented(
    rented: str | None, node_type: str | None, priced_at: str | None, shown: str
) -> None:
    more = {"rented": rented, "node_type": node_type, "priced_at": priced_at}
    [found] = dearer(with_workload(serving_plan(), alternatives=(alternative("9.00", **more),)))
    assert shown in found.message


def test_pools_without_a_price_or_without_a_cheaper_machine_are_left_alone() -> None:
    assert dearer(with_pool(listed("10"), usd_per_hour=None)) == []
    assert dearer(with_pool(listed("10"), cheaper=None)) == []


def test_an_accepted_miss_stands_at_the_objective_where_the_manifest_is_known() -> None:
    plan = serving_plan()
    [metric, *_] = plan.workloads[0].metrics
    missed = replace(metric, name="time_to_first_token", accepted_miss=True, limit=0.001)
    for origin in (None, Origin("chat.yaml").child("workloads", 0)):
        judged = judge(with_workload(plan, metrics=(missed,), origin=origin))
        [found] = [v for v in judged if v.rule == "GP205"]
        assert found.origin == (origin and origin.child("slo", "time_to_first_token", "p95"))


def test_a_dictionary_that_speaks_of_a_chart_is_no_release() -> None:
    program = 'labels = {"chart": "gpu-operator", "app": "x"}\nsetup(chart="gpu-operator")\n'
    judged = judge(stack(serving_plan(), **{"a.py": program}))
    assert "GP601" not in {v.rule for v in judged}
    released = judge(stack(serving_plan(), **{"a.py": 'Release("x", chart="gpu-operator")\n'}))
    assert "GP601" in {v.rule for v in released}


def test_what_cannot_be_read_of_a_stack_is_named_with_its_folder(tmp_path: Path) -> None:
    root = write(tmp_path, serving_plan())
    (root / "plan.yaml").unlink()
    (root / "plan.yaml").mkdir()
    with pytest.raises(Rejected) as raised:
        read_stacks(root)
    [told] = raised.value.diagnostics
    assert f"{root}/plan.yaml" in told.message


def test_a_plan_that_refers_to_what_it_does_not_hold_is_not_judged(tmp_path: Path) -> None:
    lost = with_workload(serving_plan(), node_pool="elsewhere")
    orphan = with_machine(libvirt_plan(), workload="gone")
    for number, (plan, words) in enumerate(
        (
            (lost, "workload 'assistant' refers to 'elsewhere'"),
            (orphan, "virtual machine 'tune-0' refers to 'gone'"),
        )
    ):
        root = write(tmp_path / str(number), plan)
        with pytest.raises(Rejected) as raised:
            read_stacks(root)
        assert [words in d.message for d in raised.value.diagnostics] == [True]


# --- what a saving is -----------------------------------------------------------------------------


def ending(seconds: float, **changes: object) -> Plan:
    finish = Metric(name="time_to_finish", unit="s", estimate=estimate(seconds))
    return with_workload(training_plan(), usd_per_hour=Decimal(40), metrics=(finish,), **changes)


def flip(now: float, needed: float, quantity: str = "usd_per_gpu_hour") -> Flip:
    return Flip(quantity=quantity, now=now, needed=needed, unit="USD/h")


@pytest.mark.parametrize(
    ("seconds", "schedule", "amount", "hours"),
    [
        (36_000, None, "$240 of the run (60 %)", 10),
        (3600 * 1460, None, "$35,040 of the run (60 %)", 730),  # a month has no more
        (7200, "0 3 * * *", "$1,488 a month, as often as it recurs (60 %)", 62),
        (1800, "0 3 1 * *", "$12.00 a month, as often as it recurs (60 %)", 0.5),
    ],
)
def test_a_saving_counts_for_as_long_as_the_work_runs_in_a_month(
    seconds: float, schedule: str | None, amount: str, hours: float
) -> None:
    """Sixty percent of $40 an hour, for those hours of 730."""
    plan = with_workload(
        ending(seconds, schedule=schedule), alternatives=(alternative("50", flip=flip(2, 5)),)
    )
    [found] = dearer(plan)
    assert f"saves {amount}" in found.message
    assert found.usd_per_hour == pytest.approx(24 * hours / 730, abs=1e-6)
    assert (found.requested, found.capacity) == (40, 16)


@pytest.mark.parametrize(
    ("saves", "left", "words"),
    [
        ("5.32", "12.38", "saves $3,884 a month (30 %)"),
        ("17.70", "0", "saves $12,921 a month (100 %)"),
        ("35.40", "0", "saves $25,842 a month (with nodes that nobody needs then)"),
    ],
)
def test_what_the_whole_plan_saves_counts_where_it_is_known(
    saves: str, left: str, words: str
) -> None:
    candidate = alternative("99", saves_usd_per_hour=Decimal(saves))
    [found] = dearer(with_workload(serving_plan(), alternatives=(candidate,)))
    assert words in found.message
    assert (found.usd_per_hour, found.capacity) == (float(saves), pytest.approx(float(left)))
    little = replace(candidate, saves_usd_per_hour=Decimal("5.31"))
    assert dearer(with_workload(serving_plan(), alternatives=(little,))) == []


@pytest.mark.parametrize(
    ("changes", "counts"),
    [
        ({"gate": "cost"}, True),
        ({"gate": "override"}, True),
        ({"gate": "memory"}, False),
        ({"usd_per_hour": None}, False),
        ({"usd_per_hour": Decimal("17.70")}, False),
        ({"usd_per_hour": Decimal(20)}, False),
    ],
)
def test_a_candidate_counts_that_cost_alone_decided_against(
    changes: dict[str, object], counts: bool
) -> None:
    candidate = alternative("9.00", **changes)
    assert len(dearer(with_workload(serving_plan(), alternatives=(candidate,)))) == counts
    short = replace(candidate, shortfalls=serving_plan().workloads[0].alternatives[0].shortfalls)
    assert dearer(with_workload(serving_plan(), alternatives=(short,))) == []
    free = with_workload(serving_plan(), alternatives=(candidate,), usd_per_hour=Decimal(0))
    assert dearer(free) == []


@pytest.mark.parametrize(
    ("found", "counts"),
    [
        (flip(2, 5), True),
        (flip(2, 5, "price_per_token"), False),
        (flip(2, 0), False),
        (flip(2, -1), False),
        (flip(5, 2), False),
        (None, False),
    ],
)
def test_runs_that_end_are_compared_by_the_price_that_would_make_them_equal(
    found: Flip | None, counts: bool
) -> None:
    candidate = alternative("1", flip=found)
    for task in ("training", "finetuning", "batch"):
        plan = with_workload(ending(36_000), task=task, alternatives=(candidate,))
        assert len(dearer(plan)) == counts
    assert len(dearer(with_workload(serving_plan(), alternatives=(candidate,)))) == 1


def test_of_equal_savings_the_first_by_name_is_told_and_others_hide_none() -> None:
    candidates = [alternative("9.00", gpu=gpu) for gpu in ("l4", "a10", "t4")]
    more = (alternative(None), *candidates, alternative("9.01", gpu="a00"))
    for order in (more, more[::-1]):
        [found] = dearer(with_workload(serving_plan(), alternatives=order))
        assert "4 × a10 meets" in found.message


def test_a_workload_without_a_cheaper_one_hides_no_other() -> None:
    cheaper = serving_workload(name="other", alternatives=(alternative("9.00"),))
    plan = serving_plan()
    unpriced = replace(cheaper, name="free", usd_per_hour=None)
    own = (*plan.workloads, unpriced, cheaper)
    for order in (own, own[::-1]):
        found = dearer(replace(plan, workloads=order))
        assert [v.resource for v in found] == ["workload/other"]
    pools = (*plan.node_pools, replace(listed("10").node_pools[0], name="dear"))
    for pool_order in (pools, pools[::-1]):
        found = dearer(replace(plan, node_pools=pool_order))
        assert [v.resource for v in found] == ["node_pool/dear"]


def test_a_saving_is_known_to_a_millionth_of_a_dollar() -> None:
    third = with_workload(
        serving_plan(),
        usd_per_hour=Decimal("3.000001"),
        alternatives=(alternative("1.0000005"),),
    )
    [found] = dearer(third)
    assert found.usd_per_hour == 2.000001  # two and five ten-millionths, to the even digit
    [found] = dearer(listed("12.3456785", nodes=1))
    assert found.usd_per_hour == 7.654322


@pytest.mark.parametrize(
    ("here", "there", "risk"),
    [
        ("aws", "aws, us-east-1", None),
        ("aws, us-east-1", "aws", None),
        ("aws", "google", "google is another provider"),
        ("aws, a, spot", "aws, b", "b is another region"),
        ("", "aws", None),
        (None, "aws", None),
    ],
)
def test_a_provider_without_regions_is_one_place(
    here: str | None, there: str, risk: str | None
) -> None:
    candidate = alternative("9.00", rented=there, node_type="other.8x")
    pools = with_pool(serving_plan(), rented=here)
    other = replace(pools.node_pools[0], name="another", rented="azure, west")
    for pools_of in ((*pools.node_pools, other), (other, *pools.node_pools)):
        plan = replace(with_workload(pools, alternatives=(candidate,)), node_pools=pools_of)
        [found] = dearer(plan)
        assert found.message.partition("; risk: ")[2].partition(":")[0] == (risk or "")


# --- budgets and dates ----------------------------------------------------------------------------


def member(stack_name: str, usd: int | None, *unpriced: str) -> Member:
    month = None if usd is None else Decimal(usd) * 730
    return Member(
        region=stack_name,
        stack=stack_name,
        usd_per_hour=None if usd is None else Decimal(usd),
        usd_per_month=month,
        unpriced=unpriced,
    )


def regional(name: str, *members: Member, budget: int | None = 100) -> Plan:
    regions = Regions(
        name="europe",
        members=members,
        budget_usd_per_hour=None if budget is None else Decimal(budget),
    )
    return replace(serving_plan(name=name), regions=regions)


@pytest.mark.parametrize(
    ("second", "said", "over"),
    [
        (member("b", 60), None, None),
        (member("b", 61), "all regions of europe cost $73,730 a month; the budget is", 1.0),
        (member("b", None, "p"), "cost $29,200 a month plus b: p, which is unpriced", None),
        (member("b", 70, "p"), "the budget is $73,000 a month, and b: p is not even", 10.0),
    ],
)
def test_a_budget_of_regions_is_of_all_of_them_and_told_once(
    second: Member, said: str | None, over: float | None
) -> None:
    members = (member("a", 40), second)
    found = [v for v in judge(regional("a", *members)) if v.rule == "GP204"]
    assert [said in v.message for v in found if said] == ([True] if said else [])
    assert [(v.usd_per_hour, v.capacity) for v in found] == ([(over, 100)] if said else [])
    assert "GP204" not in {v.rule for v in judge(regional("b", *members))}
    assert "GP204" not in {v.rule for v in judge(regional("a", *members, budget=None))}


def test_a_cost_that_nobody_knows_is_no_number() -> None:
    plan = with_cost(serving_plan(), usd_per_hour=None, unpriced=("b",))
    [found] = [v for v in judge(plan) if v.rule == "GP204"]
    assert (found.requested, found.capacity, found.usd_per_hour) == (None, 60, None)


def test_an_old_price_is_told_with_its_days() -> None:
    plan = with_cost(serving_plan(), price_date="2023-11-01")
    [found] = [v for v in judge(plan) if v.rule == "GP206"]
    assert found.message.endswith("is of 2023-11-01, 1,096 days ago")
    assert (found.requested, found.capacity, found.unit) == (1096, 180, "days")


# --- what is paid for and not used ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("used", "spare", "nodes", "idle"),
    [(1, 0, 1, 7), (2, 0, 1, 6), (3, 0, 1, None), (1, 0, 2, 15), (1, 1, 4, 23), (1, 1, 2, None)],
)
def test_idle_gpus_are_those_that_neither_work_has_nor_spare_nodes(
    used: int, spare: int, nodes: int, idle: int | None
) -> None:
    plan = with_workload(serving_plan(), replicas=1, gpus_per_node=used, parallelism=Parallelism())
    plan = with_pool(plan, node_count=nodes, spare_nodes=spare, usd_per_hour=Decimal("1.0000003"))
    found = [v for v in judge(plan) if v.rule == "GP203"]
    assert [v.message.partition(" GPUs")[0] for v in found] == (
        [f"{idle} of {8 * nodes}"] if idle else []
    )
    for verdict in found:
        assert (verdict.requested, verdict.capacity) == (used, 8 * nodes)
        assert idle
        assert verdict.usd_per_hour == round(1.0000003 * nodes * idle / (8 * nodes), 6)


@pytest.mark.parametrize(
    ("low", "said"), [(4.04, "4"), (4.06, "4.1"), (9.87, "9.9"), (123.4, "120")]
)
def test_headroom_is_said_in_two_digits(low: float, said: str) -> None:
    rate = Metric(
        name="requests_per_second",
        unit="1/s",
        estimate=Estimate(value=low, low=low, high=low, basis="derived"),
        limit=1.0,
        sense="at_least",
    )
    plan = with_workload(serving_plan(), replicas=1, gpus_per_node=8, metrics=(rate,))
    [found] = [v for v in judge(plan) if v.rule == "GP202"]
    assert f"has {said} × headroom" in found.message
    assert (found.requested, found.capacity) == (1, low)


def test_work_of_another_pool_uses_no_gpus_of_this_one_and_lasts_no_longer() -> None:
    hours = 73
    finish = Metric(name="time_to_finish", unit="s", estimate=estimate(hours * 3600))
    run = serving_workload(
        name="run", task="batch", replicas=1, gpus_per_node=1, metrics=(finish,),
        parallelism=Parallelism(),
    )  # fmt: skip
    away = serving_workload(name="away", node_pool="away")
    pool = serving_pool(node_count=1, usd_per_hour=Decimal(16))
    pools = (pool, serving_pool(name="away", node_count=1))
    plan = serving_plan(workloads=(away, run), node_pools=pools)
    [found] = [v for v in judge(plan) if v.rule == "GP203"]
    assert found.message.startswith("7 of 8 GPUs of pool h100-sxm-80gb are idle")
    assert found.usd_per_hour == pytest.approx(14 * hours / 730, abs=1e-6)


@pytest.mark.parametrize(
    ("count", "per_gpu", "cut"), [(2, 2, 1), (3, 2, 2), (4, 2, 2), (5, 2, 3), (7, 7, 1), (8, 7, 2)]
)
def test_gpus_that_are_cut_into_parts_are_used_whole(count: int, per_gpu: int, cut: int) -> None:
    part = Partition(
        kind="mig", name="part", count=count, per_gpu=per_gpu, memory_bytes=79 * GIB, resource="r"
    )
    plan = with_workload(serving_plan(), partition="part", parallelism=Parallelism())

    def idle(*partitions: Partition) -> list[str]:
        judged = judge(with_pool(plan, node_count=2, partitions=partitions))
        return [v.message.partition(" GPUs")[0] for v in judged if v.rule == "GP203"]

    more = replace(part, name="more", count=8, per_gpu=7)
    assert idle(part) == [f"{16 - cut} of 16"]
    assert idle(part, more) == ([f"{16 - cut - 2} of 16"] if cut < 3 else [])
    assert idle() == idle(more) == []  # nobody says how it is cut


@pytest.mark.parametrize(
    ("replicas", "low", "fires"), [(1, 4.1, True), (1, 4, False), (2, 4.1, False)]
)
def test_headroom_is_of_one_replica_and_each_objective(
    replicas: int, low: float, fires: bool
) -> None:
    def rate(name: str, limit: float | None, least: float) -> Metric:
        return Metric(
            name=name,
            unit="1/s",
            estimate=Estimate(value=least, low=least, high=least, basis="derived"),
            limit=limit,
            sense="at_least",
        )

    named = rate("images_per_second", 10, 10 * low)
    others = (
        rate("output_tokens_per_second", None, 1e9),
        rate("samples_per_second", 0, 1e9),
        rate("tokens_per_watt", 1, 1),
    )
    plan = with_workload(serving_plan(), replicas=replicas, gpus_per_node=8)
    for metrics in ((named, *others), (*others, named)):
        found = [v for v in judge(with_workload(plan, metrics=metrics)) if v.rule == "GP202"]
        assert len(found) == fires
    for metrics in (others, ()):
        assert "GP202" not in {v.rule for v in judge(with_workload(plan, metrics=metrics))}
