"""New price lists: each form is read, what is odd is named, and nothing is written in silence."""

from __future__ import annotations

import json
import shutil
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog import compile as compiler
from gpuplan.catalog.market import Market, load_market
from gpuplan.catalog.update.changes import Review, review
from gpuplan.catalog.update.quotes import Quote
from gpuplan.catalog.update.readers import Unreadable, read
from gpuplan.catalog.update.write import ListSource, written
from gpuplan.cli.main import main

D = Decimal
DAY = date(2026, 11, 23)
P5 = "aws,p5.48xlarge,us-east-1"
HEAD = "provider,instance,region,usd_per_hour,capacity,date\n"
SKYPILOT = (
    "InstanceType,AcceleratorName,AcceleratorCount,vCPUs,MemoryGiB,Price,SpotPrice,Region,"
    "AvailabilityZone,GpuInfo\n"
    "p5.48xlarge,H100,8,192,2048,60.5,20.1,us-east-1,us-east-1a,\n"
    "p5.48xlarge,H100,8,192,2048,60.5,21.2,us-east-1,us-east-1b,\n"
    "p5.48xlarge,H100,8,192,2048,,,us-east-2,us-east-2a,\n"
)


def product(**changed: str) -> str:
    facts = {
        "operatingSystem": "Linux",
        "tenancy": "Shared",
        "preInstalledSw": "NA",
        "capacitystatus": "Used",
        "instanceType": "p5.48xlarge",
        "regionCode": "us-east-1",
    } | changed
    dimension = {"unit": "Hrs", "pricePerUnit": {"USD": "60.5000000000"}}
    terms = {"OnDemand": {"x": {"priceDimensions": {"y": dimension}}}, "Reserved": {"z": {}}}
    row = {"product": {"attributes": facts}, "terms": terms, "publicationDate": "2026-11-20T01:02Z"}
    return json.dumps(row)


def retail(**changed: Any) -> dict[str, Any]:
    return {
        "currencyCode": "USD",
        "retailPrice": 99.5,
        "armRegionName": "eastus",
        "armSkuName": "Standard_ND96isr_H100_v5",
        "skuName": "ND96isr H100 v5",
        "meterName": "ND96isr H100 v5",
        "productName": "Virtual Machines NDv5 Series",
        "type": "Consumption",
        "unitOfMeasure": "1 Hour",
        "effectiveStartDate": "2026-10-01T00:00:00Z",
    } | changed


def found(quotes: list[Quote]) -> list[tuple[str, str, str, str, Decimal, str | None]]:
    return [(*q.key, q.usd_per_hour, q.date) for q in quotes]


def test_every_form_of_list_is_read() -> None:
    own = f"{HEAD}{P5},$60.5,,2026-11-20\n{P5},,spot,\n"
    on_demand = ("aws", "p5.48xlarge", "us-east-1", "on-demand", D("60.5"))
    assert found(read(own, None)) == [(*on_demand, "2026-11-20")]
    tables = found(read(SKYPILOT, "aws"))
    assert tables[0] == (*on_demand, None)
    assert len(tables) == 4  # an empty cell is no price
    others = [product(operatingSystem="Windows"), product(tenancy="Dedicated")]
    others += [
        product(capacitystatus="AllocatedCapacityReservation"),
        product(preInstalledSw="SQL"),
    ]
    answer = json.dumps({"PriceList": [product(), *others]})
    assert found(read(answer, None)) == [(*on_demand, "2026-11-20")]
    spot = {
        "AvailabilityZone": "us-east-1b",
        "InstanceType": "p5.48xlarge",
        "ProductDescription": "Linux/UNIX",
        "SpotPrice": "19.5",
        "Timestamp": "2026-11-22T10:00:00Z",
    }
    history = {"SpotPriceHistory": [spot, spot | {"ProductDescription": "Windows"}]}
    expected = ("aws", "p5.48xlarge", "us-east-1", "spot", D("19.5"), "2026-11-22")
    assert found(read(json.dumps(history), None)) == [expected]


