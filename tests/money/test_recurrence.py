"""How often a schedule comes true, beside a calendar that is walked day by day, and what that
costs: the same on every target that starts work again."""

from __future__ import annotations

from collections import Counter
from datetime import date, timedelta
from decimal import Decimal
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from gpuplan.placement.pools.stages import MONTH, Stage, both, hours_of, node_hours, passing_hours
from gpuplan.plan.costs.recurrence import most_starts
from gpuplan.plan.model import Plan
from gpuplan.plan.read import read_plan
from gpuplan.plan.wording import price

NIGHTLY = """\
- name: nightly
  task: batch
  model: Qwen/Qwen3-8B
  precision: fp8
  load: {requests: 50000, input_tokens: 800, output_tokens: 200}
  slo: {finish_within: 10 h}
  schedule: "30 2 * * 1-5"
"""
ONCE = NIGHTLY.replace("nightly", "once").rpartition("  schedule")[0]
SERVED = """\
- name: chat
  task: inference
  model: Qwen/Qwen3-8B
  precision: fp8
  load: {requests_per_second: 2, input_tokens: 1000, output_tokens: 300}
"""
WEEKDAYS = 23  # of a month with 31 days that begins on a Monday, a Tuesday or a Wednesday


@pytest.mark.parametrize(
    ("schedule", "starts"),
    [
        ("0 3 * * *", 31),
        ("30 2 * * 1-5", WEEKDAYS),
        ("0 0 * * 7", 5),
        ("*/15 * * * *", 31 * 24 * 4),
        ("0 9-17/4 1,15 * *", 6),
        ("0 0 29 2 *", 1),
        ("0 0 31 4,6,9,11 *", 0),
        ("0 0 * * 6,7", 10),
        ("5/20 * 1 1 *", 24 * 3),
    ],
)
def test_starts_of_the_month_that_has_most(schedule: str, starts: int) -> None:
    assert most_starts(schedule) == starts


# Each with the days that cron takes: either of two that are said, both where one has a star.
DAYS = {
    "* * 1-5": lambda d: d.isoweekday() <= 5,
    "1,15 * 3": lambda d: d.day in (1, 15) or d.isoweekday() == 3,
    "*/3 2 0": lambda d: d.month == 2 and d.day % 3 == 1 and d.isoweekday() == 7,
    "31 */2 *": lambda d: d.day == 31 and d.month % 2 == 1,
    "13 * 5": lambda d: d.day == 13 or d.isoweekday() == 5,
    "30 2 1": lambda d: d.month == 2 and (d.day == 30 or d.isoweekday() == 1),
}


@pytest.mark.parametrize("days", DAYS)
def test_no_month_of_forty_years_has_more(days: str) -> None:
    every = (date(2000, 1, 1) + timedelta(days=n) for n in range(40 * 366))
    counts = Counter((day.year, day.month) for day in every if DAYS[days](day))
    assert most_starts(f"0 0 {days}") == max(counts.values())


def test_hours_of_a_month_are_no_more_than_it_has() -> None:
    assert hours_of(None, None) is None
    assert node_hours(()) == node_hours((), Decimal(10)) == 0, "no nodes, no hours"
    assert hours_of(Decimal(2), None) == 2
    assert hours_of(Decimal(2), "0 3 * * *") == 62
    assert hours_of(Decimal(40), "0 3 * * *") == MONTH
    assert hours_of(Decimal(900), "0 3 1 * *") == 900, "longer than a month anyway"


def test_what_recurs_is_paid_beside_what_ends_and_never_beyond_all_hours() -> None:
    """One node stays; one more for 62 hours of a month; two more than stays for 100 hours once."""
    stays = Stage(hours=None, nodes=1)
    ends = (stays, Stage(hours=Decimal(100), nodes=3))
    again = (stays, Stage(hours=Decimal(62), nodes=2))
    made = both(ends, again, 3)
    assert passing_hours(made, recurs=True) == 62
    assert passing_hours(made, recurs=False) == 200
    assert node_hours(made, MONTH) == MONTH + 262
    long = both((Stage(hours=Decimal(5000), nodes=1),), (Stage(hours=MONTH, nodes=1),), 1)
    assert node_hours(long, MONTH) == MONTH, "a node has no more hours"
    free = both((stays, Stage(hours=Decimal(9), nodes=1)), (stays, Stage(hours=MONTH, nodes=1)), 1)
    assert node_hours(free, MONTH) == MONTH, "nodes that stay are paid once"


