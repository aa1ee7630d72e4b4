"""A real libvirt takes the domains as they are written, and QEMU and firmware make of them what the
checks say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from pathlib import Path

import pytest

from gpuplan.backends.libvirt import emit
from gpuplan.plan.model import Plan
from tests.backends.test_libvirt import FAULTS, PLANS, STACKS, seeded
from tests.backends.test_seeds import SECRETS, imaged
from tests.hypervisor.conftest import running_on
from tests.placement.test_combinations import CASES, LEGAL, placed, plan, refusal, without_idle
from tests.support import odd_machines
from tests.support.hypervisor_plans import plan_of, plans
from tests.support.require import require
from tests.tools import guest
from tests.tools.libvirtd import Libvirtd, convertible, run

pytestmark = pytest.mark.hypervisor

# Faults that libvirt 9 refuses. It accepts all others, which is why our checker is there.
REFUSED = {
    "vCPU pinned twice",
    "GPU behind the other node's bus",
    "topology of another size",
    "emulator nowhere",
    "disk on a thread that does not exist",
    "the same GPU twice",
    "two devices at one address",
    "a device on an expander bus itself",
    "another machine",
    "a named CPU",
    "numbers that are none",
    "no XML",
}


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with a short name, for sockets."""
    with tempfile.TemporaryDirectory(prefix="gp-", dir="/tmp") as name:
        yield Path(name)


def stack(name: str, folder: Path) -> Path:
    """The plan's files on disk; where the domains are."""
    return written_to(folder, plans()[name])


def written_to(folder: Path, plan: Plan) -> Path:
    for file in emit(plan).files:
        path = folder / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(file.text, encoding="utf-8")
    return folder / "hypervisor/libvirt"


def domains(folder: Path) -> list[Path]:
    return sorted(p for p in folder.glob("*.xml") if not p.name.endswith(".nccl-topo.xml"))


def argv(daemon: Libvirtd, xml: Path, folder: Path) -> str:
    """QEMU's command line, from libvirt."""
    plain = folder / "plain.xml"
    plain.write_text(convertible(xml.read_text(encoding="utf-8")), encoding="utf-8")
    result = daemon.virsh("domxml-to-native", "qemu-argv", plain)
    assert result.ok, result.output
    return result.output


def test_libvirt_sees_the_host_that_is_not_there(daemon: Libvirtd) -> None:
    assert "CPU(s):              224" in daemon.virsh("nodeinfo").output
    pages = daemon.virsh("freepages", "--all").output
    assert pages.count("1048576KiB: 956") == 2


@pytest.mark.parametrize("name", [*PLANS, "the repository's stacks"])
def test_libvirt_defines_every_domain_as_it_is(name: str, either: Libvirtd, folder: Path) -> None:
    daemon = either
    if name in PLANS:
        written = domains(stack(name, folder))
    else:
        written = [x for s in sorted(STACKS.iterdir()) for x in domains(s / "hypervisor/libvirt")]
    assert written
    for xml in written:
        schema = daemon.valid(xml)
        assert schema.ok, schema.output
        defined = daemon.virsh("define", "--validate", xml)
        try:
            assert defined.ok, defined.output
            kept = daemon.virsh("dumpxml", "--inactive", xml.stem)
            assert "<locked/>" in kept.output
        finally:
            daemon.virsh("undefine", "--nvram", xml.stem)
        assert "qemu-system-x86_64" in argv(daemon, xml, folder)


