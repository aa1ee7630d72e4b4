"""Machines for rent and their prices: of a piece, as their sources print them, and listed."""

from __future__ import annotations

import json
import subprocess
import sys
from datetime import date
from decimal import Decimal
from pathlib import Path

import pytest

from gpuplan.catalog import compile as compiler
from gpuplan.catalog.load import COMPILED, load_catalog
from gpuplan.catalog.market import Instance, load_market
from gpuplan.catalog.quotes import QuoteFilter, offers, parts, quotes
from gpuplan.cli.main import main
from gpuplan.render.text import width
from gpuplan.units import GIB

ROOT = Path(__file__).parents[2]
CATALOG, MARKET = load_catalog(), load_market()
MACHINES = {(i.provider, i.name): i for i in MARKET.instances()}
TODAY = date(2026, 11, 24)


def machine(provider: str, name: str) -> Instance:
    return MACHINES[provider, name]


def test_machines_are_as_their_providers_list_them() -> None:
    p5 = machine("aws", "p5.48xlarge")
    assert (p5.gpu, p5.gpus, p5.vcpus, p5.cores) == ("h100-sxm-80gb", 8, 192, 96)
    assert (p5.memory_bytes, p5.nvme_bytes) == (2048 * GIB, 30_400 * 10**9)
    assert p5.network_bytes_per_s == 400e9  # 3,200 Gbit/s
    assert p5.rdma is not None
    assert (p5.rdma.kind, p5.rdma.interfaces) == ("efa", 32)
    assert p5.allocatable_millicores == 191_450
    nd = machine("azure", "Standard_ND96isr_H200_v5")
    assert (nd.gpus, nd.sockets, nd.threads_per_core, nd.nvme_drives) == (8, 2, 1, 8)
    assert nd.rdma is not None
    assert (nd.rdma.interfaces, nd.rdma.bytes_per_s) == (8, 50e9)
    a3 = machine("gcp", "a3-highgpu-8g")
    assert (a3.gpus, a3.vcpus, a3.nvme_drives) == (8, 208, 16)
    bm = machine("oci", "BM.GPU.H100.8")
    assert (bm.sockets, bm.cores, bm.threads_per_core, bm.nvme_drives) == (2, 112, 2, 16)


@pytest.mark.parametrize(
    ("provider", "name", "fraction", "memory"),
    [
        ("azure", "Standard_NV6ads_A10_v5", "1/6", 4 * GIB),
        ("azure", "Standard_NV18ads_A10_v5", "1/2", 12 * GIB),
        ("aws", "g6f.2xlarge", "1/4", 5722 * 2**20),
        ("gcp", "g4-standard-6", "1/8", 12 * 10**9),
    ],
)
def test_parts_of_a_gpu_are_machines_too(
    provider: str, name: str, fraction: str, memory: int
) -> None:
    part = machine(provider, name)
    assert (part.gpus, part.fraction, part.gpu_memory_bytes) == (None, fraction, memory)
    whole = CATALOG.gpu(part.gpu)
    assert whole is not None
    assert memory * parts(part) <= whole.memory_bytes.value * 1.08  # nominal against reported


@pytest.mark.parametrize("found", MACHINES.values(), ids=lambda i: f"{i.provider} {i.name}")
def test_every_machine_holds_together(found: Instance) -> None:
    assert CATALOG.gpu(found.gpu)
    assert (found.gpus is None) != (found.fraction is None)
    files = f"catalog: instances/{found.provider}"
    assert found.source.startswith(
        (f"{files}.yaml {found.name} (", f"{files}-recorded.yaml {found.name} (")
    )
    if found.cores and found.vcpus and found.threads_per_core:
        assert found.vcpus <= found.cores * found.threads_per_core
    if found.allocatable_memory_bytes and found.memory_bytes:
        assert found.allocatable_memory_bytes < found.memory_bytes
    if found.allocatable_millicores and found.vcpus:
        assert found.allocatable_millicores < found.vcpus * 1000


def test_every_price_is_of_a_machine_and_has_an_age() -> None:
    prices = MARKET.prices()
    assert len(prices) > 1400
    for price in prices:
        assert (price.provider, price.instance) in MACHINES
        assert 0 < price.usd_per_hour < 700
        assert date(2026, 1, 1) <= date.fromisoformat(price.date) <= TODAY
        assert price.source.startswith(f"catalog: rates/{price.provider}.yaml {price.instance} (")
    undated = {p.provider for p in prices if not p.dated}
    assert undated == {"coreweave", "hyperstack", "lambda", "nebius", "oci", "verda"}


