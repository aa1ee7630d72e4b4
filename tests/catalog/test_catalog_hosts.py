"""Servers and network cards of the catalogue: whole, sourced, and fit to plan on."""

from __future__ import annotations

import csv
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from datetime import date
from pathlib import Path

import pytest

from gpuplan.catalog import lookup
from gpuplan.catalog.hardware import Host, Nic
from gpuplan.catalog.load import COMPILED, Catalog, load_catalog
from gpuplan.cli.main import main
from gpuplan.report.facts.template import inventory as template
from gpuplan.units import GIB
from tests.catalog.test_catalog import CITATION
from tests.support.placement_samples import inventory

ROOT = Path(__file__).parents[2]
CATALOG = load_catalog()
HOSTS = CATALOG.hosts()
NICS = [nic for i in CATALOG.ids("nics") if (nic := CATALOG.nic(i))]
GENERATOR = ROOT / "bench/catalog/hosts.py"
MARK = "# Written by bench/catalog/hosts.py"


def host(identifier: str) -> Host:
    found = CATALOG.host(identifier)
    assert found is not None
    return found


def sources(value: object) -> Iterator[str]:
    """The citations in a record and in those that it holds."""
    if isinstance(value, tuple):
        for item in value:
            yield from sources(item)
    elif is_dataclass(value):
        for field in fields(value):
            found = getattr(value, field.name)
            if field.name == "source":
                yield found
            else:
                yield from sources(found)


@pytest.mark.parametrize("found", HOSTS, ids=lambda h: h.identifier)
def test_a_server_is_of_a_piece(found: Host) -> None:
    gpu = CATALOG.gpu(found.gpu)
    assert gpu is not None
    assert all(CITATION.fullmatch(s) for s in sources(found))
    assert found.cpu_cores % found.sockets == 0
    assert 1 <= found.sockets <= 4
    assert found.cpu_cores // found.sockets <= 192
    assert found.memory_bytes >= 32 * GIB
    for nics in found.nics:
        nic = CATALOG.nic(nics.nic)
        assert nic is not None
        rate = nics.bytes_per_s
        if rate and nic.bytes_per_s:
            assert rate.value <= nic.bytes_per_s.value, nics.nic
    if found.watts:
        assert gpu.watts is not None
        assert found.watts.value >= found.gpus * gpu.watts.value
        assert all(m.watts <= found.watts.value for m in found.measured_power)
    if found.topology:
        assert sum(map(len, found.topology.numa_nodes)) == found.gpus
        assert len(found.topology.numa_nodes) == found.numa_nodes


