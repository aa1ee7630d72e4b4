"""A guest with `hypervisor.join: slurm`, booted: by its seed alone it becomes a node of the real
slurmctld, which has the stack's lines of it and runs work there. `make guest`.

slurmd and munge in the guest are Debian's packages, installed by the guest's own script; the
controller runs on the guest's host.
"""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from gpuplan.backends.libvirt import emit
from gpuplan.backends.libvirt.seed import pins
from gpuplan.plan.model import ClusterJoin, Plan
from tests.backends.test_seeds import imaged
from tests.hypervisor.test_guest import NAME, SECONDS, ended
from tests.hypervisor.test_start import huge_pages
from tests.slurm.test_join import CONF, KEY
from tests.support.require import VARIABLE, require
from tests.tools import libvirtd, slurm
from tests.tools.guests import machine
from tests.tools.guests.machine import GATEWAY, Guest
from tests.tools.slurm import Cluster

pytestmark = pytest.mark.guest

CONTROLLER = "slurm-01"
JOIN = ClusterJoin(kind="slurm", server=f"{CONTROLLER}.example.com:6817")
PATIENCE = "MessageTimeout=100\nSlurmdTimeout=300"  # nothing may help the guest's processor
# Debian's packages give Slurm this number on each machine; the controller's were not installed.
SLURM_UID = 64030


@dataclass
class Joined:
    guest: Guest
    cluster: Cluster
    plan: Plan


def planned() -> Plan:
    plan = imaged("whole hosts", secrets=())
    return replace(plan, hosts=tuple(replace(h, join=JOIN) for h in plan.hosts))


@contextmanager
def controller(guest: Guest, plan: Plan, folder: Path) -> Iterator[Cluster]:
    """The cluster's slurmctld, which knows the guest by the lines that the stack has of it."""
    with slurm.machine(folder, CONTROLLER, guest.daemon.process.pid) as cluster:
        cluster.shell(f"sed -i 's/:991/:{SLURM_UID}/g' /etc/passwd /etc/group")
        cluster.write("/etc/hosts", f"127.0.0.1 localhost\n{GATEWAY} {CONTROLLER}\n")
        files = {f.path: f.text for f in emit(plan).files}
        for name in ("nodes.conf", "gres.conf"):
            cluster.write(f"/etc/slurm/{name}", files[f"hypervisor/slurm/{name}"])
        cluster.shell("chown -R slurm /var/spool/slurmctld /var/log/slurm")
        cluster.write("/etc/slurm/slurm.conf", CONF.format(own=PATIENCE))
        yield cluster


@pytest.fixture(scope="module")
def joined() -> Iterator[Joined]:
    if "guest" not in os.environ.get(VARIABLE, "").split():
        pytest.skip("some minutes: `make guest`")
    if missing := libvirtd.absent() or machine.absent():
        require("guest", missing)
    slurm.present()
    with tempfile.TemporaryDirectory(prefix="guest-", dir="/tmp") as name, huge_pages(2) as page:
        folder = Path(name)
        plan = machine.scaled(planned(), page, folder, machine.key(folder))
        token = folder / f"secrets/{plan.name}/join-token"
        token.parent.mkdir(parents=True)
        token.write_bytes((slurm.root() / KEY[1:]).read_bytes())
        daemon = libvirtd.start(folder)
        versions = (pins.DRIVER.version, pins.TOOLKIT.version, pins.CUDA_FOLDER["debian-13"])
        guest = machine.prepare(daemon, folder, NAME, versions)
        try:
            guest.write(plan)
            with controller(guest, plan, folder / "controller") as cluster:
                begin = time.monotonic()
                guest.start()
                guest.until(guest.address, SECONDS)
                cluster.shell(f"echo {guest.address()} {NAME} >>/etc/hosts")
                cluster.run("slurmctld")
                guest.until(lambda: ended(guest), SECONDS)
                print(f"\njoined in {time.monotonic() - begin:.0f} s")
                yield Joined(guest, cluster, plan)
        finally:
            guest.close()
            daemon.stop()


def said_of(joined: Joined, field: str) -> str:
    return joined.cluster.run("sinfo", "-h", "-N", "-n", NAME, "-o", field).stdout.strip()


def test_a_guest_is_a_node_that_is_as_the_stack_says(joined: Joined) -> None:
    guest, cluster = joined.guest, joined.cluster
    done = guest.asked("cloud-init status --long || true")
    assert "status: done" in done, guest.console()
    assert guest.asked("systemctl is-active gpuplan-join munge slurmd").split() == ["active"] * 3
    cluster.until(lambda: said_of(joined, "%T") == "idle", 60, guest.asked("journalctl -u slurmd"))
    (vm,) = joined.plan.virtual_machines
    gpus = sum(d.kind == "gpu" for d in vm.devices)
    assert said_of(joined, "%X %Y %Z %G %f") == f"2 1 1 gpu:{gpus} {vm.workload}"
    assert said_of(joined, "%E") == "none", "nothing drains it: it has the memory of its line"
    for unit in guest.asked("ls /etc/systemd/system").split():
        assert vm.workload not in unit, "its work is the cluster's"


def test_work_runs_in_the_guest_with_the_gpus_it_asked_for(joined: Joined) -> None:
    words = ("srun", "--constraint=big", "--gres=gpu:3", "--mem=64")
    said = joined.cluster.run(*words, "sh", "-c", "hostname; echo $CUDA_VISIBLE_DEVICES").stdout
    assert said.split() == [NAME, "0,1,2"]


def test_the_key_of_munge_stands_in_no_seed_and_is_munge_s_alone(joined: Joined) -> None:
    guest = joined.guest
    assert guest.asked("stat -c '%U %a' /etc/munge/munge.key").split() == ["munge", "400"]
    (token,) = guest.folder.glob("secrets/*/join-token")
    assert token.read_bytes()[:32] not in (guest.folder / f"seeds/{NAME}.iso").read_bytes()


def test_a_node_comes_back_by_itself_after_a_boot(joined: Joined) -> None:
    guest, cluster = joined.guest, joined.cluster
    before = guest.asked("cat /proc/sys/kernel/random/boot_id")
    guest.stop()
    guest.start()
    guest.until(lambda: guest.run("true").returncode == 0, SECONDS)
    assert guest.asked("cat /proc/sys/kernel/random/boot_id") != before
    guest.until(lambda: guest.run("systemctl is-active slurmd").stdout == "active\n", SECONDS)
    cluster.until(lambda: said_of(joined, "%T") == "idle", 300)
    assert cluster.run("srun", "hostname").stdout.strip() == NAME
