"""Several regions of which any one may be lost."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from gpuplan.money.courses import Fleet
from gpuplan.money.regions import courses
from gpuplan.plan.outside.regions import Limits, Region, refused
from tests.money.test_compare import GROWING, fleet

D = Decimal
REGIONS = """\
apiVersion: gpuplan.dev/costs/v1
traffic: {internet: 2 TB, cross_zone: 500 GB}
storage: $0.10/GB/month
regions:
- {target: "gke:europe-west4", latency: 18 ms, residency: EU}
- {target: "gke:europe-west1", latency: 25 ms, residency: EU}
- {target: "gke:europe-west3", latency: 60 ms, residency: EU}
- {target: "eks:us-east-1", latency: 95 ms, residency: US}
- {target: "gke:us-central1"}
limits: {latency: 60 ms, residency: [EU]}
"""


def test_limits_leave_out_before_any_price_and_silence_is_no_proof() -> None:
    regions = (
        Region(target="a", latency_seconds=0.05, residency="EU"),
        Region(target="b", latency_seconds=0.051, residency="EU"),
        Region(target="c", latency_seconds=0.01, residency="US"),
        Region(target="d"),
    )
    limits = Limits(latency_seconds=0.05, residency=("EU", "CH"))
    assert {r.target: r.why for r in refused(regions, limits)} == {
        "b": "51 ms away, of 50 ms",
        "c": "data in US, and not in EU or CH",
        "d": "nobody says its latency; nobody says where its data is",
    }
    assert refused(regions, Limits()) == ()


def test_each_carries_its_part_and_the_cheapest_are_taken() -> None:
    asked: list[tuple[str, Decimal]] = []
    prices = {"a": 30, "b": 10, "c": 20}

    def fleets(target: str, share: Decimal) -> list[Fleet] | str:
        asked.append((target, share))
        return [fleet(2, str(prices[target] * share))] if target in prices else "no plan"

    regions = [Region(target=t) for t in ("a", "b", "c")]
    two, three = courses(regions, Limits(), fleets, 3)
    assert (two.name, two.months, two.nodes) == ("2 regions", (30, 30, 30), (4,))
    assert "b:" in two.machines
    assert "a:" not in two.machines
    assert three.months == (30, 30, 30)  # half of 60
    assert {share for _, share in asked} == {D(1), D("0.5")}
    (none,) = courses([Region(target="b"), Region(target="x")], Limits(), fleets, 3)
    assert (none.total, none.why) == (None, "1 of them can be planned and priced")
    assert list(courses(regions[:1], Limits(), fleets, 3)) == []


def test_two_regions_double_and_three_add_half(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "grow.yaml").write_text(GROWING, encoding="utf-8")
    (tmp_path / "costs.yaml").write_text(REGIONS, encoding="utf-8")
    words = ["compare", str(tmp_path / "grow.yaml"), "--costs", str(tmp_path / "costs.yaml")]
    assert main([*words, "--targets", "gke", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    named = {c["name"]: c for c in data["courses"]}
    alone = named["gke"]["nodes"][-1]
    assert named["2 regions"]["nodes"][-1] == 2 * alone
    assert 1.4 * alone <= named["3 regions"]["nodes"][-1] <= 1.7 * alone
    assert named["3 regions"]["total"] < named["2 regions"]["total"]
    assert "eks" not in named["3 regions"]["machines"]
    assert [r["target"] for r in data["refused"]] == ["eks:us-east-1", "gke:us-central1"]
    assert data["best"] == "gke"


def test_an_unknown_region_of_a_costs_file_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "grow.yaml").write_text(GROWING, encoding="utf-8")
    wrong = REGIONS.replace("gke:europe-west4", "gke:europe-west99")
    (tmp_path / "costs.yaml").write_text(wrong, encoding="utf-8")
    words = ["compare", str(tmp_path / "grow.yaml"), "--costs", str(tmp_path / "costs.yaml")]
    assert main([*words, "--targets", "gke"]) == 2
    assert "no price list of gke has a region .europe-west99" in capsys.readouterr().err.replace(
        "'", "."
    )
