"""A stack of virtual machines compiled again over itself: one guest is changed, one moved, one
removed, one added, one left alone, and a person reads which of them are interrupted."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from gpuplan.cli.main import main

HOST = """\
- names: [{name}]
  node_type: pcie-2x-a100
  cpu_vendor: amd
  physical_address_bits: 48
  threads_per_core: 2
  sockets: 2
  numa_nodes:
  - {{cpus: "0-31,64-95", memory: 256 GiB, distances: [10, 32]}}
  - {{cpus: "32-63,96-127", memory: 256 GiB, distances: [32, 10]}}
  gpus:
{gpus}
  hypervisor: {{disk_path: /dev/vg0, bridge: br0, image: {image}}}
"""
IMAGE = "{path: /srv/debian-13.qcow2, system: debian-13, sha256: " + "ab" * 32 + "}"
GPU = (
    '  - {{type: a100-pcie-80gb, address: "0000:{bus}:00.0", pci_id: "10de:20b5",'
    " numa_node: {node}, iommu_group: 4{node}}}"
)
GPUS = (GPU.format(bus="25", node=0), GPU.format(bus="a1", node=1))
DESK = (
    "- {{name: {name}, task: notebook, notebook: {{users: 1, gpu_memory: 60 GiB}},"
    " tenancy: {{team: t, isolation: gpu}}{more}}}\n"
)
MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: site
platform: {{target: libvirt, inventory: inventory.yaml, gpus: [a100-pcie-80gb]}}
workloads:
{desks}"""


class Site:
    """The stack in `folder` as it is applied (`was`) and as it is compiled over that (`now`)."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.was, self.now = folder / "was/site", folder / "now/site"

    def compile(self, out: str, hosts: dict[str, int], desks: dict[str, str]) -> None:
        text = "".join(
            HOST.format(name=name, gpus="\n".join(GPUS[:count]), image=IMAGE)
            for name, count in hosts.items()
        )
        inventory = f"apiVersion: gpuplan.dev/inventory/v1\nname: site\nhosts:\n{text}"
        (self.folder / "inventory.yaml").write_text(inventory)
        lines = "".join(DESK.format(name=n, more=more) for n, more in desks.items())
        (self.folder / "site.yaml").write_text(MANIFEST.format(desks=lines))
        assert main(["compile", str(self.folder / "site.yaml"), "-o", str(self.folder / out)]) == 0

    def before(self, hosts: dict[str, int], *desks: str) -> None:
        self.compile("was", hosts, dict.fromkeys(desks, ""))
        shutil.copytree(self.was.parent, self.now.parent)

    def after(self, hosts: dict[str, int], **desks: str) -> None:
        self.compile("now", hosts, desks)


MEMORY = ", overrides: {host_memory_per_gpu: 120 GiB}"
TWO = {"hv-01": 2, "hv-02": 2}


def said(capsys: pytest.CaptureFixture[str], *words: str | Path) -> str:
    """What a verb says, as one line; it fails where an update would."""
    capsys.readouterr()
    main([str(w) for w in words])
    return re.sub(r"\s+", " ", capsys.readouterr().out)


FOUR = (
    "bigger-0 changes on hv-02: runs on as it was, until it is shut down and started",
    "moves-0 moves from hv-02 to hv-01: shut down before, starts there anew",
    "comes-0 is added on hv-03: it starts once hv-03 boots for its new settings",
    "leaves-0 leaves hv-01: shut down before, its disks stay there",
    "stays-0 as before: not interrupted",
)


def test_the_four_changes_are_shown_with_what_they_interrupt(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = Site(tmp_path)
    site.before(TWO, "stays", "leaves", "bigger", "moves")
    # A card of hv-02 is gone, and a host comes.
    site.after({"hv-01": 2, "hv-02": 1, "hv-03": 2}, stays="", bigger=MEMORY, moves="", comes="")
    for form in ("text", "markdown"):
        shown = said(capsys, "diff", site.was, site.now, "--format", form)
        for line in FOUR:
            assert line in shown.replace("\\", "").replace("guest ", ""), form
    assert "164 GiB to copy" in shown
    preview = said(capsys, "preview", site.now, "--against", site.was)
    for line in FOUR:
        assert line in preview
    assert "protected: this would fail" in preview, "a guest that leaves is never just dropped"
    told = {
        "stays-0": "none",
        "bigger-0": "next start",
        "moves-0": "before",
        "comes-0": "none",
        "leaves-0": "before",
    }
    (stack,) = json.loads(said(capsys, "diff", site.was, site.now, "--json"))["stacks"]
    assert {g["name"]: g["interrupted"] for g in stack["guests"]} == told
    tree = json.loads(said(capsys, "preview", site.now, "--against", site.was, "--json"))
    assert tree["guests"] == stack["guests"]


def test_nothing_changes_and_nobody_is_interrupted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = Site(tmp_path)
    site.before(TWO, "stays", "other")
    site.after(TWO, stays="", other="")
    shown = said(capsys, "preview", site.now, "--against", site.was)
    assert "Guests: other-0, stays-0 as before: not interrupted" in shown


def test_what_a_guest_installs_is_a_change_and_a_neighbour_is_told_of_its_host_s_boot(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A GPU comes into a host whose guest then waits for no change of its own."""
    site = Site(tmp_path)
    site.before({"hv-01": 2}, "stays")
    site.after({"hv-01": 4}, stays="", comes="")
    shown = said(capsys, "diff", site.was, site.now)
    assert "comes-0 is added on hv-01: it starts once hv-01 boots" in shown
    assert "stays-0 is as it was, and is interrupted when hv-01 boots" in shown


def test_plans_without_their_files_are_compared_by_themselves(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    site = Site(tmp_path)
    site.before(TWO, "stays", "leaves")
    site.after(TWO, stays=MEMORY)
    shown = said(capsys, "diff", site.was / "plan.yaml", site.now / "plan.yaml")
    assert "stays-0 changes on hv-01: runs on as it was" in shown
    assert "leaves-0 leaves hv-01: shut down before" in shown