@pytest.mark.parametrize("found", HOSTS, ids=lambda h: h.identifier)
def test_memory_below_that_of_the_gpus_is_said(
    found: Host, capsys: pytest.CaptureFixture[str]
) -> None:
    gpu = CATALOG.gpu(found.gpu)
    assert gpu is not None
    assert gpu.memory_bytes is not None
    short = found.memory_bytes < found.gpus * gpu.memory_bytes.value
    assert main(["catalog", "show", found.identifier]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert ("models do not fit its page cache" in shown) is short


def test_sources_of_hardware_have_dates_that_have_been() -> None:
    for kind in ("nodes", "nics", "storage", "power", "purchase"):
        for identifier in CATALOG.ids(kind):
            found = CATALOG.sources(kind, identifier)
            assert found
            for source in found:
                assert date(2015, 1, 1) <= date.fromisoformat(source.date) <= date(2026, 12, 31)
                assert source.where.startswith("https://") or "@" in source.where


REFERENCES = {
    "a10": "oci-bm-gpu-a10-4",
    "a100-sxm-40gb": "oci-bm-gpu4-8",
    "a100-sxm-80gb": "oci-bm-gpu-a100-v2-8",
    "b200-sxm-180gb": "dgx-b200",
    "b300-sxm-288gb": "dell-xe9780-b300",
    "gb200-186gb": "supermicro-gb200-nvl72-tray",
    "gb300-288gb": "supermicro-gb300-nvl72-tray",
    "h100-nvl-94gb": "dell-r760xa-h100-nvl",
    "h100-pcie-80gb": "dell-r760xa-h100-pcie",
    "h100-sxm-80gb": "dgx-h100",
    "h200-nvl-141gb": "dell-xe7745-h200-nvl",
    "h200-sxm-141gb": "dgx-h200",
    "l4": "dell-r570-l4",
    "l40s": "dell-xe7740-l40s",
    "rtx-pro-6000-server": "dell-xe7745-rtx-pro-6000",
    "t4": "aws-g4dn-4xlarge",
}


def test_what_stands_for_a_gpu_stays() -> None:
    """Plans without an inventory depend on it: a change here is a change of plans."""
    found = {h.gpu: h.identifier for h in HOSTS if h.reference}
    assert found == REFERENCES
    for gpu, identifier in found.items():
        node = CATALOG.node(gpu)
        assert node is not None
        assert (node.identifier, node.memory_bytes) == (identifier, host(identifier).memory_bytes)


def test_a_server_that_stands_for_no_gpu_is_not_chosen() -> None:
    assert host("dgx-a100-80gb").gpu == "a100-sxm-80gb"
    assert not host("dgx-a100-80gb").reference
    assert CATALOG.node("mi300x-192gb") is None
    assert CATALOG.hosts("mi300x-192gb")


def test_reference_servers_are_like_those_of_mlperf() -> None:
    """Sockets as any, cores and memory within what is described of servers with as many GPUs."""
    compared = 0
    for found in HOSTS:
        others = [h for h in CATALOG.hosts(found.gpu) if described(h) and h.gpus == found.gpus]
        if found.reference and others and not described(found):
            compared += 1
            assert found.sockets in {h.sockets for h in others}
            assert found.cpu_cores <= 2 * max(h.cpu_cores for h in others)
            assert found.cpu_cores >= min(h.cpu_cores for h in others) / 2
            assert found.memory_bytes <= 2 * max(h.memory_bytes for h in others)
            assert found.memory_bytes >= min(h.memory_bytes for h in others) / 2
    assert compared >= 6


def described(found: Host) -> bool:
    path = ROOT / f"gpuplan/catalog/data/nodes/{found.identifier}.yaml"
    return path.read_text("utf-8").startswith(MARK)


@pytest.mark.parametrize("nic", NICS, ids=lambda n: n.identifier)
def test_a_card_is_sourced_and_found_by_its_pci_id(nic: Nic) -> None:
    assert all(CITATION.fullmatch(s) for s in sources(nic))
    for pci_id in nic.pci_ids.values:
        assert CATALOG.nic_by_pci(pci_id.upper()) == nic
    if nic.vf_limit:
        notes = " ".join(CATALOG.notes("nics", nic.identifier))
        assert "sriov_totalvfs" in notes


@pytest.mark.parametrize(
    ("pci_id", "identifier"),
    [
        ("15b3:1017", "connectx-5"),
        ("15b3:101b", "connectx-6"),
        ("15b3:101d", "connectx-6-dx"),
        ("15B3:1021", "connectx-7"),
        ("15b3:a2d6", "bluefield-2"),
        ("15b3:a2dc", "bluefield-3"),
        ("1d0f:efa1", "aws-efa"),
    ],
)
def test_cards_have_the_ids_of_the_pci_registry(pci_id: str, identifier: str) -> None:
    found = CATALOG.nic_by_pci(pci_id)
    assert found is not None
    assert found.identifier == identifier


def test_what_is_not_there_is_none() -> None:
    assert CATALOG.nic_by_pci("15b3:ffff") is None
    assert CATALOG.nic("connectx-70") is None
    assert CATALOG.host("dgx-h1000") is None
    assert CATALOG.hosts("h100") == ()


@pytest.mark.parametrize("found", HOSTS, ids=lambda h: h.identifier)
def test_every_server_is_an_inventory_that_loads(found: Host) -> None:
    (read,) = inventory(template(found)).hosts
    assert read.memory == found.memory_bytes
    assert read.cpu_cores == found.cpu_cores
    assert sum(g.count for g in read.gpus) == found.gpus


@pytest.mark.parametrize("identifier", ["dgx-h100", "dgx-b200", "supermicro-gb200-nvl72-tray"])
def test_one_can_plan_on_a_machine_that_is_not_bought(
    identifier: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["catalog", "show", identifier, "--inventory"]) == 0
    (tmp_path / "inventory.yaml").write_text(capsys.readouterr().out, encoding="utf-8")
    (tmp_path / "chat.yaml").write_text(
        "apiVersion: gpuplan.dev/v1\n"
        "name: chat\n"
        "platform: {target: kubernetes, inventory: inventory.yaml}\n"
        "workloads:\n"
        "- name: chat\n"
        "  task: inference\n"
        "  model: meta-llama/Llama-3.1-8B-Instruct\n"
        "  load:\n"
        "    requests_per_second: {mean: 0.5, peak: 1}\n"
        "    input_tokens: {mean: 500}\n"
        "    output_tokens: {mean: 200}\n",
        encoding="utf-8",
    )
    stacks = tmp_path / "stacks"
    code = main(["compile", str(tmp_path / "chat.yaml"), "-o", str(stacks)])
    assert code == 0, capsys.readouterr().err
    assert host(identifier).gpu in (stacks / "chat/plan.yaml").read_text("utf-8")


def test_plans_do_not_read_servers_that_stand_for_no_gpu(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lookup, "HARDWARE", tmp_path / "hardware.json")
    catalog = Catalog(json.loads(COMPILED.read_bytes()))
    assert catalog.node("h100-sxm-80gb") == CATALOG.node("h100-sxm-80gb")
    with pytest.raises(FileNotFoundError):
        catalog.host("dgx-h100")


def test_an_inventory_of_no_server_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "show", "dgx-h10", "--inventory"]) == 2
    assert "did you mean 'dgx-h100'?" in capsys.readouterr().err