def test_spot_is_cheaper_than_on_demand() -> None:
    dear = {
        (p.instance, p.region): p.usd_per_hour for p in MARKET.prices() if p.capacity == "on-demand"
    }
    spot = [p for p in MARKET.prices() if p.capacity == "spot"]
    assert spot != []
    for price in spot:
        if known := dear.get((price.instance, price.region)):
            assert price.usd_per_hour < known


def test_lists_that_plans_reckon_with_agree_with_the_regions() -> None:
    """Both come from the same tables: GPUs, cores, memory and prices are equal where both are."""
    tree = json.loads(COMPILED.read_bytes())["prices"]
    regional = {
        (p.provider, p.instance, p.region): p.usd_per_hour
        for p in MARKET.prices()
        if p.capacity == "on-demand"
    }
    compared = 0
    for row in (row for entry in tree.values() for row in entry["listings"]):
        found = MACHINES.get((row["provider"], row["instance"]))
        if found is None or found.gpus is None or row["region"] is None:
            continue
        known = (row["gpu"], row["gpus"], row["vcpus"], row["memory_bytes"])
        assert (found.gpu, found.gpus, found.vcpus, found.memory_bytes) == known
        price = regional[found.provider, found.name, row["region"]] / found.gpus
        assert abs(price - Decimal(row["usd_per_hour"])) <= Decimal("0.000001")
        compared += 1
    assert compared > 80


def test_a_price_of_a_part_is_that_of_as_many_parts() -> None:
    wanted = QuoteFilter(as_of=TODAY, instance="Standard_NV6ads_A10_v5", region="eastus")
    (price,) = quotes(CATALOG, MARKET, wanted)
    assert price.usd_per_hour == Decimal("0.454") * 6


def test_machines_are_filtered() -> None:
    wanted = QuoteFilter(as_of=TODAY, gpu="h100", provider="aws", region="us-east-1")
    found = list(offers(MARKET, wanted))
    assert [m.name for m, _ in found] == ["p5.4xlarge", "p5.48xlarge"]
    assert [p and p.usd_per_hour for _, p in found] == [Decimal("6.88"), Decimal("55.04")]
    young = QuoteFilter(as_of=date(2026, 8, 10), max_days=5)
    assert {m.provider for m, _ in offers(MARKET, young)} == {"gcp"}
    spot = QuoteFilter(as_of=TODAY, gpu="l4", capacity="spot")
    assert all(p and p.capacity == "spot" for _, p in offers(MARKET, spot))


def test_prices_are_sorted_and_once() -> None:
    found = quotes(CATALOG, MARKET, QuoteFilter(as_of=TODAY))
    assert [(p.gpu, p.usd_per_hour) for p in found] == sorted(
        (p.gpu, p.usd_per_hour) for p in found
    )
    keys = [(p.gpu, p.provider, p.instance, p.region, p.capacity) for p in found if p.instance]
    assert len(keys) == len(set(keys))
    assert any(p.provider == "lambda" for p in found)  # from the lists without regions


@pytest.mark.parametrize(
    "arguments",
    [
        ["instances", "--gpu", "h100"],
        ["instances", "p5", "--provider", "aws"],
        ["prices", "l40s", "--region", "us-east-1"],
        ["prices", "--capacity", "spot", "--max-age", "200d", "--as-of", "2026-11-21"],
    ],
)
def test_lists_are_aligned(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "list", *arguments]) == 0
    head, *lines = capsys.readouterr().out.splitlines()
    rows = [line for line in lines if not line.startswith(" ")]
    assert rows != []
    column = head.index("provider")
    for row in rows:
        assert row[column - 1] == " "
        assert row[column] != " "
    assert max(map(width, [head, *lines])) <= 80


