"""A libvirtd of our own: in private namespaces, on a host written by `fakehost`, without a trace on
the machine. Needs root, libvirt and QEMU (`tests/tools/hypervisor-setup` installs them).

A machine without KVM cannot say what QEMU can do with it, so libvirt would refuse every domain.
There the daemon is started twice: once to find out what QEMU can do by itself, then with that said
of KVM too. Nothing runs under KVM; domains are only checked.
"""

from __future__ import annotations

import copy
import os
import platform
import re
import shutil
import subprocess
import time
import xml.etree.ElementTree as ET
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

PROGRAMS = ("libvirtd", "virsh", "virt-xml-validate", "qemu-system-x86_64", "unshare")
DAEMON_CONF = """\
unix_sock_dir = "{folder}"
auth_unix_rw = "none"
auth_unix_ro = "none"
log_outputs = "3:file:{folder}/libvirtd.log"
"""
# The plain QEMU: no security driver, cgroups or namespaces for guests.
QEMU_CONF = """\
user = "root"
group = "root"
security_driver = "none"
dynamic_ownership = 0
remember_owner = 0
namespaces = []
cgroup_controllers = []
stdio_handler = "file"
hugetlbfs_mount = ["{folder}/pages-1G", "{folder}/pages-2M"]
"""
START = """\
set -e
for folder in /run/libvirt /var/lib/libvirt /etc/libvirt/qemu; do
    mkdir -p $folder
    mount -t tmpfs tmpfs $folder
done
mkdir -p /var/cache/libvirt "$1/cache" "$1/dev"
mount --bind "$1/cache" /var/cache/libvirt
mount --bind "$1/qemu.conf" /etc/libvirt/qemu.conf
for size in 1G 2M; do
    mkdir -p "$1/pages-$size"
    mount -t hugetlbfs -o pagesize=$size pages "$1/pages-$size"
done
if [ -d "$1/hooks" ]; then
    mkdir -p /etc/libvirt/hooks
    mount --bind "$1/hooks" /etc/libvirt/hooks
fi
if [ -d "$1/sys" ]; then
    mount --bind "$1/sys/cpu" /sys/devices/system/cpu
    mount --bind "$1/sys/node" /sys/devices/system/node
fi
if [ ! -e /dev/kvm ]; then
    mount -t tmpfs tmpfs "$1/dev"
    cp -a /dev/null /dev/zero /dev/full /dev/random /dev/urandom /dev/tty /dev/ptmx "$1/dev/"
    ln -s /proc/self/fd "$1/dev/fd"
    mkdir "$1/dev/shm" "$1/dev/pts" "$1/dev/net"
    cp -a /dev/net/tun "$1/dev/net/"
    mount --bind /dev/pts "$1/dev/pts"
    touch "$1/dev/kvm"
    chmod 666 "$1/dev/kvm"
    mount --move "$1/dev" /dev
fi
exec libvirtd -f "$1/libvirtd.conf" -p "$1/libvirtd.pid"
"""
# The same below another system's files, of which the daemon gets a copy that is gone with it.
ELSEWHERE = """\
set -e
mkdir -p "$1/copy"
mount -t tmpfs tmpfs "$1/copy"
cd "$1/copy"
mkdir upper work root
mount -t overlay overlay -o "lowerdir=$2,upperdir=upper,workdir=work" root
for folder in dev proc sys; do
    mount --rbind "/$folder" "root/$folder"
done
mkdir -p "root$1"
mount --bind "$1" "root$1"
exec chroot root sh -c "$3" sh "$1"
"""
TRIXIE = Path(os.environ.get("XDG_CACHE_HOME", Path.home() / ".cache")) / (
    "gpuplan-hypervisor/trixie"
)


def absent(root: Path | None = None) -> str | None:
    """What is missing here, or None; `root` is the system whose libvirt is meant."""
    if root is not None and not (root / ".ready").exists():
        return f"no libvirt in {root} (see tests/tools/hypervisor-setup)"
    if os.geteuid() != 0:
        return "needs root"
    missing = [p for p in PROGRAMS if shutil.which(p) is None]
    if missing:
        return f"not installed: {', '.join(missing)} (see tests/tools/hypervisor-setup)"
    if not os.access("/sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", os.W_OK):
        return "the kernel has no 1 GiB pages to give"
    if not Path("/dev/net/tun").exists():
        return "the kernel has no /dev/net/tun"
    if not run("unshare", "--mount", "--net", "mount", "-t", "tmpfs", "tmpfs", "/mnt").ok:
        return "may not mount in a namespace of its own"
    return None


@dataclass
class Result:
    ok: bool
    output: str