def compiled(folder: Path, target: str, *workloads: str, more: str = "", gpus: int = 1) -> Plan:
    folder.mkdir(parents=True)
    manifest = f"""\
apiVersion: gpuplan.dev/v1
name: box
platform:
  target: {target}
  gpus: [l40s]
  node: {{count: 1, gpus: {gpus}, cpu_cores: 64, memory: 256 GiB}}
{more}workloads:
{"".join(workloads)}"""
    (folder / "box.yaml").write_text(manifest, encoding="utf-8")
    assert main(["compile", str(folder / "box.yaml"), "-o", str(folder / "out")]) in (0, 1)
    return read_plan(folder / "out/box")


@pytest.mark.parametrize(
    ("hours", "said"),
    [
        (5, "at most 31 starts a month: $310/month"),
        (73, "at most 31 starts a month, as many as a month has time for: $1,460/month"),
    ],
)
def test_one_run_after_the_other_is_paid_as_far_as_a_month_goes(hours: int, said: str) -> None:
    """$2 an hour: 31 runs of 5 hours, ten of 73."""
    time = {"name": "time_to_finish", "estimate": {"value": hours * 3600.0}}
    work = {"usd_per_hour": "2", "metrics": [time], "schedule": "0 2 * * *"}
    assert price(work).split(", ", 2)[2] == said


def test_a_schedule_is_paid_as_often_as_it_starts(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the plan, its texts, the bill and the budget."""
    plan = compiled(tmp_path / "a", "docker", NIGHTLY, more="  budget: $60/month\n")
    (work,) = plan.workloads
    assert work.usd_per_run is not None
    month = work.usd_per_run * WEEKDAYS
    assert work.usd_per_month == month
    assert plan.cost.recurring_usd_per_month == pytest.approx(month)
    assert plan.cost.usd_per_month == pytest.approx(month)
    assert plan.cost.usd_of_runs is None
    shown = " ".join(capsys.readouterr().out.split())
    assert f"at most {WEEKDAYS} starts a month: ${month:.2f}/month" in shown
    assert "/month for what recurs" in shown
    readme = (tmp_path / "a/out/box/README.md").read_text("utf-8")
    assert f"at most {WEEKDAYS} starts a month" in readme
    assert main(["check", str(tmp_path / "a/out/box")]) == 1
    assert f"the plan costs ${month:.2f} a month; the budget is $60.00" in " ".join(
        capsys.readouterr().out.split()
    )
    assert main(["cost", str(tmp_path / "a/out/box")]) == 0
    assert f"nightly {WEEKDAYS} times" in " ".join(capsys.readouterr().out.split())
    once = compiled(tmp_path / "b", "docker", ONCE)
    assert once.cost.usd_of_runs == pytest.approx(work.usd_per_run)
    assert once.cost.recurring_usd_per_month is None
    assert main(["diff", str(tmp_path / "b/out/box"), str(tmp_path / "a/out/box")]) == 0


def test_nodes_that_stay_are_not_paid_again(tmp_path: Path) -> None:
    plan = compiled(tmp_path / "a", "docker", SERVED, NIGHTLY, gpus=2)
    assert plan.cost.recurring_usd_per_month == 0
    assert plan.cost.usd_per_month == plan.cost.staying_usd_per_month
    assert "what recurs takes GPUs that are paid for anyway" in plan.cost.amounts


def test_clusters_price_each_start_too(tmp_path: Path) -> None:
    (work,) = compiled(tmp_path / "a", "kubernetes", NIGHTLY).workloads
    assert work.schedule is not None
    assert work.usd_per_run is not None
    assert work.usd_per_month == work.usd_per_run * WEEKDAYS


def test_days_that_never_come_are_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "box.yaml").write_text(
        "apiVersion: gpuplan.dev/v1\nname: box\nplatform: {target: docker, gpus: [l40s]}\n"
        "workloads:\n" + NIGHTLY.replace("30 2 * * 1-5", "0 0 31 4 *"),
        encoding="utf-8",
    )
    assert main(["compile", str(tmp_path / "box.yaml"), "-o", str(tmp_path)]) == 2
    assert "names days that no month has" in " ".join(capsys.readouterr().err.split())
