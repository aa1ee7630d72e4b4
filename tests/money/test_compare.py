"""Ways to run the same work, over months in which its load grows."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.tariffs import load_tariffs
from gpuplan.cli.main import main
from gpuplan.money.courses import (
    Course,
    Fleet,
    break_even_month,
    by_the_hour,
    carbon_tonnes,
    owned,
)
from gpuplan.money.hybrid import assumed_curve, shares, split
from gpuplan.money.inputs import Value, inputs
from gpuplan.money.monthly import by_the_month
from gpuplan.money.owned import Group, annuity
from gpuplan.money.tornado import bars, deciding
from gpuplan.plan.read import read_plan
from gpuplan.plan.wording import wins_at
from tests.money.test_owned import values
from tests.support.samples import serving_plan

D = Decimal
ROOT = Path(__file__).parents[2]
GROWING = """\
apiVersion: gpuplan.dev/v1
name: grow
platform: {target: kubernetes, gpus: [h100-sxm-80gb]}
workloads:
- name: assistant
  task: inference
  model: meta-llama/Llama-3.3-70B-Instruct
  precision: fp8
  growth: {factor: 4, horizon: 730 d}
  load:
    requests_per_second: {mean: 20, peak: 45}
    input_tokens: {mean: 1200, p95: 4000}
    output_tokens: {mean: 300, p95: 800}
    idle: 6 h
  slo: {time_to_first_token: 2 s, time_per_output_token: 50 ms}
"""
COSTS = """\
apiVersion: gpuplan.dev/costs/v1
traffic: {internet: 2 TB, cross_zone: 500 GB}
storage: $0.10/GB/month
carbon_grams_per_kwh: 300
owned:
  purchase:
    low: $280,000
    typical: $320,000
    high: $360,000
  power: 10.2 kW
  maintenance: 8 %
  staff: $6,000/month
  residual: 25 %
