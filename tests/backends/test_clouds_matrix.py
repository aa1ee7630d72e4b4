"""What each cloud has of a node: each cell is in what is emitted, or a finding names it.

docs/clouds.md has the same table for readers, whose cells are held against this one.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from tests.backends import test_clouds_aws as eks
from tests.backends import test_clouds_azure as aks
from tests.backends import test_clouds_google as gke

PAGE = Path(__file__).parents[2] / "docs" / "clouds.md"
DESKS = "workloads:\n- {name: desks, task: notebook, notebook: {users: 14, gpu_memory: 4 GiB}}\n"


def desks(text: str) -> str:
    return text.partition("workloads:")[0] + DESKS


def waited(node: str, zones: str, kind: str) -> str:
    return f"{zones}, provisioning: [{{node: {node}, kind: {kind}, longest: 3 d}}]"


@dataclass(frozen=True, slots=True)
class Cell:
    """`text` is a manifest that asks for it. `emitted` are texts of the stack's files, `said` of a
    finding: its code, and a part of its message. `documented` are texts of the cell of the page."""

    text: str
    documented: tuple[str, ...]
    emitted: tuple[str, ...] = ()
    said: tuple[str, ...] = ()
    refused: bool = False


def made(text: str, documented: str, *emitted: str) -> Cell:
    return Cell(text, (documented,), emitted=emitted)


def noted(text: str, documented: str, *said: str) -> Cell:
    return Cell(text, (documented, said[0]), said=said)


def refused(text: str, *said: str) -> Cell:
    return Cell(text, (said[0],), said=said, refused=True)


def shared(text: str) -> Cell:
    return noted(text, "not planned", "GP014", "Time-sharing and MPS")


L40S, L4, A100 = "g6e.2xlarge", "g2-standard-12", "Standard_NC24ads_A100_v4"
CELLS: Mapping[str, Mapping[str, Cell]] = {
    "static CPU manager": {
        "EKS": made(eks.EXAMPLE, "`cpuManagerPolicy: static`", "cpuManagerPolicy: static"),
        "GKE": made(gke.EXAMPLE, '`cpu_manager_policy="static"`', 'cpu_manager_policy="static"'),
        "AKS": made(aks.EXAMPLE, '`cpu_manager_policy="static"`', 'cpu_manager_policy="static"'),
    },
    "topology manager": {
        "EKS": made(
            eks.EXAMPLE,
            "`topologyManagerPolicy: best-effort`",
            "topologyManagerPolicy: best-effort",
        ),
        "GKE": made(gke.EXAMPLE, '`policy="best-effort"`', 'policy="best-effort"', 'scope="pod"'),
        "AKS": made(
            aks.EXAMPLE,
            '`topology_manager_policy="best-effort"`',
            'topology_manager_policy="best-effort"',
        ),
    },
    "memory of a NUMA node": {
        "EKS": made(
            eks.EXAMPLE,
            "`memoryManagerPolicy: Static`",
            "memoryManagerPolicy: Static",
            "reservedMemory",
        ),
        "EKS, not counted": noted(eks.service(L40S), "GP014", "GP014", "counts the NUMA nodes"),
        "GKE": made(gke.EXAMPLE, '`policy="Static"`', 'MemoryManagerArgs(policy="Static")'),
        "AKS": noted(aks.service(), "no setting", "GP014", "neither memory nor huge pages"),
    },
    "huge pages": {
        "EKS": refused(eks.service() + "  hugepages: 4 GiB\n", "GP003", "'hugepages'"),
        "GKE": refused(gke.manifest() + "  hugepages: 4 GiB\n", "GP003", "'hugepages'"),
        "AKS": noted(aks.service(), "no setting", "GP014", "neither memory nor huge pages"),
    },
    "RDMA": {
        "EKS": made(eks.EXAMPLE, "EFA", 'interfaces(4, "efa")', "vpc.amazonaws.com/efa"),
        "EKS, of another kind": refused(
            eks.EXAMPLE.replace("kind: efa", "kind: infiniband"), "GP016", "no infiniband"
        ),
        "GKE": made(
            gke.EXAMPLE,
            "`mrdma.google.com`",
            'accelerator_network_profile="auto"',
            "mrdma.google.com",
        ),
        "GKE, TCPX": refused(
            gke.EXAMPLE.replace("a3-ultragpu-8g", "a3-highgpu-8g").replace(
                "h200-sxm-141gb", "h100-sxm-80gb"
            ),
            "GP016",
            "no RDMA that pods can",
        ),
        "AKS": made(aks.EXAMPLE, "`rdma/ib`", "rdma/ib", "NicClusterPolicy"),
    },
    "local NVMe, ephemeral": {
        "EKS": made(eks.EXAMPLE, "RAID0", "strategy: RAID0"),
        "GKE": made(
            gke.EXAMPLE,
            "`ephemeral_storage_local_ssd_config`",
            "ephemeral_storage_local_ssd_config",
            "local_ssd_count=32",
        ),
        "AKS": noted(aks.service("Standard_ND96isr_H100_v5"), "unused", "GP014", "NVMe drives of"),
    },
    "local NVMe, raw": {
        "EKS": refused(
            eks.service(cluster=f"{eks.ZONES}, local_disks: block"), "GP016", "local_disks 'block'"
        ),
        "GKE": made(
            gke.MANIFESTS["raw"], "`local_nvme_ssd_block_config`", "local_nvme_ssd_block_config"
        ),
        "AKS": refused(
            aks.service(cluster=f"{aks.ZONES}, local_disks: block"), "GP016", "local_disks 'block'"
        ),
    },
    "MIG": {
        "EKS": made(eks.NOTEBOOKS, "`nvidia.com/mig.config`", "nvidia.com/mig.config", "1g.10gb"),
        "EKS, Karpenter": refused(
            eks.NOTEBOOKS.replace(eks.ZONES, f"{eks.ZONES}, scaling: karpenter"),
            "GP016",
            "cut by MIG",
        ),
        "GKE": made(gke.MANIFESTS["cut"], "`gpu_partition_size`", 'gpu_partition_size="1g.5gb"'),
        "AKS": made(aks.MANIFESTS["cut"], "`nvidia.com/mig.config`", "nvidia.com/mig.config"),
        "AKS, by its driver": made(
            aks.MANIFESTS["by-azure"], "`gpu_instance_profile`", 'gpu_instance_profile="MIG1g"'
        ),
    },
    "time-sharing, MPS": {
        "EKS": shared(desks(eks.service(L40S))),
        "GKE": shared(desks(gke.manifest(L4))),
        "AKS": shared(
            desks(aks.service("Standard_NV36ads_A10_v5", f"{aks.ZONES}, driver: provider"))
        ),
    },
    "spot": {
        "EKS": noted(
            eks.service() + "  preemptible: true\n",
            '`capacity_type="SPOT"`',
            "GP014",
            "no price of spare capacity",
        ),
        "GKE": made(gke.MANIFESTS["spot"], "`spot=True`", "spot=True"),
        "AKS": noted(
            aks.service() + "  preemptible: true\n",
            '`scale_set_priority="Spot"`',
            "GP014",
            "no price of spare capacity",
        ),
    },
    "reservations": {
        "EKS": made(
            eks.MANIFESTS["reserved"],
            "`capacity_reservation_id`",
            "capacity_reservation_id",
            "cr-0123456789abcdef0",
        ),
        "EKS, a Capacity Block": made(
            eks.MANIFESTS["block"],
            '`capacity_type="CAPACITY_BLOCK"`',
            'capacity_type="CAPACITY_BLOCK"',
            'market_type="capacity-block"',
        ),
        "GKE": made(
            gke.MANIFESTS["reserved"],
            "`SPECIFIC_RESERVATION`",
            "SPECIFIC_RESERVATION",
            'reservation("own")',
        ),
        "GKE, a Capacity Block": refused(
            gke.MANIFESTS["reserved"].replace("kind: on-demand", "kind: block"),
            "GP016",
            "no reservation 'block'",
        ),
        "AKS": made(
            aks.MANIFESTS["reserved"],
            "`capacity_reservation_group_id`",
            "capacity_reservation_group_id",
            "capacityReservationGroups/trainers",
        ),
    },
    "flex-start, queued": {
        "EKS": refused(
            eks.service(cluster=waited(L40S, eks.ZONES, "flex-start")),
            "GP016",
            "no provisioning 'flex-start'",
        ),
        "GKE": made(gke.MANIFESTS["flex"], "`flex_start=True`", "flex_start=True", "259200s"),
        "GKE, queued": made(
            gke.MANIFESTS["queued"], "`queued_provisioning`", "queued_provisioning", "flex_start"
        ),
        "GKE, for longer": refused(
            gke.manifest("a3-highgpu-8g", gke.waited("flex-start", longest="8 d")), "GP016", "7 d"
        ),
        "AKS": refused(
            aks.service(cluster=waited(A100, aks.ZONES, "queued")),
            "GP016",
            "no provisioning 'queued'",
        ),
    },
    "scale from zero": {
        "EKS": made(
            eks.EXAMPLE,
            "`min_size=0`",
            "min_size=0, desired_size=0",
            "node-template/resources/nvidia.com/gpu",
        ),
        "EKS, Karpenter": made(
            eks.MANIFESTS["karpenter"], "a NodePool a planned machine", "NodePool", "g6e.2xlarge"
        ),
        "GKE": made(gke.EXAMPLE, "`total_min_node_count=0`", "total_min_node_count=0"),
        "AKS": made(aks.EXAMPLE, "`min_count=0`", "min_count=0"),
        "AKS, cut": noted(
            aks.MANIFESTS["cut-scaled"], "GP014", "GP014", "is cut by MIG and keeps its size"
        ),
    },
    "compact placement": {
        "EKS": made(eks.EXAMPLE, '`strategy="cluster"`', 'strategy="cluster"', "group_name="),
        "GKE": made(
            gke.EXAMPLE.replace(
                "    reservations:\n    - {node: a3-ultragpu-8g, id: trainers, kind: on-demand,"
                " zone: us-central1-b}\n",
                "",
            ),
            '`type="COMPACT"`',
            'type="COMPACT"',
        ),
        "GKE, queued": noted(
            gke.EXAMPLE.replace("platform:", "platform:\n  queue: gpus").replace(
                "    reservations:\n    - {node: a3-ultragpu-8g, id: trainers, kind: on-demand,"
                " zone: us-central1-b}\n",
                "    provisioning: [{node: a3-ultragpu-8g, kind: queued, longest: 2 d}]\n",
            ),
            "GP017",
            "GP017",
            "they may stand apart",
        ),
        "AKS": noted(aks.EXAMPLE, "no promise", "GP014", "one placement group"),
    },
}
CLOUDS = ("EKS", "GKE", "AKS")
every_cell = pytest.mark.parametrize(
    ("row", "name"), [(row, name) for row, cells in CELLS.items() for name in cells]
)


class Compiled:
    """Each manifest of the table once, for several cells ask for the same."""

    def __init__(self, root: Path) -> None:
        self.root, self.numbers = root, itertools.count()
        self.known: dict[str, tuple[int, str, Mapping[str, str]]] = {}

    def __call__(
        self, text: str, capsys: pytest.CaptureFixture[str]
    ) -> tuple[int, str, Mapping[str, str]]:
        if text not in self.known:
            folder = self.root / str(next(self.numbers))
            folder.mkdir()
            (folder / "m.yaml").write_text(text, encoding="utf-8")
            code = main(["compile", str(folder / "m.yaml"), "-o", str(folder / "out")])
            said = " ".join(capsys.readouterr().err.split())
            files = {
                str(p.relative_to(folder)): p.read_text(encoding="utf-8")
                for p in sorted((folder / "out").rglob("*"))
                if p.is_file() and p.name not in ("plan.yaml", "README.md", "gpuplan.lock")
            }
            self.known[text] = code, said, files
        return self.known[text]


@pytest.fixture(scope="session")
def compiled(tmp_path_factory: pytest.TempPathFactory) -> Compiled:
    return Compiled(tmp_path_factory.mktemp("matrix"))


@every_cell
def test_a_cell_is_emitted_or_a_finding_names_it(
    row: str, name: str, compiled: Compiled, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = CELLS[row][name]
    code, said, files = compiled(cell.text, capsys)
    assert code == (2 if cell.refused else 0), said
    for text in cell.emitted:
        assert any(text in content for content in files.values()), text
    if cell.said:
        rule, message = cell.said
        findings = re.split(r"(?=\[GP\d{3}\])", said)
        assert any(f.startswith(f"[{rule}]") and message in f for f in findings), said


def test_every_capability_has_a_cell_of_every_cloud() -> None:
    for row, cells in CELLS.items():
        assert {name.partition(",")[0] for name in cells} == set(CLOUDS), row
    for row, name in ((r, n) for r, cells in CELLS.items() for n in cells):
        cell = CELLS[row][name]
        assert bool(cell.emitted) != bool(cell.said), f"{row}, {name}"


def documented() -> Iterator[tuple[str, tuple[str, ...]]]:
    text = PAGE.read_text(encoding="utf-8").partition("## What each cloud has of a node")[2]
    for line in text.partition("\n## ")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split(" | ")]
        if line.startswith("| ") and len(cells) == 4:
            yield cells[0], tuple(cells[1:])


@every_cell
def test_the_page_says_what_is_done(row: str, name: str) -> None:
    cell = dict(documented())[row][CLOUDS.index(name.partition(",")[0])]
    for text in CELLS[row][name].documented:
        assert text in cell, f"{row}, {name}"