def test_a_list_as_json_says_how_old_its_prices_are(capsys: pytest.CaptureFixture[str]) -> None:
    asked = ["--provider", "aws", "--region", "us-east-1", "--as-of", "2026-07-30", "--json"]
    assert main(["catalog", "list", "prices", "h100-sxm", *asked]) == 0
    found = json.loads(capsys.readouterr().out)
    assert {(p["instance"], p["age_days"]) for p in found} == {
        ("p5.48xlarge", 10),
        ("p5.4xlarge", 10),
    }
    assert main(["catalog", "list", "instances", "p5.48", *asked]) == 0
    (only,) = json.loads(capsys.readouterr().out)
    assert (only["gpus"], only["price"]["usd_per_hour"]) == (8, 55.04)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["prices", "h300"], "the catalogue has no prices for 'h300'"),
        (["instances", "--provider", "nowhere"], "no instances for 'nowhere'"),
        (["machines"], "the catalogue has no list 'machines'"),
    ],
)
def test_what_is_not_there_is_said(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["catalog", "list", *arguments]) == 2
    assert words in capsys.readouterr().err


def test_an_age_needs_a_unit(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["catalog", "list", "prices", "--max-age", "90"])
    assert stop.value.code == 2
    assert "a duration needs a unit" in capsys.readouterr().err


def test_one_machine_is_shown_with_its_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "show", "p5.48xlarge"]) == 0
    shown = capsys.readouterr().out
    assert "memory_bytes              2 TiB" in shown
    assert "kind efa, interfaces 32" in shown
    assert "aws/karpenter-provider-aws@" in shown
    assert main(["catalog", "show", "p5.48xlarg"]) == 2
    assert "did you mean 'p5.48xlarge'?" in capsys.readouterr().err


def test_plans_for_machines_that_are_there_do_not_read_the_market(tmp_path: Path) -> None:
    code = (
        "import sys; from gpuplan.cli.main import main;"
        "assert main(['compile', 'examples/assistant-70b.yaml', '-o', sys.argv[1]]) == 0;"
        "from gpuplan.catalog.market import load_market; print(load_market.cache_info().currsize)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "0"


MACHINE_FILE = """kind: instances
id: cloud
provider: cloud
instances:
  - {name: big, gpu: l4, gpus: 8, vcpus: 96, cores: 48, threads_per_core: 2, source: list}
sources:
  list: {title: A list, url: 'https://example.com', date: "2026-02-01"}
"""
RATE_FILE = """kind: rates
id: cloud
provider: cloud
rates:
  - instance: big
    on_demand: {eu-1: $8.00/hour}
    spot: {eu-1: $3.00/hour}
    source: list
sources:
  list: {title: A list, url: 'https://example.com', date: "2026-02-01"}
"""


@pytest.mark.parametrize(
    ("before", "after", "words"),
    [
        ("gpu: l4", "gpu: l5", "instances/cloud.yaml: no such GPU 'l5'"),
        ("gpus: 8", "fraction: 1/4, gpus: 8", "whole gpus, or a fraction of one"),
        ("gpus: 8, ", "", "whole gpus, or a fraction of one"),
        ("cores: 48", "cores: 40", "big: 96 vCPUs on 40 cores"),
        ("cores: 48", "memory: 1 GiB, allocatable: {cpu: 9m, memory: 2 GiB}", "memory for pods"),
        ("instance: big", "instance: small", "rates/cloud.yaml: no such instance 'small'"),
        ("$8.00", "$700.00", "is not an hourly price"),
        ("$3.00", "$0", "is not an hourly price"),
        ("kind: rates\nid: cloud", "kind: rates\nid: clouds", "this is rates 'clouds'"),
    ],
)  # fmt: skip
def test_unsound_machines_are_named(tmp_path: Path, before: str, after: str, words: str) -> None:
    data = tmp_path / "data"
    for folder in ("gpus", "engines", "cuda", "components", "images"):
        for source in sorted((compiler.DATA / folder).glob("*.yaml")):
            if folder != "gpus" or source.stem in ("l4", "l40s", "h100-sxm-80gb"):
                (data / folder).mkdir(parents=True, exist_ok=True)
                (data / folder / source.name).write_bytes(source.read_bytes())
    for folder, text in (("instances", MACHINE_FILE), ("rates", RATE_FILE)):
        (data / folder).mkdir()
        (data / folder / "cloud.yaml").write_text(text, encoding="utf-8")
    files = compiler.read(data)
    assert '"big"' in compiler.compile_files(files, "market.json")
    assert '"big"' not in compiler.compile_files(files)
    for folder, text in (("instances", MACHINE_FILE), ("rates", RATE_FILE)):
        changed = text.replace(before, after)
        (data / folder / "cloud.yaml").write_text(changed, encoding="utf-8")
    with pytest.raises(compiler.Unsound) as caught:
        compiler.read(data)
    assert words in str(caught.value)
