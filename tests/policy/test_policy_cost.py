"""What a plan could cost elsewhere: machines of other lists, and what a move there asks for."""

from __future__ import annotations

from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from gpuplan.errors import Rejected
from gpuplan.findings import Verdict
from gpuplan.plan.model import Plan
from gpuplan.plan.site import CheaperMachine
from gpuplan.policy.reading import read_stacks
from gpuplan.source import Origin
from tests.support.policy_samples import (
    alternative,
    judge,
    stack,
    with_machine,
    with_pool,
    with_workload,
    write,
)
from tests.support.samples import libvirt_plan, serving_plan

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