def test_a_server_is_shown_with_its_sources(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "show", "dgx-h100"]) == 0
    shown = capsys.readouterr().out
    found = host("dgx-h100")
    assert found.cpu is not None
    for part in (found.cpu.value, "connectx-7", "10.2 kW", "nodes/dgx-h100.yaml power"):
        assert part in shown
    for source in CATALOG.sources("nodes", "dgx-h100"):
        assert source.where in shown


@pytest.mark.parametrize("kind", ["nodes", "nics", "storage", "power", "purchase"])
def test_every_kind_is_listed(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "list", kind]) == 0
    assert len(capsys.readouterr().out.splitlines()) > len(CATALOG.ids(kind))  # type: ignore[arg-type]
    assert main(["catalog", "list", kind, "--json"]) == 0


# The script that writes servers of MLPerf submissions.
COLUMNS = (
    *("submitter", "system", "status", "nodes", "cpu_sockets", "cpu_model", "memory"),
    *("gpus_per_node", "gpu_model", "gpu_interconnect", "nic_count", "networking", "cooling"),
    *("storage_type", "storage_capacity"),
    *("cores_per_socket_checked", "cores_note", "source"),
)
ROW = {
    "submitter": "Example",
    "system": "Dell PowerEdge XE9680 (8x H100-SXM-80GB)",
    "status": "available",
    "nodes": "1",
    "cpu_sockets": "2",
    "cpu_model": "Intel(R) Xeon(R) Platinum 8480+",
    "memory": "2 TB",
    "gpus_per_node": "8",
    "gpu_model": "NVIDIA H100-SXM-80GB",
    "networking": "4x ConnectX-7 400Gb/s",
    "cooling": "air-cooled",
    "storage_type": "NVMe SSD",
    "storage_capacity": "2x 1.92TB NVMe SSD + 8x 3.84TB NVMe U.2",
    "cores_per_socket_checked": "56",
    "source": f"mlcommons/inference_results_v5.1@{40 * 'a'}:closed/Dell/systems/a.json",
}


def generate(folder: Path, *rows: dict[str, str]) -> dict[str, str]:
    table = folder / "rows.csv"
    with table.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS)
        writer.writeheader()
        writer.writerows(rows)
    target = folder / "nodes"
    target.mkdir(exist_ok=True)
    command = [sys.executable, str(GENERATOR), str(table), str(target)]
    subprocess.run(command, check=True)
    return {p.name: p.read_text("utf-8") for p in sorted(target.iterdir())}


def test_a_description_is_a_file_with_its_place(tmp_path: Path) -> None:
    preview = {"status": "preview", "system": "Dell XE1", "source": f"a/b@{40 * 'b'}:p.json"}
    cloud = {"status": "Available cloud", "source": f"a/b@{40 * 'b'}:c.json"}
    ((name, text),) = generate(tmp_path, ROW, ROW | preview, ROW | cloud).items()
    assert name == "dell-xe9680-8x-h100-sxm-80gb-8480-plus.yaml"
    for line in (
        "cpu_cores: 112",
        'cpu: {value: "Intel Xeon Platinum 8480+", source: description}',
        'cooling: {value: "air", source: description}',
        f"    commit: {40 * 'a'}",
        '    path: "closed/Dell/systems/a.json"',
    ):
        assert line in text.splitlines()
    assert "    rate: {value: 400 Gb/s, source: description}" in text
    assert 'count: 8\n    size: 3.84 TB\n    form: "NVMe U.2"' in text


@pytest.mark.parametrize(
    "said", ["8 TB", "2x 1.92TB + 5 TB CIFS", "", "N/A", "8x 3.84TB in a rack"]
)
def test_drives_that_are_not_counted_are_left_out(said: str, tmp_path: Path) -> None:
    ((_, text),) = generate(tmp_path, ROW | {"storage_capacity": said}).items()
    assert "drives" not in text


def test_the_newest_description_holds_and_nothing_depends_on_the_order(tmp_path: Path) -> None:
    old = ROW | {"memory": "1 TB", "source": ROW["source"].replace("v5.1", "v4.1")}
    first = generate(tmp_path, ROW, old)
    assert generate(tmp_path, old, ROW) == first
    assert "memory: 2 TB" in next(iter(first.values()))


def test_files_of_others_stay_and_are_not_doubled(tmp_path: Path) -> None:
    ((name, text),) = generate(tmp_path, ROW).items()
    mine = text.partition("\n")[2]
    (tmp_path / "nodes" / name).rename(tmp_path / "nodes/mine.yaml")
    (tmp_path / "nodes/mine.yaml").write_text(mine, encoding="utf-8")
    assert generate(tmp_path, ROW) == {"mine.yaml": mine}


def test_files_of_the_script_are_as_it_writes_them() -> None:
    written = [h.identifier for h in HOSTS if described(h)]
    assert len(written) > 100
    for identifier in written:
        text = (ROOT / f"gpuplan/catalog/data/nodes/{identifier}.yaml").read_text("utf-8")
        assert re.search(r"^    repository: mlcommons/\w+_results_v[0-9.]+$", text, re.M)
        assert re.search(r"^    commit: [0-9a-f]{40}$", text, re.M)
        assert "reference:" not in text
