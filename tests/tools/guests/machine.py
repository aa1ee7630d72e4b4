"""A guest that boots and runs, from what a stack emits for it: its domain, its seed and the script
that makes its disks.

What a host without GPUs cannot give is replaced in the domain, each device by an emulated one at
the same place of the same bus: PCI test devices for GPUs, NVMe drives and virtio cards for those
that would be passed through. CPUs, memory and paths are those of this machine. All else stays.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from dataclasses import dataclass, replace
from pathlib import Path

from gpuplan.backends.libvirt import emit
from gpuplan.plan.model import Core, CpuPin, Disk, GuestImage, Host, NumaNode, Plan, VirtualMachine
from gpuplan.units import GIB
from tests.tools.guests import mirror
from tests.tools.libvirtd import Libvirtd

CACHE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / "gpuplan-guest"
PROGRAMS = ("busybox", "dnsmasq", "dpkg-deb", "gpg", "nsenter", "qemu-img", "ssh", "xorriso")
GATEWAY = "10.77.0.1"
QEMU = "http://libvirt.org/schemas/domain/qemu/1.0"
NETWORK = f"""\
set -e
ip link set lo up
ip link add br0 type bridge
ip address add {GATEWAY}/24 dev br0
ip link set br0 up
"""


def absent() -> str | None:
    """What is missing here, or None."""
    missing = [p for p in PROGRAMS if shutil.which(p) is None]
    if missing or not (CACHE / ".ready").exists():
        return (
            f"no image of a guest{': ' if missing else ''}{', '.join(missing)} (see `make guest`)"
        )
    return None


def accelerated() -> bool:
    """Whether the processor itself runs guests. Other modules of KVM take no firmware."""
    return any(Path(f"/sys/module/{name}").exists() for name in ("kvm_intel", "kvm_amd"))


def scaled(plan: Plan, page: int, folder: Path, key: str) -> Plan:
    """The first guest of `plan` on this machine: a vCPU and a gibibyte for each of its cells, in
    huge pages of `page` bytes; its disks are files below `folder`."""
    machine = plan.virtual_machines[0]
    node = NumaNode(
        node=0,
        cores=(Core(cpus=(0,)), Core(cpus=(1,))),
        memory_bytes=16 * GIB,
        reserved_cores=(Core(cpus=(0,)),),
        hugepages=len(machine.cells) * GIB // page,
        distances=(),
    )
    image = GuestImage(
        path=str(folder / "image.qcow2"), sha256=_sha256(), system="debian-13", keys=(key,)
    )
    (host,) = (h for h in plan.hosts if h.name == machine.host)
    small = replace(host, threads_per_core=1, numa_nodes=(node,), hugepage_bytes=page, image=image)
    cells = tuple(
        replace(
            c,
            host_node=0,
            pins=(CpuPin(vcpu=c.cell, cpu=1 - c.cell % 2),),
            memory_bytes=GIB,
            emulator_cpus=(0,),
            iothread_cpus=(0,),
        )
        for c in machine.cells
    )
    guest = replace(
        machine,
        cells=cells,
        threads_per_core=1,
        memory_bytes=len(cells) * GIB,
        hugepage_bytes=page,
        disks=tuple(_disk(d, folder) for d in machine.disks),
    )
    return replace(plan, hosts=(small,), virtual_machines=(guest,))


def _disk(disk: Disk, folder: Path) -> Disk:
    size = 4 * GIB if disk.name == "root" else GIB
    return replace(disk, source=f"{folder}/{disk.name}", size_bytes=size)


def _sha256() -> str:
    done = subprocess.run(
        ["sha256sum", CACHE / "image.qcow2"], check=True, capture_output=True, text=True
    )
    return done.stdout.split()[0]


@dataclass
class Guest:
    """A guest of `daemon`, its files in `folder`."""

    daemon: Libvirtd
    folder: Path
    name: str
    servers: tuple[subprocess.Popen[bytes], ...]

    def write(self, plan: Plan) -> None:
        """Everything that the stack has for the guest, and what its host's script makes of it."""
        (host,), (machine,) = plan.hosts, plan.virtual_machines
        texts = {f.path: f.text for f in emit(plan).files}
        mine = f"hypervisor/host/{host.name}"
        for path, text in texts.items():
            if path.startswith(f"{mine}/var/lib/gpuplan/"):
                file = self.folder / path.removeprefix(f"{mine}/var/lib/gpuplan/")
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(text, "utf-8")
        script = texts[f"{mine}/usr/local/sbin/gpuplan-disks"]
        script = script.replace("/var/lib/gpuplan", str(self.folder))
        subprocess.run(["sh", "-c", script, "sh", "make"], check=True, capture_output=True)
        xml = self.domain(texts[f"hypervisor/libvirt/{machine.name}.xml"], machine, host)
        (self.folder / "domain.xml").write_text(xml, "utf-8")
        defined = self.daemon.virsh("define", "--validate", self.folder / "domain.xml")
        assert defined.ok, defined.output

    def domain(self, text: str, machine: VirtualMachine, host: Host) -> str:
        text = text.replace("/etc/gpuplan/secrets", f"{self.folder}/secrets")
        text = text.replace("/var/lib/gpuplan", str(self.folder))
        ET.register_namespace("qemu", QEMU)
        root = ET.fromstring(text)
        if not accelerated():
            root.set("type", "qemu")
            cpu = root.find("cpu")
            assert cpu is not None
            cpu.attrib = {"mode": "maximum"}
            for name in ("cache", "maxphysaddr"):
                cpu[:] = [child for child in cpu if child.tag != name]
        backing, devices = root.find("memoryBacking"), root.find("devices")
        assert backing is not None
        assert devices is not None
        backing[:] = [child for child in backing if child.tag != "locked"]
        serial = devices.find("serial")
        assert serial is not None
        ET.SubElement(serial, "log", file=f"{self.folder}/console", append="on")
        if not Path("/dev/vhost-net").exists():
            for driver in devices.findall("interface/driver[@name='vhost']"):
                driver.set("name", "qemu")
        arguments = self.stand_ins(devices, machine)
        line = root.find(f"{{{QEMU}}}commandline")
        line = ET.SubElement(root, f"{{{QEMU}}}commandline") if line is None else line
        for value in arguments:
            ET.SubElement(line, f"{{{QEMU}}}arg", value=value)
        return ET.tostring(root, encoding="unicode")

    def stand_ins(self, devices: ET.Element, machine: VirtualMachine) -> list[str]:
        """Emulated devices in place of the host's."""
        arguments: list[str] = []
        for element in [e for e in devices if e.find("source/address") is not None]:
            alias, at = element.find("alias"), element.find("address")
            assert alias is not None
            assert at is not None
            name = alias.attrib["name"]
            (device,) = (d for d in machine.devices if f"ua-{d.name}" == name)
            place = {"bus": f"pci.{int(at.attrib['bus'], 16)}", "addr": at.attrib["slot"]}
            made: dict[str, object] = {"driver": "pci-testdev"}
            if device.kind == "nic":
                made = {"driver": "virtio-net-pci", "mac": device.mac, "romfile": ""}
            elif device.kind == "nvme":
                file = self.folder / f"{device.name}.raw"
                if not file.exists():
                    with file.open("wb") as drive:
                        drive.truncate(GIB // 4)
                arguments += ["-drive", f"file={file},format=raw,if=none,id={device.name}"]
                made = {"driver": "nvme", "serial": device.name, "drive": device.name}
            arguments += ["-device", json.dumps(made | place | {"id": name})]
            devices.remove(element)
        return arguments

    def start(self) -> None:
        started = self.daemon.virsh("start", self.name)
        assert started.ok, started.output

    def stop(self) -> None:
        """As an administrator does, by the guest's power button."""
        self.daemon.virsh("shutdown", self.name)
        self.until(lambda: "shut off" in self.daemon.virsh("domstate", self.name).output, 600)

    def host(self, *words: str) -> subprocess.CompletedProcess[str]:
        """A command on the guest's host."""
        command = ["nsenter", f"--target={self.daemon.process.pid}", "--net", *words]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    def address(self) -> str:
        for line in (self.folder / "leases").read_text().splitlines():
            _, _, address, name, _ = line.split()
            if name == self.name:
                return address
        return ""

    def run(self, command: str, user: str = "debian") -> subprocess.CompletedProcess[str]:
        """A command in the guest, over SSH."""
        options = ("StrictHostKeyChecking=no", "UserKnownHostsFile=/dev/null", "LogLevel=ERROR")
        options += ("ConnectTimeout=5", "BatchMode=yes", f"IdentityFile={self.folder}/key")
        words = [w for o in options for w in ("-o", o)]
        return self.host("ssh", *words, f"{user}@{self.address()}", command)

    def asked(self, command: str) -> str:
        """What a command in the guest says, as root; it has to succeed."""
        done = self.run(f"sudo sh -c {shlex.quote(command)}")
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout.strip()

    def until(self, condition: object, seconds: float) -> None:
        """Wait for something that has to come."""
        assert callable(condition)
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, f"not within {seconds:g} s:\n{self.console()}"
            time.sleep(0.5)

    def console(self) -> str:
        file = self.folder / "console"
        return file.read_text("utf-8", "replace")[-20_000:] if file.exists() else "no console"

    def close(self) -> None:
        self.daemon.virsh("destroy", self.name)
        self.daemon.virsh("undefine", "--nvram", self.name)
        for server in self.servers:
            server.kill()
            server.wait()


def key(folder: Path) -> str:
    """The public key of a new pair in `folder`."""
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "admin", "-f", folder / "key"]
    subprocess.run(words, check=True)
    return (folder / "key.pub").read_text().strip()