"""


def fleet(nodes: int, usd: str | None, watts: str | None = "1000") -> Fleet:
    pool = replace(serving_plan().node_pools[0], node_count=nodes)
    month = None if usd is None else D(usd)
    return Fleet(
        pools=(pool,), usd_per_month=month, unpriced=(), watts=None if watts is None else D(watts)
    )


def group(nodes: int, **given: str) -> list[Group]:
    amounts = {"purchase": "1200", "maintenance": "0", "staff": "0", "power": "1000"} | given
    return [Group(name="n", nodes=nodes, values=values(**amounts, pue="1", tariff="0.1"))]


POWER = D(73)  # of one node of `group` a month: 1 kW × 730 h × 0.1


def course(*months: int) -> Course:
    return Course(name="c", machines="", months=tuple(map(D, months)))


def test_the_fleet_of_a_quarter_is_paid_in_that_quarter() -> None:
    found = by_the_hour("eks", [fleet(1, "10"), fleet(2, "20")], 7)
    assert found.months == (10, 10, 10, 20, 20, 20, 20)
    assert found.nodes == (1, 2)
    assert found.total == 110
    unknown = by_the_hour("eks", [fleet(1, "10"), fleet(2, None)], 6)
    assert (unknown.total, unknown.why) == (None, "unpriced")


def test_runs_that_end_are_paid_once() -> None:
    runs = replace(fleet(1, "10"), usd_of_runs=D(25), runs_per_month=D(20))
    assert by_the_hour("eks", [runs, runs], 4).months == (30, 15, 10, 10)


def test_a_finetuning_run_costs_its_run_and_not_36_of_them(
    capsys: pytest.CaptureFixture[str],
) -> None:
    manifest = str(ROOT / "examples/finetune.yaml")
    assert main(["compare", manifest, "--targets", "kubernetes", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    (found,) = data["courses"]
    runs = read_plan(ROOT / "stacks/finetune").cost.usd_of_runs
    assert runs is not None
    assert found["months"][0] == pytest.approx(float(runs))
    assert found["total"] == pytest.approx(float(runs))
    assert "what ends runs once, from the first day" in data["assumed"]


def test_one_price_for_nodes_that_differ_is_said(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    costs = ["--costs", str(folder / "costs.yaml")]
    assert (
        main(["compare", str(ROOT / "examples/search.yaml"), "--targets", "eks,owned", *costs]) == 0
    )
    shown = " ".join(capsys.readouterr().out.split())
    assert "owned.purchase is taken of every node, with l4 as with l40s: it may differ" in shown


def server(nodes: int, name: str = "n", **given: str) -> Group:
    return Group(
        name=name, nodes=nodes, values=values(**{f"rented__{k}": v for k, v in given.items()})
    )


def test_servers_by_the_month_are_set_up_once() -> None:
    one, three = server(1, server="100", setup="7"), server(3, server="100", setup="7")
    found = by_the_month([[one], [three]], 6)
    assert found.months == (107, 100, 100, 314, 300, 300)
    assert by_the_month([[server(1)]], 3).total is None


def test_servers_are_paid_for_as_long_as_they_are_rented_at_least() -> None:
    """Of two that come in the fourth month for a year, nine months are left at the end of six."""
    one, three = server(1, server="100", months="12"), server(3, server="100", months="12")
    found = by_the_month([[one], [three]], 6)
    assert found.months == (100, 100, 100, 300, 300, 300 + 1 * 600 + 2 * 900)
    assert by_the_month([[one]], 12).total == 1200


def test_servers_with_unlike_gpus_have_a_price_each() -> None:
    both = [server(1, "a", server="100"), server(2, "b", server="10")]
    assert by_the_month([both], 1).months == (120,)
    why = by_the_month([[*both, server(1, "c")]], 1).why
    assert why.endswith("for c")


def test_a_listed_server_is_rented_where_nobody_states_one() -> None:
    """Eight H100 for a year, from the catalogue; a price that is stated has no least time of it."""
    plan = serving_plan()
    pool = replace(plan.node_pools[0], gpu="h100-sxm-80gb", gpus_per_node=8)
    listed = inputs((), pool, load_catalog(), load_tariffs())
    assert listed["rented.server"].typical * 12 == D("133414.80")
    assert listed["rented.months"].typical == 12
    assert "servers/qubrid.yaml" in listed["rented.server"].source
    own = values(rented__server="100").values()
    assert "rented.months" not in inputs(own, pool, load_catalog(), load_tariffs())


def test_nodes_are_bought_when_the_load_needs_them_and_sold_at_the_end() -> None:
    found = owned([group(1, residual="0.5"), group(3, residual="0.5")], 6)
    late = 3 * POWER
    assert found.months == (1200 + POWER, POWER, POWER, 2400 + late, late, late - 1800)
    assert found.nodes == (1, 3)


def test_what_is_owed_on_machines_is_paid_at_the_end() -> None:
    financed = {"owned__financing__rate": "0.12", "owned__financing__months": "12"}
    found = owned([group(1, **financed)], 3)
    payment = annuity(D(1200), D("0.12"), 12)
    left = D(1200)
    for _ in range(3):
        left = left * D("1.01") - payment
    assert found.months[0] == payment + POWER
    assert float(found.months[2]) == pytest.approx(float(payment + POWER + left))


def test_break_even_is_the_month_from_which_it_holds() -> None:
    rented = course(10, 10, 10, 10, 10, 10)
    assert break_even_month(course(25, 1, 1, 1, 1, 1), rented) == 3
    assert break_even_month(course(5, 30, 1, 1, 1, 1), rented) == 4  # not month 1
    assert break_even_month(course(5, 5, 5, 5, 5, 5), rented) == 1
    # what is got back in the last month is no break-even
    assert break_even_month(course(70, 1, 1, 1, 1, -60), rented) is None


def test_carbon_by_hand_and_unknown_without_power() -> None:
    found = carbon_tonnes([fleet(1, "1", "2000")], 3, D(100), D("1.5"))
    assert found == 2 * D("1.5") * 730 * 3 * 100 / 10**6
    assert carbon_tonnes([fleet(1, "1", None)], 3, D(100), D(1)) is None


def test_a_node_is_owned_when_it_is_needed_often_enough() -> None:
    half = [(D("0.5"), D("0.5")), (D(1), D(1))]
    assert shares(half, 2) == (1, D("0.5"))
    assert shares(half, 4) == (1, 1, D("0.5"), D("0.5"))
    found = split(half, 4, D(60), D(100))
    assert (found.base, found.peak, found.quantile) == (2, 2, D("0.6"))
    assert found.rented_share == 1  # two nodes in half of the hours
    assert split(half, 4, D(50), D(100)).base == 4
    assert split(half, 4, D(101), D(100)).base == 0


@pytest.mark.parametrize(
    ("mean", "peak", "busy"), [("20", "45", "0.75"), ("9", "10", "1"), ("5", "5", "1")]
)
def test_the_assumed_curve_has_the_mean_and_the_peak(mean: str, peak: str, busy: str) -> None:
    curve = assumed_curve(D(mean), D(peak), D(busy))
    before, area = D(0), D(0)
    for hours, load in curve:
        area += (hours - before) * load
        before = hours
    assert before == 1
    assert float(area * D(peak)) == pytest.approx(float(D(mean) * D(busy)), rel=0.01)


@pytest.mark.parametrize(("needed", "said"), [(3.0, "$3.00/h"), (2.0, "$2.00/h"), (1.9, None)])
def test_a_price_that_would_win_is_said_down_to_half_of_what_is_paid(
    needed: float, said: str | None
) -> None:
    assert wins_at({"unit": "USD/h", "needed": needed, "now": 4.0}) == said


def test_the_input_that_flips_the_decision_is_named() -> None:
    def ranged(name: str, low: str, typical: str, high: str) -> Value:
        return Value(name=name, unit="", low=D(low), typical=D(typical), high=D(high), source="t")

    known = {v.name: v for v in (ranged("a", "0", "5", "20"), ranged("b", "1", "2", "3"))}
    known["c"] = replace(known["a"], name="c", low=None, high=None)
    found = bars(known, lambda v: v["a"].typical - 10 + v["b"].typical)
    assert [(b.name, b.at_low, b.at_high) for b in found] == [("a", -8, 12), ("b", -4, -2)]
    assert deciding(found) == ("a",)
    assert bars(known, lambda _: None) == ()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("compare")
    (path / "grow.yaml").write_text(GROWING, encoding="utf-8")
    (path / "costs.yaml").write_text(COSTS, encoding="utf-8")
    return path


def compared(
    folder: Path, capsys: pytest.CaptureFixture[str], *words: str
) -> dict[str, dict[str, Any]]:
    arguments = ["compare", str(folder / "grow.yaml"), "--costs", str(folder / "costs.yaml")]
    assert main([*arguments, "--json", *words]) == 0
    data = json.loads(capsys.readouterr().out)
    return {"all": data} | {c["name"]: c for c in data["courses"]}


def test_the_fleet_grows_and_owned_nodes_break_even(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = compared(folder, capsys, "--targets", "gke,eks,owned,hybrid")
    nodes = found["eks"]["nodes"]
    assert nodes == sorted(nodes)
    assert nodes[0] < nodes[-1]
    assert nodes[8:] == [nodes[-1]] * 4  # two years of growth, then none
    # a month of EKS: nodes, a control plane, 2 TB out less the free 100 GB, 500 GB between zones
    month = nodes[0] * D("55.04") * 730 + 73 + D("0.09") * 1900 + D("0.02") * 500
    volumes = D(str(found["eks"]["months"][0])) - month
    assert 0 < volumes < 200
    assert found["all"]["best"] == "eks"
    owned_nodes = found["owned"]["nodes"]
    assert owned_nodes == nodes
    assert found["owned"]["months"][0] > 320000 * nodes[0]
    assert 3 <= found["all"]["break_even"] < 36
    assert found["hybrid"]["total"] < found["owned"]["total"] < found["eks"]["total"]
    assert found["gke"]["carbon_tonnes"] > 0
    assert "carbon_tonnes" not in found["eks"]  # no source states its grid's factor
    assert found["owned"]["carbon_tonnes"] > 0


def test_a_region_of_ones_own_and_what_does_not_fit(
    folder: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    found = compared(folder, capsys, "--targets", "gke:europe-west1,gke", "--horizon", "3mo")
    assert found["gke:europe-west1"]["total"] > found["gke"]["total"]
    small = GROWING.replace("gpus: [h100-sxm-80gb]}", "gpus: [a10]}")
    (tmp_path / "grow.yaml").write_text(small, encoding="utf-8")
    (tmp_path / "costs.yaml").write_text(COSTS, encoding="utf-8")
    absent = compared(tmp_path, capsys, "--targets", "gke", "--horizon", "3mo")
    assert "no plan" in absent["gke"]["why"]
    assert absent["gke"]["total"] is None


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--targets", "eks,ownd"), "did you mean 'owned'"),
        (("--targets", "gke:mars-1"), "no price list of gke has a region 'mars-1'"),
        (("--targets", "libvirt:x"), "no price list of libvirt has a region 'x'"),
    ],
)
def test_wrong_targets_are_refused(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    assert main(["compare", str(folder / "grow.yaml"), *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize("horizon", ["0mo", "121mo", "soon", "-3", "1.5y"])
def test_wrong_horizons_are_refused(folder: Path, horizon: str) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["compare", str(folder / "grow.yaml"), f"--horizon={horizon}"])
    assert stopped.value.code == 2


@pytest.fixture(scope="module")
def page(folder: Path) -> str:
    path = folder / "page.html"
    arguments = ["compare", str(folder / "grow.yaml"), "--costs", str(folder / "costs.yaml")]
    assert main([*arguments, "--html", str(path)]) == 0
    first = path.read_text(encoding="utf-8")
    assert main([*arguments, "--html", str(path)]) == 0
    assert path.read_text(encoding="utf-8") == first
    return first


def test_the_page_needs_nothing_else_and_says_what_its_charts_show(page: str) -> None:
    assert not re.search(r"https?:|<script|<link|@import|url\(", page)
    charts = re.findall(r"<svg.*?</svg>", page, re.DOTALL)
    assert len(charts) == 2
    for text in charts:
        chart = ET.fromstring(text)
        title, words = (chart.find(name) for name in ("title", "desc"))
        assert title is not None
        assert words is not None
        assert chart.get("aria-labelledby") == f"{title.get('id')} {words.get('id')}"
        assert re.search(r"\d", words.text or "")


def test_the_page_can_be_used_by_keyboard_and_printed(page: str) -> None:
    targets = set(re.findall(r'<a href="#([\w-]+)"', page))
    assert targets == {"paid", "tornado", "ways", "quarters", "inputs"}
    assert targets <= set(re.findall(r' id="([\w-]+)"', page))
    assert page.count('tabindex="0" role="region" aria-label=') == 3
    charts = len(re.findall(r"<svg", page))
    assert (
        len(re.findall(r'<figure [^>]*class="scroll" tabindex="0" aria-labelledby=', page))
        == charts
    )
    assert "min-width: 640px" in page, (
        "a chart that is narrower than that cannot be read: it scrolls"
    )
    assert "@media print" in page
    assert page.count('<th scope="row">') >= 6


def test_no_line_leaves_its_chart(page: str) -> None:
    for point in re.findall(r"[ML](-?\d+) (-?\d+)", page):
        x, y = map(int, point)
        assert 0 <= x <= 960
        assert 0 <= y <= 700


def test_the_table_fits_a_terminal(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["compare", str(folder / "grow.yaml"), "--costs", str(folder / "costs.yaml")]
    assert main(arguments) == 0
    shown = capsys.readouterr().out
    assert max(len(line) for line in shown.splitlines()) <= 80
    assert "cheapest without owning: rented, ≥ $" in shown  # by the month, from the catalogue
    hourly = [*arguments, "--targets", "eks,owned"]
    assert main(hourly) == 0
    assert "owning costs no more than eks from the end of month" in capsys.readouterr().out


def test_the_price_of_a_rented_server_can_flip_the_decision(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "grow.yaml").write_text(GROWING, encoding="utf-8")
    rented = "rented:\n  server: {low: $9000/month, typical: $11000/month, high: $40000/month}\n"
    (tmp_path / "costs.yaml").write_text(COSTS + rented, encoding="utf-8")
    found = compared(tmp_path, capsys, "--targets", "eks,owned,rented")["all"]
    assert found["best"] == "rented"
    bar = next(b for b in found["bars"] if b["name"] == "rented.server")
    assert bar["flips"]
    assert bar["at_high"] < 0 < bar["at_low"]  # owning less renting


def test_the_example_of_a_costs_file_is_read_and_names_what_decides(
    capsys: pytest.CaptureFixture[str],
) -> None:
    costs = ["--costs", str(ROOT / "examples/costs/rack.yaml")]
    assert main(["compare", str(ROOT / "examples/assistant-70b.yaml"), *costs, "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    named = {c["name"]: c for c in data["courses"]}
    assert list(named) == ["eks", "gke", "aks", "owned", "rented", "hybrid"]
    volumes = named["rented"]["months"][0] - 19000
    assert 0 < volumes < 100
    assert named["rented"]["unpriced"] == ["internet traffic"]
    assert "internet traffic" in named["owned"]["unpriced"]
    assert "internet traffic" in named["hybrid"]["unpriced"]
    ranges = {bar["name"] for bar in data["bars"]}
    assert {"owned.staff", "owned.tariff", "owned.pue", "owned.residual"} <= ranges
    assert "break_even" not in data  # the rent is low: only selling them at the end decides
    assert named["owned"]["total"] < named["rented"]["total"]
    widths = [abs(bar["at_high"] - bar["at_low"]) for bar in data["bars"]]
    assert widths == sorted(widths, reverse=True)


def test_owning_that_pays_only_by_the_sale_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    costs = ["--costs", str(ROOT / "examples/costs/rack.yaml")]
    assert main(["compare", str(ROOT / "examples/assistant-70b.yaml"), *costs]) == 0
    shown = capsys.readouterr().out
    assert "owning costs no more than rented once the machines are sold at the end" in shown