@pytest.fixture(scope="session")
def combinations(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """The domains of every legal combination, by machine."""
    found: dict[str, list[Path]] = {}
    with pytest.MonkeyPatch.context() as patch:
        without_idle(patch)
        for number, case in enumerate(c for c in CASES if not refusal(c)):
            for file in emit(plan(case, placed(case))).files:
                if file.path.endswith("-0.xml"):
                    xml = tmp_path_factory.getbasetemp() / f"{number}-{Path(file.path).name}"
                    xml.write_text(file.text, encoding="utf-8")
                    found.setdefault(case.machine, []).append(xml)
    return found


@pytest.mark.parametrize("name", LEGAL)
def test_libvirt_defines_each_legal_combination_on_real_machines(
    name: str, either: Libvirtd, combinations: dict[str, list[Path]]
) -> None:
    assert len(combinations[name]) >= LEGAL[name], "one or two guests each"
    defined = either.defined(combinations[name])
    assert defined.ok, defined.output


def odd_stack(name: str, gpus: int, folder: Path) -> Path:
    """The files of guests on a machine whose NUMA nodes are unlike; where the domains are."""
    return written_to(folder, plan_of(odd_machines.placed(name, gpus)))


@pytest.mark.parametrize("name", odd_machines.MACHINES)
def test_libvirt_defines_guests_of_hosts_whose_numa_nodes_are_unlike(
    name: str, either: Libvirtd, folder: Path
) -> None:
    every: list[Path] = []
    for gpus in (g for machine, g in odd_machines.CASES if machine == name):
        every += domains(odd_stack(name, gpus, folder / str(gpus)))
    assert len(every) >= 7
    for xml in every:
        schema = either.valid(xml)
        assert schema.ok, schema.output
    defined = either.defined(every)
    assert defined.ok, defined.output


@pytest.mark.parametrize("name", ["whole hosts", "mig"])
def test_libvirt_defines_guests_with_seeds_and_credentials(
    name: str, either: Libvirtd, folder: Path
) -> None:
    daemon = either
    for file in emit(imaged(name, secrets=SECRETS)).files:
        if file.path.endswith("-0.xml"):
            xml = folder / Path(file.path).name
            xml.write_text(file.text, encoding="utf-8")
            assert daemon.valid(xml).ok
            defined = daemon.virsh("define", "--validate", xml)
            kept = daemon.virsh("dumpxml", "--inactive", xml.stem)
            daemon.virsh("undefine", "--nvram", xml.stem)
            assert defined.ok, defined.output
            assert "opt/io.systemd.credentials/hfToken" in kept.output
            assert "device='cdrom'" in kept.output


def test_the_window_reaches_qemu(daemon: Libvirtd, folder: Path) -> None:
    from dataclasses import replace

    plan = plans()["whole hosts"]
    small = tuple(replace(m, physical_address_bits=43) for m in plan.virtual_machines)
    (file,) = (
        f
        for f in emit(replace(plan, virtual_machines=small)).files
        if f.path.endswith("/big-0.xml")
    )
    xml = folder / "big-0.xml"
    xml.write_text(file.text, encoding="utf-8")
    assert run("virt-xml-validate", xml, "domain").ok
    assert "name=opt/ovmf/X-PciMmio64Mb,string=4194304" in argv(daemon, xml, folder)


@pytest.mark.parametrize(
    ("name", "vm", "ovmf"),
    [
        ("whole hosts", "big-0", False),
        ("whole hosts", "big-0", True),
        ("uneven", "spread-0", False),
    ],
)
def test_firmware_puts_devices_where_the_checks_say(
    name: str, vm: str, ovmf: bool, daemon: Libvirtd, folder: Path
) -> None:
    written = stack(name, folder)
    line = argv(daemon, written / f"{vm}.xml", folder)
    seen = guest.boot(line, folder, ovmf=ovmf, seconds=120)
    as_checked(written / f"{vm}.checks.json", seen, ovmf=ovmf)


@pytest.mark.parametrize("name", odd_machines.MACHINES)
def test_libvirt_finds_the_nodes_that_guests_are_bound_to_on_such_a_host(
    name: str, folder: Path
) -> None:
    """Also where a node has no CPUs. What firmware shows the largest guest is what is promised."""
    most = max(gpus for machine, gpus in odd_machines.CASES if machine == name)
    [host] = odd_machines.placed(name, most).hosts
    with running_on(host) as daemon:
        cells = ET.fromstring(daemon.virsh("capabilities").output).findall("host/topology/cells/")
        assert len(cells) == len(host.numa_nodes)
        lines = [
            argv(daemon, xml, folder)
            for gpus in (g for machine, g in odd_machines.CASES if machine == name)
            for xml in domains(odd_stack(name, gpus, folder / str(gpus)))
        ]
    bound = {int(n) for line in lines for n in re.findall(r"host-nodes..?:?\[?(\d+)", line)}
    assert bound == set(odd_machines.MACHINES[name].on)
    checks = folder / str(most) / "hypervisor/libvirt/tune-0.checks.json"
    as_checked(checks, guest.boot(lines[-1], folder, ovmf=False, seconds=120), ovmf=False)


def as_checked(path: Path, seen: guest.Seen, *, ovmf: bool) -> None:
    """What a guest sees is what its checks say."""
    checks = json.loads(path.read_text(encoding="utf-8"))
    assert {d["name"]: d["bus"] for d in checks["devices"]} == {
        name.removeprefix("ua-"): bus for name, bus in seen.buses.items() if name[:3] == "ua-"
    }
    firsts = sorted(seen.roots)
    for device in checks["devices"]:
        bus = int(device["bus"][5:7], 16)
        root = max(first for first in firsts if first <= bus)
        assert seen.roots[root] == device["node"], device
    if not ovmf:
        nodes = {n["node"]: n["cpus"] for n in checks["nodes"]}
        for cpu, node in seen.cpus.items():
            first, _, last = nodes[node].partition("-")
            assert int(first) <= cpu <= int(last)


@pytest.mark.parametrize("name", FAULTS)
def test_libvirt_alone_would_let_most_faults_pass(
    name: str, either: Libvirtd, folder: Path
) -> None:
    """Our checker finds each of them (tests/backends/test_libvirt.py)."""
    daemon = either
    xml, machine, _, _ = seeded(name)
    path = folder / "seeded.xml"
    path.write_text(xml, encoding="utf-8")
    result = daemon.virsh("define", "--validate", path)
    for known in (machine.name, "big-9"):
        daemon.virsh("undefine", "--nvram", known)
    assert result.ok == (name not in REFUSED), result.output


@pytest.mark.parametrize("name", ["mig", "infiniband", "whole hosts"])
def test_the_host_s_units_and_scripts_are_sound(name: str, folder: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        require("hypervisor", "systemd-analyze is not installed (see tests/tools/hypervisor-setup)")
    stack(name, folder)
    host = folder / "hypervisor/host/hv-01"
    hooks = (host / "etc/libvirt/hooks/qemu.d").iterdir()
    for script in [host / "setup.sh", *hooks, *(host / "usr/local/sbin").iterdir()]:
        subprocess.run(["sh", "-n", script], check=True)
    for unit in (host / "etc/systemd/system").glob("*.service"):
        result = run("systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit)
        mine = [line for line in result.output.splitlines() if unit.name in line]
        assert [line for line in mine if "is not executable" not in line] == []


def test_the_host_s_ip_takes_what_names_an_infiniband_function(folder: Path) -> None:
    """The kernel refuses it of a device that is no such card; a word too many, `ip` itself."""
    if shutil.which("ip") is None:
        require("hypervisor", "no iproute2")
    domains = stack("infiniband", folder)
    script = (domains.parent / "host/hv-01/usr/local/sbin/gpuplan-nics").read_text(encoding="utf-8")
    (line,) = (row.strip() for row in script.splitlines() if "node_guid" in row and "ip " in row)
    line = line.replace('"${port##*/}"', "lo").replace('"$function"', "0")
    result = run("sh", "-c", line.replace('"$3"', "52:00:00:00:00:00:00:01"))
    assert result.output == "RTNETLINK answers: Operation not supported"