def prepare(daemon: Libvirtd, folder: Path, name: str, pins: tuple[str, str, str]) -> Guest:
    """A bridge with addresses and names, and behind it the server that they lead to."""
    site = folder / "site"
    mirror.build(site, *pins, CACHE / "debian")
    mirror.image(site)
    inside = ["nsenter", f"--target={daemon.process.pid}", "--net"]
    subprocess.run([*inside, "sh", "-c", NETWORK], check=True)
    (folder / "image.qcow2").symlink_to(CACHE / "image.qcow2")
    dns = [
        "dnsmasq", "--keep-in-foreground", "--no-resolv", "--no-hosts", "--interface=br0",
        "--bind-interfaces", f"--address=/#/{GATEWAY}", "--dhcp-range=10.77.0.10,10.77.0.90,12h",
        f"--dhcp-leasefile={folder}/leases", "--pid-file=", "--user=root", "--conf-file=/dev/null",
    ]  # fmt: skip
    served = [sys.executable, mirror.__file__, str(site), GATEWAY]
    certificates = [str(CACHE / "server.pem"), str(CACHE / "server.key")]
    servers = []
    for number, command in enumerate((dns, [*served, *certificates])):
        with (folder / f"server-{number}.log").open("wb") as log:
            servers.append(subprocess.Popen([*inside, *command], stdout=log, stderr=log))
    (folder / "leases").touch()
    return Guest(daemon, folder, name, tuple(servers))
