"""A guest that a stack emits, booted: what cloud-init, systemd, podman and a person find in it.

The host is this machine and its processor plays the guest's where it cannot run one, so a start
takes minutes: `make guest`. GPUs, driver and engine are stand-ins (tests/tools/guests).
"""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gpuplan.backends.libvirt import emit
from gpuplan.backends.libvirt.seed import pins
from gpuplan.plan.model import Disk, EnvironmentVariable, Plan, Volume
from gpuplan.units import GIB
from tests.backends.test_seeds import SECRETS, imaged, seeds, tree
from tests.hypervisor.test_start import huge_pages
from tests.support.require import VARIABLE, require
from tests.tools import libvirtd
from tests.tools.guests import machine
from tests.tools.guests.machine import Guest

pytestmark = pytest.mark.guest

NAME, SECRET = "big-0", "hunter2-of-the-host"
MTU = 4200
VOLUME = Volume(
    name="models",
    size_bytes=GIB,
    storage_class=None,
    shared=False,
    mount_path="/models",
    purpose="models",
)
SECONDS = 1_200  # for a start, where nothing helps the processor


@dataclass
class Booted:
    """A guest whose first start has ended, and the seconds that it took."""

    guest: Guest
    plan: Plan
    seconds: float


def planned() -> Plan:
    """Eight GPUs, eight functions of cards and two drives on two NUMA nodes; a volume, a secret."""
    plan = imaged("whole hosts", secrets=SECRETS, volumes=(VOLUME,))
    disk = Disk(name="models", source="/dev/vg0/models", size_bytes=GIB)
    machines = (replace(m, disks=(*m.disks, disk)) for m in plan.virtual_machines)
    hosts = (
        replace(
            h,
            devices=tuple(replace(d, mtu=MTU) if d.kind == "nic" else d for d in h.devices),
        )
        for h in plan.hosts
    )
    return replace(plan, hosts=tuple(hosts), virtual_machines=tuple(machines))


@pytest.fixture(scope="module")
def booted() -> Iterator[Booted]:
    if "guest" not in os.environ.get(VARIABLE, "").split():
        pytest.skip("a quarter of an hour: `make guest`")
    if missing := libvirtd.absent() or machine.absent():
        require("guest", missing)
    with tempfile.TemporaryDirectory(prefix="guest-", dir="/tmp") as name, huge_pages(2) as page:
        folder = Path(name)
        plan = machine.scaled(planned(), page, folder, machine.key(folder))
        secret = folder / f"secrets/{plan.name}/hfToken"
        secret.parent.mkdir(parents=True)
        secret.write_text(SECRET)
        daemon = libvirtd.start(folder)
        versions = (pins.DRIVER.version, pins.TOOLKIT.version, pins.CUDA_FOLDER["debian-13"])
        guest = machine.prepare(daemon, folder, NAME, versions)
        try:
            guest.write(plan)
            yield Booted(guest, plan, start(guest))
        finally:
            guest.close()
            daemon.stop()


def start(guest: Guest) -> float:
    """Start it, until cloud-init says that it has ended and the engine answers."""
    begin = time.monotonic()
    guest.start()
    guest.until(lambda: guest.address() and ended(guest), SECONDS)
    done = guest.asked("cloud-init status --long || true")
    assert "status: done" in done, done + guest.asked("journalctl -b -u cloud-final")
    assert "errors: []" in done, done
    guest.until(lambda: health(guest), SECONDS)
    seconds = time.monotonic() - begin
    print(f"\nstarted in {seconds:.0f} s")
    return seconds


def ended(guest: Guest) -> bool:
    """Whether cloud-init says so; its own steps start the SSH server anew."""
    said = guest.run("sudo cloud-init status").stdout
    return any(word in said for word in ("status: done", "status: error", "status: degraded"))


def health(guest: Guest, path: str = "health") -> str:
    """What the engine answers to its host."""
    return guest.host("curl", "-fsS", f"http://{guest.address()}:8000/{path}").stdout.strip()


def test_it_is_the_guest_that_was_planned(booted: Booted) -> None:
    guest = booted.guest
    assert guest.asked("hostname") == NAME
    guest.asked("systemctl start gpuplan-health")
    assert guest.asked("systemctl --failed --no-legend") == ""
    assert "passwordauthentication no" in guest.asked("sshd -T")
    assert guest.run("true", user="root").returncode != 0
    assert int(guest.asked("df --output=size -B1 / | tail -1")) > 3.5 * GIB, "the planned size"


def test_pinned_packages_come_from_repositories_that_have_newer_ones(booted: Booted) -> None:
    shown = booted.guest.asked("dpkg-query -W -f '${Package} ${Version}\\n' 'nvidia*'")
    assert shown.splitlines() == [
        f"nvidia-container-toolkit {pins.TOOLKIT.version}-1",
        f"nvidia-open {pins.DRIVER.version}-1",
    ]


def test_cpus_memory_and_devices_are_where_the_checks_say(booted: Booted) -> None:
    guest, plan = booted.guest, booted.plan
    texts = {f.path: f.text for f in emit(plan).files}
    checks = json.loads(texts[f"hypervisor/libvirt/{NAME}.checks.json"])
    for node in checks["nodes"]:
        path = f"/sys/devices/system/node/node{node['node']}"
        assert guest.asked(f"cat {path}/cpulist") == node["cpus"]
        total = int(guest.asked(f"grep MemTotal {path}/meminfo").split()[-2])
        assert 0.8 < total * 1024 / node["memory_bytes"] <= 1
    listed = guest.asked(
        "cd /sys/bus/pci/devices; for d in *; do echo $d $(cat $d/numa_node) $(cat $d/class); done"
    )
    found = {line.split()[0]: line.split()[1:] for line in listed.splitlines()}
    classes = {"gpu": "0x00ff00", "nic": "0x020000", "nvme": "0x010802"}
    assert len(checks["devices"]) == 18
    for device in checks["devices"]:
        assert found[device["bus"]] == [str(device["node"]), classes[device["kind"]]], device


