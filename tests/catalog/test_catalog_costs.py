"""Storage classes and ranges of costs, and files about hardware that are refused."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from gpuplan.catalog.hardware import Range, StorageClass
from gpuplan.catalog.load import load_catalog
from gpuplan.cli.main import main
from tests.catalog.test_catalog import CITATION
from tests.catalog.test_catalog_files import change, data, load, problems
from tests.catalog.test_catalog_hosts import sources

__all__ = ["data"]

CATALOG = load_catalog()
CLASSES = [found for i in CATALOG.ids("storage") if (found := CATALOG.storage_class(i))]
RANGES = (*CATALOG.ranges("power"), *CATALOG.ranges("purchase"))


@pytest.mark.parametrize("found", CLASSES, ids=lambda c: c.identifier)
def test_a_storage_class_is_sourced_and_plausible(found: StorageClass) -> None:
    assert all(CITATION.fullmatch(s) for s in sources(found))
    if found.medium == "block":
        assert "ReadWriteMany" not in found.access_modes.values
    if found.bytes_per_s_maximum:
        assert 1e7 <= found.bytes_per_s_maximum.value <= 1e12
    assert found.usd_per_gb_month or not found.price_region
    if found.usd_per_gb_month:
        assert Decimal("0.001") < found.usd_per_gb_month.value < 2


@pytest.mark.parametrize(
    ("identifier", "provisioner", "modes"),
    [
        ("aws-ebs-gp3", "ebs.csi.aws.com", {"ReadWriteOnce"}),
        ("local-path", "rancher.io/local-path", {"ReadWriteOnce"}),
        ("longhorn", "driver.longhorn.io", {"ReadWriteOnce"}),
        ("longhorn-shared", "driver.longhorn.io", {"ReadWriteMany"}),
        ("cephfs", "rook-ceph.cephfs.csi.ceph.com", {"ReadWriteMany"}),
    ],
)
def test_provisioners_are_named_as_their_drivers_are(
    identifier: str, provisioner: str, modes: set[str]
) -> None:
    found = CATALOG.storage_class(identifier)
    assert found is not None
    assert found.provisioner.value == provisioner
    assert set(found.access_modes.values) == modes


@pytest.mark.parametrize("row", RANGES, ids=lambda r: r.item)
def test_a_range_ascends_and_is_labelled(row: Range) -> None:
    given = [n for n in (row.low, row.typical, row.high) if n is not None]
    assert given
    assert given == sorted(given)
    assert row.status in {"official", "measured", "survey", "list", "estimate"}
    assert row.sources
    assert all(CITATION.fullmatch(s) for s in row.sources)
    bounds = {"ratio": (1, 3), "share": (0, 1), "USD/kWh": (0, 1), "EUR/kWh": (0, 1)}
    least, most = bounds.get(row.unit, (0, 10**7))
    assert all(least <= n <= most for n in given)


def test_there_is_a_default_for_what_a_comparison_needs() -> None:
    defaults = {r.unit: r for r in RANGES if r.default}
    assert {"USD/kWh", "ratio", "months"} <= set(defaults)
    assert all(r.typical is not None for r in defaults.values())


def test_what_a_gpu_costs_is_found_by_its_name() -> None:
    bought = [r for r in CATALOG.ranges("purchase") if r.gpu == "h100-sxm-80gb"]
    assert {r.unit for r in bought} == {"USD"}
    rental = CATALOG.rental("h100-sxm-80gb")
    assert rental is not None
    prices = [p.usd_per_hour for p in CATALOG.prices("h100-sxm-80gb")]
    assert (rental.low, rental.high) == (min(prices), max(prices))
    assert rental.typical in prices
    assert rental.status == "list"
    assert CATALOG.range_of("purchase", "rent-h100-sxm-80gb") == rental
    assert CATALOG.rental("gtx-1080") is None
    assert CATALOG.range_of("power", "nothing") is None
    assert CATALOG.storage_class("nothing") is None


def test_no_node_is_measured_above_its_rating() -> None:
    for row in CATALOG.ranges("power"):
        node = CATALOG.host(row.node or "")
        if row.unit == "W" and node and node.watts and row.high:
            assert float(row.high) <= node.watts.value


def test_a_range_is_shown_with_its_label(capsys: pytest.CaptureFixture[str]) -> None:
    row = CATALOG.ranges("power")[0]
    assert main(["catalog", "show", row.item]) == 0
    shown = capsys.readouterr().out
    assert row.status in shown
    assert row.unit in shown
    assert main(["catalog", "show", "aws-ebs-gp3"]) == 0
    assert "ebs.csi.aws.com" in capsys.readouterr().out


def test_the_steps_of_the_manual_make_hardware(data: Path) -> None:
    catalog = load(data)
    host = catalog.host("example-node")
    assert host is not None
    assert host.topology is not None
    assert host.topology.switches[1].gpus == (4, 5, 6, 7)
    assert host.nics[0].bytes_per_s is not None
    assert host.nics[0].bytes_per_s.value == 25e9
    assert host.watts is not None
    assert host.watts.source == (
        "catalog: nodes/example-node.yaml power (Example Server 8, user manual, 2026-02-01)"
    )
    node = catalog.node("example-48gb")
    assert node is not None
    assert node.identifier == "example-node"
    nic = catalog.nic_by_pci("1234:5678")
    assert nic is not None
    assert nic.identifier == "example-nic"
    assert catalog.nic_by_pci("1234:5679") is None  # a virtual function
    disk = catalog.storage_class("example-disk")
    assert disk is not None
    assert disk.provisioner.value == "disk.example.com"
    assert disk.usd_per_gb_month is not None
    assert disk.usd_per_gb_month.value == Decimal("0.08")
    (row,) = catalog.ranges("purchase")
    assert row.typical == 8000


NODE, NIC = "nodes/example-node.yaml", "nics/example-nic.yaml"
RANGE, DISK = "purchase/example.yaml", "storage/example-disk.yaml"


@pytest.mark.parametrize(
    ("file", "before", "after", "message"),
    [
        (NODE, "gpu: example-48gb", "gpu: example-49gb", "no such GPU 'example-49gb'"),
        (NODE, "nic: example-nic", "nic: other", "no such network card 'other'"),
        (NODE, "value: 4000 W", "value: 2000 W", "power is less than the 2400 W of its GPUs"),
        (NODE, "value: 4000 W", "value: 4100 W", "power_supplies give less"),
        (NODE, "cpu_cores: 64", "cpu_cores: 63", "63 cores do not divide by 2 sockets"),
        (NODE, "numa_nodes: 2\n", "", "a reference node needs numa_nodes"),
        (NODE, "numa_nodes: 2\n", "numa_nodes: 4\n", "topology: 2 NUMA nodes, not numa_nodes"),
        (NODE, "[[0, 1, 2, 3], [4", "[[0, 1, 2], [4", "each of 8 GPUs once"),
        (NODE, "nics: [1]}", "nics: [0]}", "each of 2 nics once"),
        (NODE, "gpus: [0, 1, 2, 3], nics", "gpus: [0, 1, 2, 8], nics", "each of 8 gpus once"),
        (NODE, "cooling: {value: air", "cooling: {value: fans", "cooling"),
        (NODE, "source: manual}\nnics", "source: other}\nnics", "source"),
        (NIC, '"1234:5678"', '"1234:XYZ"', "pci_ids"),
        (RANGE, "low: 7000", "low: 8500", "low, typical and high do not ascend"),
        (RANGE, "    typical: 8000\n", "", "a default needs a typical value"),
        (RANGE, "gpu: example-48gb", "gpu: other", "no such GPU 'other'"),
        (RANGE, "gpu: example-48gb", "node: other", "no such node 'other'"),
        (RANGE, "kind: purchase", "kind: power", "this is power 'example'"),
        (RANGE, "status: estimate", "status: recalled", "status"),
        (
            DISK,
            "size_minimum: {value: 1 GiB",
            "size_minimum: {value: 1 PiB",
            "size_minimum is more",
        ),
    ],
)
def test_what_cannot_be_is_refused(
    data: Path, file: str, before: str, after: str, message: str
) -> None:
    change(data, file, before, after)
    assert message in "\n".join(problems(data))


def test_two_files_for_one_thing_are_refused(data: Path) -> None:
    for file, was, now in (
        (NODE, "id: example-node", "id: other-node"),
        (NIC, "id: example-nic", "id: other-nic"),
        (RANGE, "id: example", "id: other"),
    ):
        text = (data / file).read_text("utf-8").replace(was, now)
        other = now.removeprefix("id: ")
        (data / file).with_name(f"{other}.yaml").write_text(text, encoding="utf-8")
    found = "\n".join(problems(data))
    assert "two reference nodes for 'example-48gb'" in found
    assert "two cards with the PCI id '1234:5678'" in found
    assert "item 'buy-example-48gb' twice" in found