def test_of_azure_only_linux_by_the_hour_is_read() -> None:
    rows = [
        retail(),
        retail(skuName="ND96isr H100 v5 Spot", retailPrice=30),
        retail(skuName="ND96isr H100 v5 Low Priority"),
        retail(productName="Virtual Machines NDv5 Series Windows"),
        retail(type="Reservation"),
    ]
    quotes = read(json.dumps({"Items": rows}), None)
    assert [(q.capacity, q.usd_per_hour) for q in quotes] == [
        ("on-demand", D("99.5")),
        ("spot", 30),
    ]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "it has the columns a, b and not provider"),
        (f"{HEAD}{P5},dear,,\n", "row 2: 'dear' is no price"),
        (f"{HEAD}{P5},-3,,\n", "row 2: '-3' is no price"),
        (f"{HEAD}{P5},NaN,,\n", "row 2: 'NaN' is no price"),
        (f"{HEAD}{P5},3,flex,\n", "row 2: 'flex' is neither on-demand nor spot"),
        ("{", "neither JSON nor CSV"),
        ("[" * 5_000, "nested too deeply"),
        ('{"a": 1}', "none of PriceList"),
        ('{"PriceList": [{}]}', "a row lacks"),
        (SKYPILOT, "--provider"),
        ('{"Items": [' + json.dumps(retail(currencyCode="EUR")) + "]}", "not USD"),
        ('{"Items": [3]}', "a row lacks"),
    ],
)
def test_what_is_no_list_is_refused_with_its_row(text: str, words: str) -> None:
    with pytest.raises(Unreadable, match=words.replace("'", ".")):
        read(text, None)


def reviewed(*rows: str, market: Market | None = None) -> Review:
    return review(read(HEAD + "\n".join(rows), None), market or load_market(), DAY)


def test_what_would_change_is_told_apart() -> None:
    both = reviewed(
        f"{P5},60.5,,2026-11-20",
        "aws,p5.48xlarge,us-west-2,56,,",
        "aws,p5e.48xlarge,us-east-1,0,,",
        "aws,p9.huge,us-east-1,7,,",
    )
    kinds = {c.quote.instance + " " + c.quote.region: c.kind for c in both.changes}
    assert kinds == {
        "p5.48xlarge us-east-1": "changed",
        "p5.48xlarge us-west-2": "new",
        "p5e.48xlarge us-east-1": "refused",
        "p9.huge us-east-1": "unknown machine",
    }
    (changed,) = both.of("changed")
    assert (changed.before, changed.before_date, changed.date) == (
        D("55.04"),
        "2026-07-20",
        "2026-11-20",
    )
    assert changed.share == pytest.approx(60.5 / 55.04 - 1)
    (new,) = both.of("new")
    assert new.date == "2026-11-23"  # the list's own day
    assert reviewed(f"{P5},55.04,,").of("same")
    assert reviewed(f"{P5},98.32,,2025-01-01").of("older")
    gone = reviewed(f"{P5},55.04,,").unlisted
    assert ("aws", "p4d.24xlarge", "us-east-1", "on-demand") in gone
    assert {(k[0], k[2], k[3]) for k in gone} == {("aws", "us-east-1", "on-demand")}


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (f"{P5},82.57,,", "1.50 times what it was"),
        (f"{P5},36,,", "0.65 times what it was"),
        ("aws,p5.48xlarge,us-west-2,5.5,,", "where h100-sxm-80gb costs"),
        ("aws,p5.48xlarge,us-west-2,200,,", "where h100-sxm-80gb costs"),
        (f"{P5},55.05,spot,", "spot above on demand, which costs 55.04"),
    ],
)
def test_outliers_are_named_and_not_taken(row: str, words: str) -> None:
    odd = reviewed(row)
    (outlier,) = odd.outliers
    assert words in " ".join(outlier.odd)
    assert odd.taken == ()


@pytest.mark.parametrize("usd", ["82.55", "36.70", "55.03"])
def test_what_is_just_within_the_bounds_is_taken(usd: str) -> None:
    assert len(reviewed(f"{P5},{usd},,").taken) == 1


def test_of_several_zones_the_dearest_counts() -> None:
    spot = review(read(SKYPILOT, "aws"), load_market(), DAY).changes
    assert {c.quote.usd_per_hour for c in spot if c.quote.capacity == "spot"} == {D("21.2")}


SOURCE = ListSource(
    key="list", title='A "list"', url="https://example.org/p", date=None, read="2026-11-23"
)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    return Path(shutil.copytree(compiler.DATA, tmp_path / "data"))


def test_taken_prices_are_written_with_their_source_and_the_others_keep_theirs(data: Path) -> None:
    taken = reviewed(f"{P5},60.5,,", f"{P5},20,spot,", "aws,p5.48xlarge,us-west-2,56,,").taken
    texts = written(data, taken, SOURCE)
    assert [p.name for p in texts] == ["aws.yaml"]
    for path, text in texts.items():
        path.write_text(text, encoding="utf-8")
    market = Market(json.loads(compiler.compile_files(compiler.read(data), "market.json")))
    machine = next(m for m in market.instances() if m.name == "p5.48xlarge")
    prices = {p.region: p for p in market.rates(machine, "on-demand")}
    assert prices["us-east-1"].usd_per_hour == D("60.5")
    assert 'A "list"' in prices["us-east-1"].source
    assert prices["us-west-2"].usd_per_hour == 56
    assert "Karpenter" in prices["us-gov-west-1"].source
    assert [p.usd_per_hour for p in market.rates(machine, "spot")] == [20]
    before = {(p.provider, p.instance, p.region, p.capacity): p for p in load_market().prices()}
    after = {(p.provider, p.instance, p.region, p.capacity): p for p in market.prices()}
    differing = {k for k in {*before, *after} if before.get(k) != after.get(k)}
    assert {k[1] for k in differing} == {"p5.48xlarge"}
    assert written(data, taken, SOURCE) == texts  # twice is once


