"""Start a domain's QEMU without its host devices, let the firmware number the PCI buses, and look.

libvirt's own command line is taken; passed-through devices become PCI test devices, memory is
scaled down, and everything that needs the host (disks, network, sockets) goes. SeaBIOS takes two
seconds; OVMF, which the domains ask for, takes ten, and gets one vCPU a node.
"""

from __future__ import annotations

import json
import re
import shlex
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

CELL_BYTES = 64 * 2**20
OVMF = Path("/usr/share/OVMF")
KEPT = ("pcie-root-port", "pxb-pcie", "x3130-upstream", "xio3130-downstream")


@dataclass
class Seen:
    """What the guest has: the bus of each device by its identifier, the guest node of each
    expander's buses by their first number, and the node of each vCPU."""

    buses: dict[str, str]
    roots: dict[int, int]
    cpus: dict[int, int]


def command(argv: str, folder: Path) -> list[str]:
    """A QEMU command line that starts anywhere, from libvirt's."""
    words = shlex.split(next(line for line in argv.splitlines() if "qemu-system" in line))
    start = next(i for i, w in enumerate(words) if w.endswith("qemu-system-x86_64"))
    cells = 0
    kept = [words[start], "-nodefaults", "-display", "none", "-accel", "tcg", "-cpu", "max"]
    for option, value in _pairs(words[start + 1 :]):
        if option == "-machine":
            kept += ["-machine", value.split(",")[0]]
        elif option in ("-smp", "-numa"):
            kept += [option, value]
        elif option == "-object":
            node = json.loads(value)
            if node["qom-type"] == "memory-backend-file":
                cells += 1
                kept += [option, f"memory-backend-ram,id={node['id']},size={CELL_BYTES}"]
        elif option == "-device":
            kept += _device(json.loads(value))
    kept += ["-m", f"{cells * CELL_BYTES // 2**20}"]
    return [*kept, "-qmp", f"unix:{folder}/qmp,server=on,wait=off"]


def _pairs(words: list[str]) -> Iterator[tuple[str, str]]:
    for word, following in zip(words, [*words[1:], "-"], strict=True):
        if word.startswith("-"):
            yield word, "" if following.startswith("-") else following


def _device(device: dict[str, Any]) -> list[str]:
    if device["driver"] in KEPT:
        return ["-device", json.dumps(device)]
    if device["driver"] == "vfio-pci":
        stand_in = {k: device[k] for k in ("id", "bus", "addr")}
        return ["-device", json.dumps({"driver": "pci-testdev", **stand_in})]
    return []


def with_ovmf(words: list[str], folder: Path) -> list[str]:
    """The same guest with UEFI firmware and one vCPU a node."""
    nodes = [w for w in words if w.startswith("node,nodeid=")]
    changed = {n: re.sub(r"cpus=[0-9-]+", f"cpus={i}", n) for i, n in enumerate(nodes)}
    changed[words[words.index("-smp") + 1]] = f"{len(nodes)},sockets={len(nodes)}"
    shutil.copy(OVMF / "OVMF_VARS_4M.fd", folder / "vars.fd")
    drives = (f"readonly=on,file={OVMF}/OVMF_CODE_4M.fd", f"file={folder}/vars.fd")
    return [
        *(changed.get(w, w) for w in words),
        *(part for d in drives for part in ("-drive", f"if=pflash,format=raw,{d}")),
    ]


def boot(argv: str, folder: Path, *, ovmf: bool = False, seconds: float = 30) -> Seen:
    """Start the guest and wait until the firmware has numbered all buses."""
    words = command(argv, folder)
    words = with_ovmf(words, folder) if ovmf else words
    with (folder / "qemu.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=log)
    monitor = None
    try:
        monitor = _Monitor(folder / "qmp", process)
        end = time.monotonic() + seconds
        while True:
            bridges = monitor.ask("query-pci")
            buses = {
                d["qdev_id"]: f"0000:{d['bus']:02x}:{d['slot']:02x}.{d['function']}"
                for bridge in bridges
                for d in _walk(bridge["devices"])
                if d["qdev_id"]
            }
            if time.monotonic() > end or _numbered(bridges):
                break
            time.sleep(0.2)
        return Seen(buses, monitor.roots(), monitor.cpus())
    finally:
        if monitor is not None:
            monitor.close()
        process.kill()
        process.wait()


def _walk(devices: list[Any]) -> Iterator[Any]:
    for device in devices:
        yield device
        yield from _walk(device.get("pci_bridge", {}).get("devices", []))


def _numbered(bridges: list[Any]) -> bool:
    secondaries = [
        d["pci_bridge"]["bus"]["secondary"]
        for bridge in bridges
        for d in _walk(bridge["devices"])
        if "pci_bridge" in d
    ]
    return bool(secondaries) and all(secondaries)


class _Monitor:
    def __init__(self, path: Path, process: subprocess.Popen[bytes]) -> None:
        self.socket = socket.socket(socket.AF_UNIX)
        for _ in range(2_400):
            if path.exists() or process.poll() is not None:
                break
            time.sleep(0.1)
        self.socket.connect(str(path))
        self.file = self.socket.makefile("rw", encoding="utf-8")
        self.file.readline()
        self.ask("qmp_capabilities")

    def close(self) -> None:
        self.file.close()
        self.socket.close()

    def ask(self, name: str, **arguments: Any) -> Any:
        self.file.write(json.dumps({"execute": name, "arguments": arguments}) + "\n")
        self.file.flush()
        while True:
            answer = json.loads(self.file.readline())
            if "event" not in answer:
                return answer["return"]

    def roots(self) -> dict[int, int]:
        found = {}
        for entry in self.ask("qom-list", path="/machine/peripheral"):
            if entry["type"] == "child<pxb-pcie>":
                path = f"/machine/peripheral/{entry['name']}"
                first = self.ask("qom-get", path=path, property="bus_nr")
                found[first] = self.ask("qom-get", path=path, property="numa_node")
        return found

    def cpus(self) -> dict[int, int]:
        return {c["cpu-index"]: c["props"].get("node-id", 0) for c in self.ask("query-cpus-fast")}
