"""The script that collects on a host what `inventory import` reads."""

from __future__ import annotations

import shlex

from gpuplan.frozen import record
from gpuplan.inventory.words import CARD_USES, DRIVE_USES
from gpuplan.render.environments import Verbatim, render


@record
class Command:
    """`words` only read. `says` is what they are asked for."""

    file: str
    words: tuple[str, ...]
    says: str

    @property
    def call(self) -> Verbatim:
        return Verbatim(shlex.join(self.words))

    @property
    def note(self) -> Verbatim:
        return Verbatim(self.says)


COMMANDS = (
    Command(
        file="nvidia-smi-q-x.xml",
        words=("nvidia-smi", "-q", "-x"),
        says="GPUs: product, UUID, address, memory, links, MIG mode",
    ),
    Command(
        file="nvidia-smi-topo-m.txt",
        words=("nvidia-smi", "topo", "-m"),
        says="links between GPUs and network cards",
    ),
    Command(file="nvidia-smi-L.txt", words=("nvidia-smi", "-L"), says="MIG devices"),
    Command(
        file="nvidia-smi-mig-lgi.txt",
        words=("nvidia-smi", "mig", "-lgi"),
        says="where MIG instances stand",
    ),
    Command(
        file="nvidia-smi-nvlink-s.txt",
        words=("nvidia-smi", "nvlink", "-s"),
        says="NVLinks that are up",
    ),
    Command(
        file="dcgmi-discovery-l.txt",
        words=("dcgmi", "discovery", "-l"),
        says="GPUs as DCGM finds them",
    ),
    Command(file="lscpu.txt", words=("lscpu",), says="processors and address sizes"),
    Command(
        file="lscpu-p.txt",
        words=("lscpu", "-p=CPU,CORE,SOCKET,NODE"),
        says="which CPUs share a core",
    ),
    Command(
        file="numactl-H.txt",
        words=("numactl", "-H"),
        says="NUMA nodes, their memory and distances",
    ),
    Command(
        file="lspci-vvv.txt",
        words=("lspci", "-D", "-nn", "-vvv"),
        says="PCI devices: tree, NUMA node, IOMMU group, virtual functions",
    ),
    Command(
        file="lstopo.xml",
        words=("lstopo-no-graphics", "--of", "xml", "--whole-io"),
        says="the whole topology, names of network cards",
    ),
    Command(
        file="lsblk.json",
        words=tuple(DRIVE_USES.split()),
        says="drives, their serial numbers, and whether the host uses them",
    ),
    Command(file="mdstat.txt", words=("cat", "/proc/mdstat"), says="drives in RAIDs"),
    Command(file="swaps.txt", words=("cat", "/proc/swaps"), says="drives to swap to"),
    Command(file="zpool.txt", words=("zpool", "status", "-LP"), says="drives in ZFS pools"),
    Command(
        file="ip-route.json",
        words=tuple(CARD_USES.split()),
        says="which network card carries the default route",
    ),
    Command(
        file="ip-address.json",
        words=("ip", "-json", "-details", "address"),
        says="what bonds, bridges and VLANs stand on, and MAC addresses",
    ),
    Command(file="ibstat.txt", words=("ibstat",), says="speeds of network cards"),
    Command(file="meminfo.txt", words=("cat", "/proc/meminfo"), says="memory"),
    Command(
        file="cmdline.txt",
        words=("cat", "/proc/cmdline"),
        says="the kernel's parameters, without what names the disk it starts from",
    ),
    Command(
        file="device-links.txt",
        words=("ls", "-l", "/sys/class/infiniband", "/sys/class/net", "/sys/class/nvme"),
        says="names of network cards and drives, with their addresses",
    ),
    Command(
        file="iommu-groups.txt",
        words=("find", "/sys/kernel/iommu_groups", "-type", "l"),
        says="IOMMU groups",
    ),
    Command(
        file="virtual-functions.txt",
        words=(
            *("find", "-L", "/sys/bus/pci/devices", "-mindepth", "2", "-maxdepth", "2"),
            *("-name", "virtfn*", "-exec", "ls", "-ld", "{}", "+"),
        ),
        says="virtual functions",
    ),
)


def script() -> str:
    """A POSIX shell script: reads only, needs no root, and packs what it read."""
    return render("shell", "inventory/collect.sh.j2", commands=COMMANDS)