def test_the_network_is_as_it_was_told(booted: Booted) -> None:
    links = json.loads(booted.guest.asked("ip -json address show"))
    known = {link.get("address"): link for link in links}
    (vm,) = booted.plan.virtual_machines
    addresses = [a["local"] for a in known[vm.mac]["addr_info"] if a["family"] == "inet"]
    assert addresses == [booted.guest.address()]
    nics = [d for d in vm.devices if d.kind == "nic"]
    assert len(nics) == 8
    for device in nics:
        link = known[device.mac]
        assert link["mtu"] == MTU
        assert [a for a in link["addr_info"] if a["family"] == "inet"] == []


def test_volumes_and_drives_are_mounted_where_the_engine_looks(booted: Booted) -> None:
    rows = booted.guest.asked("findmnt --noheadings --raw -o TARGET,FSTYPE,LABEL,SOURCE").split(
        "\n"
    )
    shown = {row.split(" ")[0]: row.split(" ")[1:] for row in rows}
    assert shown["/srv/models"][:2] == ["ext4", "models"]
    serial = booted.guest.asked("readlink -f /dev/disk/by-id/virtio-models")
    assert shown["/srv/models"][2] == serial
    assert shown["/srv/scratch"][2] == "/dev/mapper/scratch-scratch"
    stripes = booted.guest.asked("lvs --noheadings -o stripes scratch")
    assert int(stripes) == 2


def test_the_engine_answers_with_what_sizing_computed(booted: Booted) -> None:
    guest = booted.guest
    words = health(guest, "arguments").splitlines()
    serving = booted.plan.workloads[0].serving
    assert serving is not None
    assert f"--max-num-seqs={serving.max_num_seqs}" in words
    assert words[0] == "serve"
    environment = health(guest, "environment").splitlines()
    assert f"HF_TOKEN={SECRET}" in environment
    assert "NCCL_TOPO_FILE=/etc/gpuplan/nccl-topo.xml" in environment
    assert "nvidia0" in health(guest, "devices").splitlines()
    for unit in ("guest", "big", "dcgm", "health.timer"):
        name = unit if "." in unit else f"{unit}.service"
        assert guest.asked(f"systemctl is-active gpuplan-{name}") == "active"
    guest.asked("systemctl start gpuplan-health")
    guest.asked("podman stop big --time 0; mv /usr/bin/podman /usr/bin/podman-away")
    assert guest.run("sudo systemctl start gpuplan-health").returncode != 0, "it answers no more"
    guest.asked("mv /usr/bin/podman-away /usr/bin/podman")
    guest.until(lambda: health(guest), 300)


def test_secrets_stand_in_no_seed_and_no_file(booted: Booted) -> None:
    guest = booted.guest
    assert all(SECRET not in text for text in seeds(booted.plan)[NAME].values())
    assert SECRET.encode() not in (guest.folder / f"seeds/{NAME}.iso").read_bytes()
    places = "/etc /var/lib/cloud /run/cloud-init /usr/local /var/log"
    found = guest.run(f"sudo grep -rIl {SECRET} {places}")
    assert (found.returncode, found.stdout) == (1, "")


def test_after_a_boot_all_comes_by_itself_in_order_and_nothing_is_formatted(booted: Booted) -> None:
    guest = booted.guest
    before = len(health(guest, "models").splitlines())
    identities = "blkid -o value -s UUID /dev/disk/by-id/virtio-models /dev/scratch/scratch"
    disks = guest.asked(identities)
    guest.stop()
    start(guest)
    assert guest.asked(identities) == disks
    assert len(health(guest, "models").splitlines()) == before + 1
    assert len(health(guest, "scratch").splitlines()) == before + 1
    order = [entered(guest, u) for u in ("srv-models.mount", "gpuplan-guest", "gpuplan-big")]
    assert 0 < order[0] < order[1] < order[2], order
    guest.asked("systemctl start gpuplan-health")
    assert guest.asked("systemctl --failed --no-legend") == ""


def entered(guest: Guest, unit: str) -> int:
    shown = guest.asked(f"systemctl show -p ActiveEnterTimestampMonotonic --value {unit}")
    return int(shown)


def test_a_changed_plan_reaches_the_guest_and_its_volumes_stay(booted: Booted) -> None:
    """Its seed is another instance's: cloud-init does again what it did at the first start."""
    guest = booted.guest
    before = health(guest, "models").splitlines()
    disks = guest.asked("blkid -o value -s UUID /dev/disk/by-id/virtio-models")
    guest.stop()
    (workload,) = booted.plan.workloads
    added = (*workload.environment, EnvironmentVariable(name="ADDED", value="later"))
    plan = replace(booted.plan, workloads=(replace(workload, environment=added),))
    one, two = (tree(seeds(p)[NAME]["meta-data"])["instance-id"] for p in (booted.plan, plan))
    assert one != two
    guest.write(plan)
    start(guest)
    guest.until(lambda: "ADDED=later" in health(guest, "environment").splitlines(), 300)
    assert guest.asked("blkid -o value -s UUID /dev/disk/by-id/virtio-models") == disks
    after = health(guest, "models").splitlines()
    assert after[: len(before)] == before
    assert len(after) > len(before)