def test_writing_a_provider_that_has_no_file_yet(data: Path) -> None:
    (data / "rates" / "verda.yaml").unlink()
    name = next(m.name for m in load_market().instances() if m.provider == "verda")
    taken = (
        reviewed(f"verda,{name},here,9.5,,").taken or reviewed(f"verda,{name},here,9.5,,").outliers
    )
    for path, text in written(data, taken, SOURCE).items():
        path.write_text(text, encoding="utf-8")
    assert compiler.read(data)["rates"]["verda"].rates[0].on_demand == {"here": D("9.5")}


def test_the_command_shows_first_and_writes_only_when_asked(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = tmp_path / "list.csv"
    listed.write_text(f"{HEAD}{P5},60.5,,\naws,p4d.24xlarge,us-east-1,99,,\n", encoding="utf-8")
    rates = data / "rates" / "aws.yaml"
    before = rates.read_text(encoding="utf-8")
    words = ["catalog", "update", str(listed), "--as-of", "2026-11-23"]
    assert main(words) == 0
    shown = capsys.readouterr().out
    assert "aws p5.48xlarge us-east-1  55.04 of 2026-07-20 → 60.5 of 2026-11-23" in shown
    assert shown.index("outliers, not taken") < shown.index("changed\n")
    assert rates.read_text(encoding="utf-8") == before
    assert main([*words, "--write", str(data)]) == 2
    assert "--source URL" in capsys.readouterr().err
    source = ["--source", "https://example.org/list"]
    assert main([*words, "--write", str(data), *source]) == 0
    text = rates.read_text(encoding="utf-8")
    assert "$60.5/hour" in text
    assert "$99/hour" not in text
    capsys.readouterr()
    assert main([*words, "--write", str(data), *source, "--accept-outliers"]) == 0
    assert "$99/hour" in rates.read_text(encoding="utf-8")
    capsys.readouterr()
    assert main([*words, "--json"]) == 0
    data_shown = json.loads(capsys.readouterr().out)
    assert data_shown["counts"]["changed"] == 2
    assert data_shown["counts"]["outliers"] == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("nowhere.csv",), "cannot read nowhere.csv"),
        ((), "name price lists"),
        (("--from", "gcp"), "prices cores, memory and GPUs apart"),
        (("--from", "skypilot"), "--provider nebius"),
    ],
)
def test_a_wrong_question_is_answered_with_a_remedy(
    words: tuple[str, ...], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["catalog", "update", *words]) == 2
    assert said in " ".join(capsys.readouterr().err.split())


def test_missing_machines_are_there_and_fractions_are_no_gpus() -> None:
    machines = {m.name: m for m in load_market().instances()}
    assert (machines["g7.48xlarge"].gpu, machines["g7.48xlarge"].gpus) == ("rtx-pro-4500", 8)
    for name in ("g6f.large", "gr6f.4xlarge", "g4-standard-6", "Standard_NV6ads_A10_v5"):
        assert machines[name].gpus is None
        assert machines[name].fraction is not None
        assert machines[name].gpu_memory_bytes


def test_the_price_of_nebius_is_that_of_september() -> None:
    market = load_market()
    machine = market.instance("gpu-h100-sxm_8gpu-128vcpu-1600gb")
    assert machine is not None
    (price,) = market.rates(machine[1], "on-demand")
    assert (price.usd_per_hour / 8, price.date) == (D("3.85"), "2026-09-25")


@pytest.mark.parametrize(
    ("kind", "words", "row"),
    [
        ("charges", ("control-plane", "--provider", "aws"), "0.6 USD/hour"),
        ("commitments", ("a3-highgpu-8g", "--region", "us-central1"), "38.864381 USD/hour"),
        ("carbon", ("europe-north1",), "29.84 g/kWh"),
    ],
)
def test_what_providers_charge_beside_machines_is_listed(
    kind: str, words: tuple[str, ...], row: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["catalog", "list", kind, *words]) == 0
    assert row in capsys.readouterr().out
    assert main(["catalog", "list", kind, *words, "--json"]) == 0
    assert row in {r["price"] for r in json.loads(capsys.readouterr().out)}
    assert main(["catalog", "list", kind, "nonsense"]) == 2


def test_a_number_of_thousands_of_digits_makes_no_list() -> None:
    with pytest.raises(Unreadable, match="too many digits"):
        read(f'{{"Items": {"9" * 5000}}}', None)
