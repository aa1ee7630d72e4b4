"""A guest that really starts: its threads on their CPUs, its memory in huge pages.

Under emulation and without devices, because a test machine has no KVM and no GPU; paused, because
there is nothing to run. In one 1 GiB page, or in 2 MiB pages where the machine's memory is too
scattered to give one.
"""

from __future__ import annotations

import re
import tempfile
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from gpuplan.backends.libvirt import emit
from gpuplan.plan.model import Core, CpuPin, Disk, GuestCell, NumaNode, Plan
from gpuplan.units import GIB, KIB, MIB
from tests.hypervisor.conftest import SYSTEMS
from tests.support.hypervisor_plans import plans
from tests.support.require import require
from tests.support.samples import libvirt_plan, sample_host, sample_vm
from tests.tools import libvirtd

pytestmark = pytest.mark.hypervisor

PAGES = Path("/sys/kernel/mm/hugepages")
COMPACT = Path("/proc/sys/vm/compact_memory")


@contextmanager
def huge_pages(gibibytes: int = 1) -> Iterator[int]:
    """So much more in huge pages of this machine, given back afterwards: the bytes of a page."""
    for page in (GIB, 2 * MIB):
        knob = pool(page) / "nr_hugepages"
        before = int(knob.read_text())
        try:
            COMPACT.write_text("1")
            more = gibibytes * GIB // page
            knob.write_text(str(before + more))
            if int(knob.read_text()) == before + more:
                yield page
                return
        finally:
            knob.write_text(str(before))
    require("hypervisor", "the kernel has no free memory for huge pages")


def pool(page: int) -> Path:
    """Where the kernel counts its huge pages of `page` bytes."""
    return PAGES / f"hugepages-{page // KIB}kB"


def small_plan(folder: Path, page: int) -> Plan:
    """One vCPU on CPU 1 and 1 GiB of memory in pages of `page` bytes; the host keeps CPU 0."""
    node = NumaNode(
        node=0,
        cores=(Core(cpus=(0,)), Core(cpus=(1,))),
        memory_bytes=8 * GIB,
        reserved_cores=(Core(cpus=(0,)),),
        hugepages=GIB // page,
        distances=(10,),
    )
    host = replace(
        sample_host(), threads_per_core=1, numa_nodes=(node,), devices=(), hugepage_bytes=page
    )
    cell = GuestCell(
        cell=0,
        host_node=0,
        pins=(CpuPin(vcpu=0, cpu=1),),
        memory_bytes=GIB,
        emulator_cpus=(0,),
        iothread_cpus=(0,),
    )
    disk = folder / "root.img"
    with disk.open("wb") as file:
        file.truncate(8 * MIB)
    machine = replace(
        sample_vm(),
        threads_per_core=1,
        memory_bytes=GIB,
        hugepage_bytes=page,
        cells=(cell,),
        devices=(),
        disks=(Disk(name="root", source=str(disk), size_bytes=8 * MIB),),
    )
    return replace(libvirt_plan(), hosts=(host,), virtual_machines=(machine,))


def emulated(text: str) -> str:
    """The domain for QEMU's own emulation, without a network."""
    root = ET.fromstring(text)
    root.set("type", "qemu")
    cpu, devices = root.find("cpu"), root.find("devices")
    assert cpu is not None
    assert devices is not None
    cpu.attrib.clear()
    cpu.set("mode", "maximum")
    for name in ("cache", "maxphysaddr"):
        for child in cpu.findall(name):
            cpu.remove(child)
    for interface in devices.findall("interface"):
        devices.remove(interface)
    backing = root.find("memoryBacking")
    locked = root.find("memoryBacking/locked")
    assert backing is not None
    assert locked is not None
    backing.remove(locked)  # a container may not lift the limit
    return ET.tostring(root, encoding="unicode")


def qemu(guest: str) -> int:
    """The process of a running guest."""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        if f"guest={guest},".encode() in path.read_bytes():
            return int(path.parent.name)
    raise AssertionError(f"{guest} does not run")


def threads(process: int) -> dict[str, str]:
    """The CPUs of each named thread."""
    found = {}
    for task in Path(f"/proc/{process}/task").iterdir():
        status = (task / "status").read_text()
        allowed = re.search(r"Cpus_allowed_list:\t(\S+)", status)
        assert allowed is not None
        found[(task / "comm").read_text().strip()] = allowed[1]
    return found


def hook_of(plan: Plan, programs: Path) -> str:
    """The hook that the first host of `plan` gets, which finds its programs in `programs`."""
    hook = next(f.text for f in emit(plan).files if "/hooks/qemu.d/" in f.path)
    return hook.replace("/usr/local/sbin", str(programs)).replace("/run/", f"{programs}/")


@pytest.mark.parametrize("root", SYSTEMS.values(), ids=SYSTEMS)
def test_libvirt_asks_the_hook_before_each_start(root: Path | None) -> None:
    if missing := libvirtd.absent(root):
        require("hypervisor", missing)
    with tempfile.TemporaryDirectory(prefix="gp-", dir="/tmp") as name, huge_pages() as page:
        folder = Path(name)
        plan = small_plan(folder, page)
        hook = folder / "hooks/qemu.d/gpuplan"
        hook.parent.mkdir(parents=True)
        hook.write_text(hook_of(plans()["whole hosts"], folder), encoding="utf-8")
        hook.chmod(0o755)
        (folder / "gpuplan-nics").write_text("true\n", encoding="utf-8")
        program = folder / "gpuplan-devices"
        program.write_text(f'echo "$@" >>{folder}/log; test -e {folder}/free\n', encoding="utf-8")
        daemon = libvirtd.start(folder, root)
        try:
            (file,) = (f for f in emit(plan).files if f.path.endswith("/tune-0.xml"))
            xml = folder / "tune-0.xml"
            xml.write_text(emulated(file.text), encoding="utf-8")
            refused = daemon.virsh("create", "--paused", xml)
            assert not refused.ok
            assert "qemu.d/gpuplan" in refused.output
            (folder / "free").touch()
            created = daemon.virsh("create", "--paused", xml)
            assert created.ok, created.output
            assert (folder / "log").read_text(encoding="utf-8") == "bind tune-0\n" * 2
        finally:
            daemon.virsh("destroy", "tune-0")
            daemon.stop()


def test_a_started_guest_is_pinned_and_in_huge_pages() -> None:
    if missing := libvirtd.absent():
        require("hypervisor", missing)
    with tempfile.TemporaryDirectory(prefix="gp-", dir="/tmp") as name, huge_pages() as page:
        folder = Path(name)
        daemon = libvirtd.start(folder)
        try:
            plan = small_plan(folder, page)
            (file,) = (f for f in emit(plan).files if f.path.endswith("/tune-0.xml"))
            xml = folder / "tune-0.xml"
            xml.write_text(emulated(file.text), encoding="utf-8")
            free = int((pool(page) / "free_hugepages").read_text())
            created = daemon.virsh("create", "--validate", "--paused", xml)
            assert created.ok, created.output
            assert int((pool(page) / "free_hugepages").read_text()) == free - GIB // page
            found = threads(qemu("tune-0"))
            assert found["CPU 0/TCG"] == "1"
            assert found["IO iothread1"] == found["qemu-system-x86"] == "0"
        finally:
            daemon.virsh("destroy", "tune-0")
            daemon.stop()
