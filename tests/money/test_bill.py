"""What a stack costs: states, totals, units of work, and the command that prints it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from gpuplan.catalog.market import load_market
from gpuplan.catalog.tariffs import load_tariffs
from gpuplan.cli.main import main
from gpuplan.money.bill import Bill, bill
from gpuplan.money.extras import NOTHING, Extras, traffic
from gpuplan.money.parts import age_days, last_day
from gpuplan.money.ways import Lists, Way
from gpuplan.plan.costs.units import unit_costs
from gpuplan.plan.model import Plan
from gpuplan.plan.read import read_evidenced

STACKS = Path(__file__).parents[2] / "stacks"
AS_OF = date(2026, 11, 23)


def billed(plan: Plan, said: Extras = NOTHING, as_of: date = AS_OF) -> Bill:
    return bill(plan, Lists(load_market(), load_tariffs()), said, as_of=as_of, oldest_days=180)


def stack(name: str) -> Plan:
    return read_evidenced(STACKS / name)


def way(found: Bill, pool: str, kind: str) -> Way:
    return next(w for w in found.ways if (w.pool, w.kind) == (pool, kind))


@pytest.mark.parametrize("name", sorted(p.name for p in STACKS.iterdir()))
def test_machines_of_a_bill_add_up_to_the_plans_month(name: str) -> None:
    plan = stack(name)
    found = billed(plan)
    machines = [p for p in found.parts if p.name.startswith(("nodes", "runs"))]
    total = sum((p.usd_per_month or Decimal(0) for p in machines), Decimal(0))
    assert total == (plan.cost.usd_per_month or 0)


def test_nodes_that_stay_are_those_that_the_sum_pays_for() -> None:
    plan = stack("eks")
    kept, _ = plan.node_pools
    named = {p.name: p.what for p in billed(plan).parts}
    assert named["nodes that stay"] == kept.shape
    moved = tuple(replace(w, node_pool=kept.name) for w in plan.workloads)
    shared = replace(plan, node_pools=(kept,), workloads=moved)
    named = {p.name: p.what for p in billed(shared).parts}
    assert named["nodes that stay"] == f"{kept.shape}, shared with runs"


def test_what_nobody_prices_is_named_and_never_zero() -> None:
    plan = stack("chat")
    found = billed(plan)
    assert found.total.unpriced == ("internet traffic", "traffic between zones", "volumes")
    nodes = sum((p.usd_per_hour or 0) * p.node_count for p in plan.node_pools) * 730
    assert found.total.at_least == f"at least ${nodes:,.0f}"
    pool = replace(plan.node_pools[0], usd_per_hour=None)
    cost = replace(plan.cost, usd_per_hour=None, unpriced=(pool.name,))
    unknown = billed(replace(plan, node_pools=(pool,), cost=cost))
    assert "nodes l40s-x1" in unknown.total.unpriced
    assert not [p for p in unknown.parts if p.state == "priced"]


def test_said_volumes_and_prices_make_the_total_whole() -> None:
    said = Extras(
        traffic_bytes=(("internet", 12 * 10**12), ("cross_zone", 10**12)),
        load_balancers=1,
        storage_usd_per_gb_month=Decimal("0.08"),
    )
    found = billed(stack("chat"), said)
    amounts = {p.name: p.usd_per_month for p in found.parts}
    # 100 GB are free, 9,900 GB at 0.09, 2,000 GB at 0.085
    assert amounts["internet traffic"] == Decimal("891") + Decimal("170")
    assert amounts["traffic between zones"] == Decimal(20)
    assert amounts["load balancers"] == Decimal("0.0225") * 730
    assert found.total.unpriced == ()
    assert found.total.at_least == f"${float(found.total.usd):,.0f}"


def test_traffic_below_what_is_free_costs_nothing_and_unknown_traffic_is_unpriced() -> None:
    charges = load_tariffs().charges("aws", "internet-traffic")
    assert traffic("t", Decimal(60), charges).usd_per_month == 0
    assert traffic("t", Decimal(60), ()).state == "unpriced"


def test_volumes_cost_what_the_clusters_own_class_does() -> None:
    plan = stack("eks")
    work = plan.workloads[0]
    plain = tuple(replace(v, storage_class=None, shared=False) for v in work.volumes)
    alone = replace(plan, workloads=(replace(work, volumes=plain),))
    parts = {p.name: p for p in billed(alone).parts}
    gigabytes = Decimal(alone.workloads[0].storage_bytes) / 10**9
    assert gigabytes > 1
    assert parts["volumes"].usd_per_month == gigabytes * Decimal("0.08")
    shared = {p.name: p.state for p in billed(plan).parts}
    assert "volumes" not in shared
    assert shared["volumes of other classes"] == "unpriced"


def test_nat_of_google_is_paid_by_the_machine_up_to_a_most() -> None:
    plan = stack("gke")
    nodes = sum(p.node_count for p in plan.node_pools)
    two = {p.name: p.usd_per_month for p in billed(plan, Extras(nat_gateways=2)).parts}
    assert two["NAT gateways"] == 2 * nodes * Decimal("0.0014") * 730
    many = replace(plan, node_pools=(replace(plan.node_pools[0], node_count=50),))
    one = {p.name: p.usd_per_month for p in billed(many, Extras(nat_gateways=1)).parts}
    assert one["NAT gateways"] == Decimal("0.044") * 730


def test_what_somebody_saw_of_one_machine_is_no_list() -> None:
    """A spot price of AWS is known of one machine: of the others nobody knows, rather than that
    they are not offered."""
    found = billed(stack("eks"))
    assert way(found, "a100-sxm-40gb-x8", "spot").state == "unpriced"


def test_units_of_work_by_hand() -> None:
    plan = stack("chat")
    numbers = {e.quantity: e.value for e in plan.evidence}
    units = {(u.unit, u.basis): u.usd for u in unit_costs(plan.workloads[0], numbers)}
    (pool,) = plan.node_pools
    hour = Decimal("2.24208") * pool.node_count
    request = hour / (Decimal("1.5") * 3600)
    assert units["request", "mean load"] == pytest.approx(request)
    assert units["million output tokens", "mean load"] == pytest.approx(request / 250 * 10**6)
    assert units["million tokens", "mean load"] == pytest.approx(request / 950 * 10**6)
    (rate,) = (m for m in plan.workloads[0].metrics if m.name == "requests_per_second")
    most = hour / (Decimal(repr(rate.estimate.value)) * 3600)
    assert units["request", "limit"] == pytest.approx(most)


def test_idle_hours_are_paid_and_a_run_has_its_own_price() -> None:
    asked = stack("assistant-70b")
    served = next(w for w in billed(asked).work)
    assert served.idle_hours_per_day == 8
    assert asked.workloads[0].usd_per_hour is not None
    assert served.idle_usd_per_month == pytest.approx(asked.workloads[0].usd_per_hour * 730 / 3)
    tuned = {w.name: w for w in billed(stack("finetune")).work}["lora-70b"]
    plan = next(w for w in stack("finetune").workloads if w.name == "lora-70b")
    units = {u.unit: u.usd for u in tuned.units}
    assert units["run"] == plan.usd_per_run
    assert plan.training is not None
    tokens = plan.training.steps * plan.training.global_batch * plan.training.sequence_length
    assert units["million trained tokens"] == pytest.approx(units["run"] / tokens * 10**6)


def test_the_three_states_of_other_ways_to_pay() -> None:
    tuned = billed(stack("finetune"))
    year = way(tuned, "h100-sxm-80gb-x8", "1 year")
    assert (year.state, year.usd_per_hour) == ("priced", Decimal("61.383672"))
    assert year.break_even_share == pytest.approx(Decimal("0.6937"), abs=Decimal("0.0001"))
    assert way(tuned, "a100-sxm-80gb-x8-spot", "1 year").state == "unpriced"
    # the price list of AWS has no spot prices at all: nobody knows
    assert way(billed(stack("chat")), "l40s-x1", "spot").state == "unpriced"
    plan = stack("chat")
    pool = replace(plan.node_pools[0], node_type="a3-highgpu-1g", rented="gcp, us-central1")
    moved = billed(replace(plan, node_pools=(pool,)))
    assert way(moved, "l40s-x1", "on demand").state == "not offered"
    assert way(moved, "l40s-x1", "spot").state == "priced"


def test_how_often_spare_machines_are_taken_back_is_said_where_a_source_states_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Of AWS its Spot Advisor has ranges; of Google and Azure no source was read."""
    plan = stack("eks")
    pool = next(p for p in plan.node_pools if p.node_type == "g6e.2xlarge")
    spot = way(billed(plan), pool.name, "spot")
    assert (spot.state, spot.interrupted) == ("unpriced", "10-15% (list of 2025-06-28)")
    assert way(billed(stack("finetune")), "a100-sxm-80gb-x8-spot", "spot").interrupted == ""
    assert main(["cost", str(STACKS / "eks")]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "10-15% (list of 2025-06-28) of such machines are taken back in a month" in shown
    assert main(["catalog", "list", "interruptions", "p5.48xlarge us-east-1"]) == 0
    assert ">20% a month" in capsys.readouterr().out


def test_spot_pays_up_to_so_many_interruptions() -> None:
    spot = way(billed(stack("finetune")), "a100-sxm-80gb-x8-spot", "spot")
    kept = way(billed(stack("finetune")), "a100-sxm-80gb-x8-spot", "on demand")
    run = next(w for w in stack("finetune").workloads if w.interruption)
    assert run.interruption is not None
    assert run.interruption.usd is not None
    assert run.run_hours is not None
    assert spot.usd_per_hour is not None
    assert kept.usd_per_hour is not None
    assert spot.ends
    saved = (kept.usd_per_hour - spot.usd_per_hour) * run.run_hours
    assert spot.break_even_interruptions == saved / run.interruption.usd
    said = billed(stack("finetune"), Extras(interruptions=Decimal(2)))
    part = next(p for p in said.parts if p.name.startswith("interruptions"))
    nodes = run.replicas * run.nodes_per_replica
    assert part.usd_per_month == run.interruption.usd * 2 * nodes


@pytest.mark.parametrize(
    ("when", "last"),
    [
        ("2026", date(2026, 12, 31)),
        ("2026-04", date(2026, 4, 30)),
        ("2026-H1", date(2026, 6, 30)),
        ("2024-Q4", date(2024, 12, 31)),
        ("2026-07-20", date(2026, 7, 20)),
        ("soon", None),
        ("2026-02-31", None),
    ],
)
def test_how_old_a_price_is(when: str, last: date | None) -> None:
    assert last_day(when) == last
    if last:
        assert age_days(when, last) == 0


def test_old_prices_are_named_from_the_next_day_on() -> None:
    plan = stack("chat")
    assert not [o for o in billed(plan, as_of=date(2027, 1, 16)).old if o.when == "2026-07-20"]
    (old, *_) = billed(plan, as_of=date(2027, 1, 17)).old
    assert (old.when, old.days) == ("2026-07-20", 181)


def test_the_command_prints_and_fails_on_old_prices(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    costs = tmp_path / "costs.yaml"
    costs.write_text(
        "apiVersion: gpuplan.dev/costs/v1\ntraffic: {internet: 200 GB, cross_zone: 1 GB}\n"
        "storage: $0.10/GB/month\n"
    )
    chat = str(STACKS / "chat")
    assert main(["cost", chat, "--costs", str(costs), "--as-of", "2026-11-23"]) == 0
    shown = capsys.readouterr().out
    assert "all parts are priced" in shown
    assert "as you say" in shown
    assert max(len(line) for line in shown.splitlines()) <= 80
    arguments = ["cost", chat, "--as-of", "2026-11-23", "--max-age", "90d", "--exit-code"]
    assert main(arguments) == 1
    assert "old price: nodes l40s-x1" in capsys.readouterr().out
    assert main(["cost", chat, "--json", "--as-of", "2026-11-23"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert data["at_least"] is True
    assert data["unpriced"] == ["internet traffic", "traffic between zones", "volumes"]
    assert not [p for p in data["parts"] if p["state"] == "unpriced" and "usd_per_month" in p]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("traffic: {internet: 200}", "needs a unit"),
        ("trafic: {internet: 2 TB}", "did you mean 'traffic'"),
        ("storage: $0.10", "is not a price of storage"),
        ("owned: {purchase: $5/month}", "is not an amount of USD"),
        ("owned: {nodes: {l40: {power: 3 kW}, l40z: {power: 3 kW}}}", "unknown GPU 'l40z'"),
        ("owned: {tariff: {low: $0.3/kWh, typical: $0.1/kWh}}", "do not ascend"),
    ],
)
def test_a_wrong_costs_file_is_refused_at_its_line(
    text: str, words: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    costs = tmp_path / "costs.yaml"
    costs.write_text(f"apiVersion: gpuplan.dev/costs/v1\n{text}\n")
    assert main(["cost", str(STACKS / "chat"), "--costs", str(costs)]) == 2
    shown = capsys.readouterr().err
    assert words in shown
    assert "costs.yaml:2" in shown


def test_a_run_over_images_counts_images_and_no_tokens() -> None:
    plan = stack("vision")
    work = next(w for w in plan.workloads if w.training)
    assert work.training is not None
    units = {u.unit: u.usd for u in unit_costs(work, {})}
    images = work.training.steps * work.training.global_batch
    assert units["million trained images"] == pytest.approx(units["run"] / images * 10**6)
    assert "million trained tokens" not in units