@dataclass
class Libvirtd:
    """A running daemon; the path of `folder` is short, because a socket's path has to be."""

    folder: Path
    process: subprocess.Popen[bytes]
    root: Path | None = None

    def valid(self, xml: Path) -> Result:
        """What the schema of the daemon's own system says of a domain."""
        copied = self.folder / "valid.xml"
        shutil.copyfile(xml, copied)
        inside = ("nsenter", f"--target={self.process.pid}", "--mount", "--root", "--wd=/")
        return run(*inside, "virt-xml-validate", copied, "domain")

    def defined(self, written: Iterable[Path]) -> Result:
        """All domains, defined in one session and undefined again."""
        lines = [
            line
            for xml in written
            for line in (f"define --validate {xml}", f"undefine --nvram {domain_name(xml)}")
        ]
        done = subprocess.run(
            ["virsh", "-q", "-c", self.uri],
            input="\n".join(lines),
            capture_output=True,
            text=True,
            check=False,
        )
        return Result(done.returncode == 0 and not done.stderr, done.stdout + done.stderr)

    @property
    def uri(self) -> str:
        return f"qemu:///system?socket={self.folder}/libvirt-sock"

    def virsh(self, *arguments: str | Path, timeout: float = 240) -> Result:
        return run("virsh", "-q", "-c", self.uri, *arguments, timeout=timeout)

    def stop(self) -> None:
        """End the daemon, by force where it does not end when it is asked to: libvirt 11 at times
        waits for its own threads without end, after all that was asked of it."""
        self.process.terminate()
        try:
            self.process.wait(30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def start(folder: Path, root: Path | None = None) -> Libvirtd:
    """The daemon, once it answers. `folder`/sys is the host's /sys and `folder`/hooks its hooks, if
    there are any; `root` is the system that it is taken of, if not this one."""
    (folder / "libvirtd.conf").write_text(DAEMON_CONF.format(folder=folder), encoding="utf-8")
    (folder / "qemu.conf").write_text(QEMU_CONF.format(folder=folder), encoding="utf-8")
    if not Path("/dev/kvm").exists():
        _start(folder, root).stop()
        for found in (folder / "cache/qemu/capabilities").glob("*.xml"):
            claim_kvm(found)
    return _start(folder, root)


def _start(folder: Path, root: Path | None) -> Libvirtd:
    words = [START, "sh", folder] if root is None else [ELSEWHERE, "sh", folder, root, START]
    command = ["unshare", "--mount", "--net", "--propagation", "private", "sh", "-c", *words]
    with (folder / "start.log").open("wb") as log:
        process = subprocess.Popen([str(w) for w in command], stdout=log, stderr=log)
    daemon = Libvirtd(folder, process, root)
    for _ in range(2_400):
        if process.poll() is not None:
            break
        if (folder / "libvirt-sock").exists() and daemon.virsh("version").ok:
            return daemon
        time.sleep(0.1)
    process.kill()
    log_text = (folder / "start.log").read_text(encoding="utf-8", errors="replace")
    raise RuntimeError(f"libvirtd did not start:\n{log_text}")


def claim_kvm(path: Path) -> None:
    """Say in libvirt's record of a QEMU that KVM can do what the emulator can, and that the record
    was made on this machine."""
    tree = ET.parse(path)
    root = tree.getroot()
    for element in [e for e in root if e.get("type") == "tcg"]:
        twin = copy.deepcopy(element)
        twin.set("type", "kvm")
        if twin.tag == "cpu":
            twin.set("usable", "yes")
            twin[:] = [child for child in twin if child.tag != "blocker"]
        root.append(twin)
    position = [child.tag for child in root].index("version")
    root.insert(position, ET.Element("flag", {"name": "kvm"}))
    microcode = root.find("microcodeVersion")
    assert microcode is not None
    microcode.text = str(int(_cpuinfo().get("microcode", "0"), 16))
    machine = platform.uname()
    for name, text in (
        ("hostCPUSignature", _signature()),
        ("kernelVersion", f"{machine.release} {machine.version}"),
    ):
        ET.SubElement(root, name).text = text
    tree.write(path)


def _cpuinfo() -> dict[str, str]:
    """The first processor's fields."""
    first = Path("/proc/cpuinfo").read_text(encoding="utf-8").partition("\n\n")[0]
    return dict(re.findall(r"^([^\t:]+)\s*: (.*)$", first, re.MULTILINE))


def _signature() -> str:
    """How libvirt tells CPUs apart (src/util/virhostcpu.c)."""
    info = _cpuinfo()
    rest = (f"{name.split()[-1]}: {info[name]}" for name in ("cpu family", "model", "stepping"))
    return ", ".join((info["vendor_id"], info["model name"], *rest))


def domain_name(xml: Path) -> str:
    name = ET.parse(xml).findtext("name")
    assert name
    return name


def run(*command: str | Path, timeout: float = 240) -> Result:
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, timeout=timeout, check=False
    )
    return Result(done.returncode == 0, (done.stdout + done.stderr).strip())


def convertible(text: str) -> str:
    """The domain with network functions as plain devices: libvirt 9 crashes when it turns the
    others into a QEMU command line."""
    root = ET.fromstring(text)
    devices = root.find("devices")
    assert devices is not None
    for interface in devices.findall("interface"):
        address = interface.find("address")
        assert address is not None
        source = interface.find("source/address")
        if source is None:
            continue
        source.attrib.pop("type")
        device = ET.SubElement(devices, "hostdev", mode="subsystem", type="pci", managed="yes")
        ET.SubElement(device, "driver", name="vfio")
        ET.SubElement(device, "source").append(source)
        alias = interface.find("alias")
        assert alias is not None
        device.extend((alias, address))
        devices.remove(interface)
    return ET.tostring(root, encoding="unicode")
