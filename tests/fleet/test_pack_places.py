"""What `pack` rents is in one place, as the nodes of a cluster are; or it says that it is not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog.load import Catalog, load_catalog
from gpuplan.catalog.shapes import Wanted as Sellers
from gpuplan.catalog.shapes import shapes
from gpuplan.cli.main import main
from gpuplan.fleet.build import Asked, Built, build
from gpuplan.fleet.places import _tried
from gpuplan.fleet.requests.reading import Wanted

COLUMNS = "name,count,gpus,gpu,cpu_cores,memory\n"
BIG, SMALL = "big,3,8,h100-sxm-80gb,32,512 GiB\n", "small,5,1,a10,4,16 GiB\n"


def packed(
    folder: Path, capsys: pytest.CaptureFixture[str], rows: str, *words: str
) -> dict[str, Any]:
    requests = folder / "requests.csv"
    requests.write_text(COLUMNS + rows, encoding="utf-8")
    assert main(["pack", str(requests), *words, "--json"]) == 0
    answer: dict[str, Any] = json.loads(capsys.readouterr().out)
    return answer


def places(*answers: dict[str, Any]) -> set[str]:
    """Of the hosts that are used."""
    return {h["rented"] for answer in answers for h in answer["hosts"] if h["used"]}


def test_types_whose_cheapest_machines_are_apart_are_rented_together(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    buy = ("--buy", "h100-sxm-80gb", "--buy", "a10")
    apart = [packed(tmp_path, capsys, *case) for case in ((BIG, *buy), (SMALL, *buy))]
    both = packed(tmp_path, capsys, BIG + SMALL, *buy)
    assert len(places(*apart)) == 2, "the case is none any more: take another"
    assert len(places(both)) == 1
    (told,) = (p["message"] for p in both["problems"] if "in one place" in p["message"])
    least = sum(a["usd_per_hour"] for a in apart)
    assert f"cost ${least:,.0f}/h" in told
    assert f"for ${both['usd_per_hour']:,.0f}/h" in told
    assert both["usd_per_hour"] > least


def test_a_place_that_does_not_have_what_is_wanted_keeps_no_other_from_being_tried(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing can be asked of the first place: the answer is in the one that it was in."""
    buy = ("--buy", "h100-sxm-80gb", "--buy", "a10")
    usual = packed(tmp_path, capsys, BIG + SMALL, *buy)
    tried = []

    def built(wanted: Wanted, asked: Asked, catalog: Catalog) -> Built:
        tried.append(", ".join(asked.place or ()))
        made = build(wanted, asked, catalog)
        return replace(made, problem=None) if len(tried) == 1 else made

    def backwards(*arguments: Any) -> list[tuple[str, str]]:
        return [*_tried(*arguments)][::-1]

    monkeypatch.setattr("gpuplan.fleet.places.build", built)
    monkeypatch.setattr("gpuplan.fleet.places._tried", backwards)
    answer = packed(tmp_path, capsys, BIG + SMALL, *buy)
    assert tried[0] not in places(usual), "the case is none any more: take another"
    assert places(answer) == places(usual)
    assert answer["usd_per_hour"] == usual["usd_per_hour"]


def test_another_type_to_choose_never_costs_more(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = "any,40,1,,4,16 GiB\n" + BIG
    alone = packed(tmp_path, capsys, rows, "--buy", "h100-sxm-80gb")
    more = packed(tmp_path, capsys, rows, "--buy", "h100-sxm-80gb", "--buy", "a10")
    assert more["usd_per_hour"] <= alone["usd_per_hour"]


def test_what_no_place_has_together_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = SMALL + "other,1,1,l4,4,16 GiB\n"
    answer = packed(tmp_path, capsys, rows, "--buy", "a10", "--buy", "l4")
    assert len(places(answer)) == 2
    (told,) = (p for p in answer["problems"] if "not in one place" in p["message"])
    assert told["severity"] == "warning"
    assert all(place in told["message"] for place in places(answer))


def test_what_stands_stays_where_it_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    buy = ("--buy", "h100-sxm-80gb", "--buy", "l4")
    rows = BIG + "small,5,1,l4,4,16 GiB\n"
    now = packed(tmp_path, capsys, rows, *buy)
    (tmp_path / "now.json").write_text(json.dumps(now), encoding="utf-8")
    again = packed(tmp_path, capsys, rows, *buy, "--keep", str(tmp_path / "now.json"))
    assert again["moved"] == []
    assert places(again) == places(now)


def test_who_names_no_region_rents_in_no_place_that_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (shape, *_) = shapes(load_catalog(), "h100-sxm-80gb", Sellers())
    assert shape.price is not None
    anywhere = replace(shape, price=replace(shape.price, region=None))
    monkeypatch.setattr("gpuplan.fleet.buy.shapes", lambda *_: (anywhere,))
    answer = packed(tmp_path, capsys, BIG, "--buy", "h100-sxm-80gb")
    assert places(answer) == {None}
