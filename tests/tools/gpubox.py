"""A machine with GPUs that is not there: what `assign.sh` reads of it, and what plays it."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

SMI = """\
#!/bin/sh
# Plays nvidia-smi for the machine in this folder.
root={root}
echo "$*" >> "$root/calls"
case "$*" in
*--query-gpu=*) cat "$root/gpus" ;;
*--query-compute-apps=*) cat "$root/busy" ;;
"mig -i "*" -lgi") cat "$root/instances-$3" ;;
"mig -i "*" -cgi "*)
    # Instances count from 1, their MIG devices down to 0.
    number=0
    place=$(echo "$5" | tr , '\\n' | wc -l)
    for part in $(echo "$5" | tr , ' '); do
        number=$((number + 1))
        place=$((place - 1))
        profile="${{part%%:*}}"
        echo "| $3 MIG $profile 14 $number ${{part##*:}}:1 |" >> "$root/instances-$3"
        echo "MIG Device" >> "$root/q-$3"
        echo "    Index : $place" >> "$root/q-$3"
        echo "    GPU Instance ID : $number" >> "$root/q-$3"
        echo "  MIG $profile     Device  $place: (UUID: MIG-$3-$number)" >> "$root/l-$3"
    done ;;
"-q -i "*) cat "$root/q-$3" ;;
"-L -i "*) cat "$root/l-$3" ;;
esac
"""
DOCKER = """\
#!/bin/sh
# Plays docker for the machine in this folder.
case "$1" in
ps) cat {root}/containers ;;
top) echo PID; cat {root}/pids-$2 ;;
esac
"""


@dataclass
class Box:
    """`gpus` of one kind, on NUMA nodes in turn; `cores` of two threads on each of `nodes`."""

    root: Path
    gpus: int
    product: str
    nodes: int = 2
    cores: int = 8
    paths: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        lines = []
        for number in range(self.gpus):
            lines.append(f"{number}, GPU-{number}, 00000000:{number + 16:02X}:00.0, {self.product}")
            device = self.root / f"sys/bus/pci/devices/0000:{number + 16:02x}:00.0"
            put(device / "numa_node", str(number * self.nodes // self.gpus))
            for name in ("instances", "q", "l"):
                put(self.root / f"{name}-{number}", "")
        put(self.root / "gpus", "\n".join(lines) + "\n")
        for name in ("busy", "containers", "calls"):
            put(self.root / name, "")
        every = self.nodes * self.cores
        for cpu in range(2 * every):
            core = cpu % every
            folder = self.root / f"sys/devices/system/cpu/cpu{cpu}"
            put(folder / "topology/thread_siblings_list", f"{core},{core + every}\n")
            (folder / f"node{core // self.cores}").mkdir()
        for name, text in (("nvidia-smi", SMI), ("docker", DOCKER)):
            put(self.root / "bin" / name, text.format(root=self.root))
            (self.root / "bin" / name).chmod(0o755)

    def runs(self, container: str, pids: Sequence[int]) -> None:
        """`container` is the stack's own, with these processes."""
        put(self.root / "containers", f"{container}\n")
        put(self.root / f"pids-{container}", "".join(f"{pid}\n" for pid in pids))

    def assign(self, stack: Path, *options: str) -> subprocess.CompletedProcess[str]:
        """Runs the stack's script here."""
        text = (stack / "assign.sh").read_text("utf-8").replace("/sys/", f"{self.root}/sys/")
        script = stack / "here.sh"
        script.write_text(text, encoding="utf-8")
        path = f"{self.root / 'bin'}:{os.environ['PATH']}"
        return subprocess.run(
            ["sh", script, *options],
            env=os.environ | {"PATH": path},
            capture_output=True,
            text=True,
            check=False,
        )

    def calls(self, word: str) -> list[str]:
        """What nvidia-smi was asked, with `word` in it."""
        return [c for c in (self.root / "calls").read_text("utf-8").splitlines() if word in c]


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def variables(stack: Path) -> dict[str, str]:
    """What the script has written."""
    lines = (stack / ".env").read_text("utf-8").splitlines()
    return dict(line.split("=", 1) for line in lines if not line.startswith("#"))


@dataclass
class AmdBox(Box):
    """The same with AMD's driver, whose GPUs the kernel shows; `product` is their PCI device. The
    render nodes count in another order than the addresses, and the CPU is a node of the topology
    without one."""

    def __post_init__(self) -> None:
        super().__post_init__()
        topology = self.root / "sys/class/kfd/kfd/topology/nodes"
        (self.root / "sys/class/kfd/kfd/proc").mkdir(parents=True)
        put(topology / "0/gpu_id", "0\n")
        put(topology / "0/properties", "cpu_cores_count 96\n")
        for number in range(self.gpus):
            minor = self.minor(number)
            device = self.root / f"sys/bus/pci/devices/0000:{number + 16:02x}:00.0"
            put(device / "vendor", "0x1002\n")
            put(device / "device", f"0x{self.product}\n")
            card = self.root / f"sys/class/drm/renderD{minor}"
            card.mkdir(parents=True)
            (card / "device").symlink_to(device)
            put(topology / f"{number + 1}/gpu_id", f"{1000 + number}\n")
            put(
                topology / f"{number + 1}/properties",
                f"simd_count 1216\ndrm_render_minor {minor}\n",
            )
        other = self.root / "sys/class/drm/renderD127"  # a graphics adapter of the board
        put(other / "device/vendor", "0x1a03\n")

    def minor(self, number: int) -> int:
        return 128 + self.gpus - 1 - number

    def works(self, number: int, pid: int, size: int = 1 << 30) -> None:
        """A process holds memory of a GPU."""
        put(self.root / f"sys/class/kfd/kfd/proc/{pid}/vram_{1000 + number}", f"{size}\n")
