"""Pods that are namespaces: each with an address, a host name and a cluster's DNS; no containers.

    with network({"run-0": ("run", "team")}) as pods:
        pods["run-0"].start(["torchrun", …])

A pod's address has a name where a headless Service would give it one: `POD.SERVICE.NAMESPACE.svc.
cluster.local`, found with the search path that the kubelet writes. Needs root, and `ip`.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

DOMAIN = "svc.cluster.local"
GATEWAY = "10.77.0.1"
# Answers A queries for `NAME ADDRESS` lines, and NXDOMAIN for all else.
DNS = """\
import socket, struct, sys
names = dict(line.split() for line in open(sys.argv[1]))
server = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
server.bind((sys.argv[2], 53))
print("ready", flush=True)
while True:
    query, client = server.recvfrom(512)
    parts, at = [], 12
    while query[at]:
        parts.append(query[at + 1 : at + 1 + query[at]].decode())
        at += 1 + query[at]
    kind, question = struct.unpack(">H", query[at + 1 : at + 3])[0], query[12 : at + 5]
    found = names.get(".".join(parts).lower())
    address = socket.inet_aton(found) if found and kind == 1 else b""
    head = struct.pack(">HHHHH", 0x8580 if found else 0x8583, 1, 1 if address else 0, 0, 0)
    record = b"\\xc0\\x0c" + struct.pack(">HHIH", 1, 1, 5, 4) + address if address else b""
    server.sendto(query[:2] + head + question + record, client)
"""
ENTER = """\
set -e
hostname "$1"
for file in resolv.conf hosts; do mount --bind "$2/$file" "/etc/$file"; done
ip link set lo up
echo ready
exec sleep infinity
"""


def absent() -> str:
    """Why no namespaces can be made; empty where they can."""
    if os.geteuid() != 0:
        return "needs root"
    missing = [p for p in ("ip", "unshare", "nsenter") if shutil.which(p) is None]
    return f"not installed: {', '.join(missing)}" if missing else ""


@dataclass
class Pod:
    name: str
    process: int

    def start(self, words: Sequence[str], **environment: str) -> Running:
        spaces = ("--net", "--uts", "--mount", "--pid")
        command = ["nsenter", f"--target={self.process}", *spaces, *words]
        clean = {"PATH": os.environ["PATH"], "HOME": "/tmp", **environment}
        said = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - longer than this
        process = subprocess.Popen(command, env=clean, stdout=said, stderr=subprocess.STDOUT)
        return Running(process, said)


@dataclass
class Running:
    process: subprocess.Popen[bytes]
    said: IO[str]


@contextmanager
def network(
    pods: Mapping[str, tuple[str, str]], *, services: bool = True
) -> Iterator[dict[str, Pod]]:
    """`pods`: names → their subdomain and namespace. Without `services` no name of them is
    known."""
    started: list[subprocess.Popen[str]] = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        try:
            hub = _process(started, "unshare", "--net", "sh", "-c", "echo ready; exec sleep 9999")
            _in(hub, "ip", "link", "add", "br0", "type", "bridge")
            _in(hub, "ip", "addr", "add", f"{GATEWAY}/24", "dev", "br0")
            _in(hub, "ip", "link", "set", "br0", "up")
            made = {n: _pod(started, hub, folder, n, of) for n, of in pods.items()}
            known = made if services else {}
            lines = (
                f"{n}.{pods[n][0]}.{pods[n][1]}.{DOMAIN} {_address(k)}\n"
                for k, n in enumerate(known)
            )
            (folder / "names").write_text("".join(lines), encoding="utf-8")
            served = ("--net", sys.executable, "-c", DNS, str(folder / "names"), GATEWAY)
            _process(started, "nsenter", f"--target={hub}", *served)
            yield made
        finally:
            for process in started:
                process.kill()
                process.communicate()


def _address(index: int) -> str:
    return f"10.77.0.{index + 10}"


def _pod(
    started: list[subprocess.Popen[str]], hub: int, folder: Path, name: str, of: tuple[str, str]
) -> Pod:
    index = len(started) - 1  # beside the hub
    own, address = folder / name, _address(index)
    subdomain, namespace = of
    own.mkdir()
    search = f"search {namespace}.{DOMAIN} {DOMAIN} cluster.local\n"
    resolving = f"nameserver {GATEWAY}\n{search}options ndots:5 timeout:1\n"
    (own / "resolv.conf").write_text(resolving, encoding="utf-8")
    whole = f"{name}.{subdomain}.{namespace}.{DOMAIN}"
    hosts = f"127.0.0.1 localhost\n{address} {whole} {name}\n"
    (own / "hosts").write_text(hosts, encoding="utf-8")
    apart = ("unshare", "--net", "--uts", "--mount", "--pid", "--fork", "--kill-child")
    outer = _process(started, *apart, "--mount-proc", "sh", "-c", ENTER, "sh", name, str(own))
    # The first of its namespace, with which all others end.
    process = int(Path(f"/proc/{outer}/task/{outer}/children").read_text("utf-8").split()[0])
    peer = ("peer", "name", "eth0", "netns", str(process))
    _in(hub, "ip", "link", "add", f"v{index}", "type", "veth", *peer)
    _in(hub, "ip", "link", "set", f"v{index}", "master", "br0", "up")
    _in(process, "ip", "addr", "add", f"{address}/24", "dev", "eth0")
    _in(process, "ip", "link", "set", "eth0", "up")
    return Pod(name, process)


def _process(started: list[subprocess.Popen[str]], *words: str) -> int:
    """One that stays, once it says that it is ready."""
    process = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    started.append(process)
    assert process.stdout is not None
    said = process.stdout.readline()
    assert said == "ready\n", f"{words}: {said}{process.stdout.read()}"
    return process.pid


def _in(process: int, *words: str) -> None:
    subprocess.run(["nsenter", f"--target={process}", "--net", *words], check=True)


def finish(running: Sequence[Running], seconds: int) -> list[tuple[int | None, str]]:
    """Exit codes and outputs; None for one that has not ended after `seconds`: it ends with its
    pod."""
    deadline = time.monotonic() + seconds
    ended: list[tuple[int | None, str]] = []
    for one in running:
        code: int | None = None
        with suppress(subprocess.TimeoutExpired):
            code = one.process.wait(timeout=max(0.1, deadline - time.monotonic()))
        if code is None:
            one.process.kill()
            one.process.wait()
        one.said.seek(0)
        ended.append((code, one.said.read()))
        one.said.close()
    return ended
