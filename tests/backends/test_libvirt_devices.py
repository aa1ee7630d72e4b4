"""What a host's own scripts refuse: a drive that it uses, another device at an address, a card that
carries the default route, programs that are too old."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from gpuplan.backends.libvirt import emit
from gpuplan.plan.model import Host, Plan
from tests.support.hypervisor_plans import plans
from tests.tools.fakehost import FakeHost, populate

HOST = "hypervisor/host/hv-01"
PROGRAM = "usr/local/sbin/gpuplan-devices"
DRIVE, GPU, CARD = "0000:2a:00.0", "0000:0f:00.0", "0000:0e:00.0"
MAC = "b8:3f:d2:00:00:01"

NODE = "sys/devices/system/node/node0/cpulist"


def texts(plan: Plan) -> dict[str, str]:
    return {f.path.removeprefix(f"{HOST}/"): f.text for f in emit(plan).files}


def with_macs(host: Host) -> Host:
    cards = [d.address for d in host.devices if d.kind == "nic"]
    macs = {address: f"{MAC[:-1]}{number + 1}" for number, address in enumerate(cards)}
    devices = (replace(d, serial=macs.get(d.address, d.serial)) for d in host.devices)
    return replace(host, devices=tuple(devices))


PLAN = replace(plans()["whole hosts"], hosts=tuple(map(with_macs, plans()["whole hosts"].hosts)))
SCRIPT = texts(PLAN)[PROGRAM]


@pytest.fixture
def fake(tmp_path: Path) -> FakeHost:
    return populate(tmp_path, PLAN.hosts[0])


def booted(fake: FakeHost) -> FakeHost:
    """After a boot with the rules, which keep the host's drivers off the GPUs."""
    for device in PLAN.hosts[0].devices:
        if device.kind == "gpu":
            (fake.device(device.address) / "driver").unlink()
    return fake


def test_a_free_drive_and_the_gpus_are_bound_when_the_guest_starts(fake: FakeHost) -> None:
    assert fake.run(SCRIPT, "check").stderr == ""
    assert fake.driver(DRIVE) == "nvme", "a check changes nothing"
    booted(fake)
    for _ in range(2):
        assert fake.run(SCRIPT, "bind", "big-0").stderr == ""
        drivers = {(d.kind, fake.driver(d.address)) for d in PLAN.hosts[0].devices}
        assert drivers == {
            ("gpu", "vfio-pci"),
            ("nic", "mlx5_core"),
            ("nvme", "vfio-pci"),
            ("nvme", "nvme"),  # that no guest has
        }
    assert fake.run(SCRIPT, "bind", "somebody-else").returncode == 0


def mounted(fake: FakeHost) -> None:
    row = "40 35 {}:{} / /srv rw - ext4 /dev/{} rw\n"
    part = next(fake.disk(DRIVE).glob("*p1"))
    major, minor = (part / "dev").read_text().split(":")
    (fake.root / "proc/self/mountinfo").write_text(row.format(major, minor.strip(), part.name))


def btrfs(fake: FakeHost) -> None:
    """The kernel shows a number of its own for each subvolume."""
    row = f"40 35 0:44 /root / rw - btrfs /dev/{fake.disk(DRIVE).name}p1 rw\n"
    (fake.root / "proc/self/mountinfo").write_text(row)


def held(fake: FakeHost) -> None:
    (next(fake.disk(DRIVE).glob("*p1")) / "holders/dm-0").mkdir()


def swap(fake: FakeHost) -> None:
    line = f"Filename Type\n/dev/{fake.disk(DRIVE).name}p1 partition 1024 0 -2\n"
    (fake.root / "proc/swaps").write_text(line)


def claimed(fake: FakeHost) -> None:
    """As ZFS does, which is in none of the kernel's lists."""
    (fake.root / "claims").mkdir()
    (fake.root / "claims" / fake.disk(DRIVE).name).touch()


def of_a_subsystem(fake: FakeHost) -> None:
    """A drive with two ports: its disk stands below the subsystem."""
    disk = fake.disk(DRIVE)
    subsystem = fake.root / "sys/class/nvme-subsystem/nvme-subsys0"
    subsystem.mkdir(parents=True)
    (subsystem / disk.parent.name).symlink_to(disk.parent)
    shutil.move(disk, subsystem / disk.name)
    (disk.parent / disk.name.replace("n1", "c0n1")).mkdir()
    (subsystem / disk.name / "holders/md0").mkdir()


def other_serial(fake: FakeHost) -> None:
    (fake.disk(DRIVE).parent / "serial").write_text("S9999\n")


def other_model(fake: FakeHost) -> None:
    (fake.device(DRIVE) / "device").write_text("0xa80a\n")


def another_gpu(fake: FakeHost) -> None:
    (fake.device(GPU) / "device").write_text("0x2335\n")


def gone(fake: FakeHost) -> None:
    shutil.rmtree(fake.device(GPU))


def without_driver(fake: FakeHost) -> None:
    (fake.device(DRIVE) / "driver").unlink()


def taken_by_another_driver(fake: FakeHost) -> None:
    (fake.device(DRIVE) / "driver").unlink()
    (fake.device(DRIVE) / "driver").symlink_to("../../drivers/uio_pci_generic")


def routed(fake: FakeHost) -> None:
    fake.route(next((fake.device(CARD) / "net").iterdir()).name)


def routed_on_a_bridge_on_a_bond(fake: FakeHost) -> None:
    name = next((fake.device(CARD) / "net").iterdir()).name
    fake.link("bond0", name)
    fake.link("br0", "bond0")
    fake.route("br0")


def routed_on_nothing_known(fake: FakeHost) -> None:
    (fake.root / "sys/class/net/tun0").mkdir()
    fake.route("tun0")


def routed_over_ipv6(fake: FakeHost) -> None:
    name, none = next((fake.device(CARD) / "net").iterdir()).name, "0" * 32
    row = f"{none} 00 {none} 00 {'f' * 32} 00000400 00000001 00000000 00000003 {name}\n"
    (fake.root / "proc/net/ipv6_route").write_text(row)


def other_mac(fake: FakeHost) -> None:
    next((fake.device(CARD) / "net").glob("*/address")).write_text("02:00:00:00:00:99\n")


def more_nodes_a_socket(fake: FakeHost) -> None:
    """What a BIOS update may do: the same CPUs on other nodes."""
    (fake.root / NODE).write_text("0-27,112-139\n")


def a_socket_is_gone(fake: FakeHost) -> None:
    shutil.rmtree((fake.root / NODE).parent)


REFUSALS: dict[Callable[[FakeHost], None], str] = {
    mounted: f"the drive {DRIVE} (nvme16n1p1) is mounted at /srv",
    btrfs: f"the drive {DRIVE} (nvme16n1p1) is mounted at /",
    held: f"the drive {DRIVE} (nvme16n1p1) is held by dm-0",
    swap: f"the drive {DRIVE} (nvme16n1p1) is swap",
    claimed: f"the drive {DRIVE} (nvme16n1) is in use: it cannot be opened for itself alone",
    of_a_subsystem: f"the drive {DRIVE} (nvme16n1) is held by md0",
    other_serial: f"the drive {DRIVE} has the serial number S9999, and the inventory says S10",
    other_model: f"{DRIVE} is 144d:a80a, and the inventory says 144d:a824",
    another_gpu: f"{GPU} is 10de:2335, and the inventory says 10de:2330",
    more_nodes_a_socket: f"the CPUs of {{root}}/{NODE} are 0-27,112-139, and the inventory "
    "says 0-55,112-167: collect it again",
    a_socket_is_gone: f"the CPUs of {{root}}/{NODE} are none, and the inventory says 0-55,112-167: "
    "collect it again",
    gone: f"there is no device {GPU}: collect the inventory of this host again",
    without_driver: f"no driver has the drive {DRIVE}, so that its serial number cannot be read",
    taken_by_another_driver: f"the driver uio_pci_generic has the drive {DRIVE}",
    routed: f"the card {CARD} carries the default route (ens8)",
    routed_on_a_bridge_on_a_bond: f"the card {CARD} carries the default route (br0)",
    routed_on_nothing_known: "nothing says which card carries the default route on tun0",
    routed_over_ipv6: f"the card {CARD} carries the default route (ens8)",
    other_mac: f"the card {CARD} has no MAC address {MAC} as in the inventory",
}


@pytest.mark.parametrize("fault", REFUSALS, ids=lambda f: f.__name__)
def test_what_the_host_uses_or_does_not_know_goes_to_no_guest(
    fault: Callable[[FakeHost], None], fake: FakeHost
) -> None:
    fault(booted(fake))
    before = {d.address: fake.driver(d.address) for d in PLAN.hosts[0].devices}
    for arguments in (("check",), ("bind", "big-0")):
        done = fake.run(SCRIPT, *arguments)
        assert done.returncode == 1
        said = REFUSALS[fault].replace("{root}", str(fake.root))
        assert done.stderr == f"gpuplan-devices: {said}\n"
    assert {d.address: fake.driver(d.address) for d in PLAN.hosts[0].devices} == before


def test_no_gpu_is_taken_from_a_driver_that_may_be_working(fake: FakeHost) -> None:
    assert fake.run(SCRIPT, "check").returncode == 0
    done = fake.run(SCRIPT, "bind", "big-0")
    assert f"the driver nvidia has {GPU}: boot this host anew" in done.stderr


def test_a_card_that_a_person_marked_may_carry_the_default_route(fake: FakeHost) -> None:
    devices = (replace(d, shared=d.kind == "nic") for d in PLAN.hosts[0].devices)
    host = replace(PLAN.hosts[0], devices=tuple(devices))
    routed(fake)
    script = texts(replace(PLAN, hosts=(host, PLAN.hosts[1])))[PROGRAM]
    assert fake.run(script, "check").stderr == ""
    other_mac(fake)
    assert "has no MAC address" in fake.run(script, "check").stderr


def test_no_function_is_made_of_the_card_that_carries_the_default_route(fake: FakeHost) -> None:
    nic = fake.device(CARD)
    for name, text in (("numvfs", "0"), ("totalvfs", "8"), ("drivers_autoprobe", "1")):
        (nic / f"sriov_{name}").write_text(text)
    fake.install(PROGRAM, SCRIPT)
    routed(fake)
    done = fake.run(texts(PLAN)["usr/local/sbin/gpuplan-nics"])
    assert f"the card {CARD} carries the default route" in done.stderr
    assert (nic / "sriov_numvfs").read_text() == "0"


HOOK = "etc/libvirt/hooks/qemu.d/gpuplan"
STEPS = (("prepare", "begin"), ("start", "begin"), ("stopped", "end"), ("release", "end"))


def hooked(fake: FakeHost, plan: Plan, guest: str, **fails: str) -> dict[str, list[str]]:
    """What the hook calls at each step of a guest; programs that fail do so where `fails` says."""
    for name in ("gpuplan-nics", "gpuplan-devices", "gpuplan-vgpus", "fmpm"):
        text = f'echo {name} "$@" >>{fake.root}/log; {fails.get(name, "true")}'
        fake.install(f"usr/local/sbin/{name}", text)
        fake.program(name, text)
    log, calls = fake.root / "log", {}
    for step in STEPS:
        log.write_text("")
        done = fake.run(texts(plan)[HOOK], guest, *step, "-")
        failed = bool(fails) and step[0] == "prepare"
        assert (done.returncode != 0) == failed, done.stderr
        calls[step[0]] = log.read_text().splitlines()
    return calls


def test_the_hook_prepares_a_guest_before_it_starts_and_lets_go_after_it(fake: FakeHost) -> None:
    (partition,) = {m.fabric_partition for m in PLAN.virtual_machines}
    assert hooked(fake, PLAN, "big-0") == {
        "prepare": ["gpuplan-nics big-0", "gpuplan-devices bind big-0", f"fmpm -a {partition}"],
        "start": [],
        "stopped": [],
        "release": [f"fmpm -d {partition}"],
    }
    assert hooked(fake, plans()["mig"], "mig-0") == {
        "prepare": ["gpuplan-devices bind mig-0", "gpuplan-vgpus prepare mig-0"],
        "start": [],
        "stopped": [],
        "release": ["gpuplan-vgpus release mig-0"],
    }


def test_what_fails_stops_that_guest_before_anything_further_is_done(fake: FakeHost) -> None:
    calls = hooked(fake, PLAN, "big-0", **{"gpuplan-nics": "exit 1"})
    assert calls["prepare"] == ["gpuplan-nics big-0"]


def test_a_partition_that_a_crash_left_active_is_activated_anew(fake: FakeHost) -> None:
    number = PLAN.virtual_machines[0].fabric_partition
    for name in ("gpuplan-nics", "gpuplan-devices"):
        fake.install(f"usr/local/sbin/{name}", "true")
    once = "test -e {root}/off || case $1 in -d) touch {root}/off ;; *) exit 1 ;; esac"
    fake.program("fmpm", 'echo "$@" >>{root}/log; ' + once)
    assert fake.run(texts(PLAN)[HOOK], "big-0", "prepare", "begin", "-").returncode == 0
    lines = (fake.root / "log").read_text().splitlines()
    assert lines == [f"-a {number}", f"-d {number}", f"-a {number}"]


def test_apparmor_lets_libvirtd_run_the_programs() -> None:
    """Its profile of libvirtd allows /bin/sh, and nothing in /usr/local."""
    hook = texts(PLAN)[HOOK]
    assert [
        line for line in hook.splitlines() if "/usr/local" in line and "AppArmor" not in line
    ] == ['    /bin/sh "/usr/local/sbin/$program" "$@"']


def test_no_program_that_fails_keeps_libvirt_from_starting() -> None:
    for name in ("whole hosts", "mig", "infiniband"):
        for path, text in texts(plans()[name]).items():
            if path.startswith("etc/systemd/"):
                assert "Requires=" not in text
                assert "RequiredBy=" not in text
        assert "gpuplan-nics.service" in texts(plans()[name])["setup.sh"], "an old one is removed"


def test_a_drive_is_never_bound_by_its_address_alone() -> None:
    """Another one may have the address after a card is added."""
    rules = texts(PLAN)["etc/udev/rules.d/60-gpuplan-vfio.rules"]
    assert 'KERNEL=="0000:0f:00.0", ATTR{vendor}=="0x10de", ATTR{device}=="0x2330"' in rules
    assert DRIVE not in rules
    xml = texts(PLAN)["hypervisor/libvirt/big-0.xml"]
    assert "managed='yes'" not in xml.replace("<interface type='hostdev' managed='yes'", "")


# --- versions ----------------------------------------------------------------------------------

OLD = {
    ("uname", "echo 5.15.0-91-generic"): "Linux is 5.15.0-91-generic, and counts of huge pages",
    ("virsh", "echo 8.0.0"): "libvirt is 8.0.0, and the host's physical address bits",
    ("dpkg-query", "printf 2022.02-3ubuntu0.22.04.2"): "OVMF is 2022.02-3ubuntu0.22.04.2, and a",
    ("dpkg-query", "exit 1"): "nothing says which OVMF there is",
}


@pytest.mark.parametrize(("program", "refusal"), OLD.items())
def test_a_host_with_old_programs_is_not_set_up(
    program: tuple[str, str], refusal: str, fake: FakeHost
) -> None:
    script = texts(PLAN)["setup.sh"]
    fake.install(PROGRAM, "true")
    assert fake.run(script, "check", fake.root).stderr == ""
    fake.program(*program)
    done = fake.run(script, "check", fake.root)
    assert done.returncode == 1
    assert f"setup.sh: {refusal}" in done.stderr


# --- what a script finds done already ----------------------------------------------------------

MIG = replace(plans()["mig"])
VGPUS = texts(MIG)["usr/local/sbin/gpuplan-vgpus"]
FUNCTION = "0000:0f:00.4"
LISTED = "|   0  MIG 1g.10gb         19        9          {}:1     |\n"


def shared(root: Path) -> FakeHost:
    """A GPU with its virtual functions, which have no vGPU type yet."""
    fake = populate(root, MIG.hosts[0])
    for machine in MIG.virtual_machines:
        for device in machine.devices:
            assert device.parent is not None
            (fake.device(device.parent) / "virtfn0").mkdir(exist_ok=True)
            folder = fake.device(device.address) / "nvidia"
            folder.mkdir(parents=True)
            (folder / "current_vgpu_type").write_text("0\n")
            (folder / "creatable_vgpu_types").write_text("1123 : NVIDIA H100XM-1-10C\n")
    cut(fake, ())
    return fake


def cut(fake: FakeHost, starts: tuple[int, ...]) -> None:
    rows = "".join(LISTED.format(start) for start in starts)
    (fake.root / "instances").write_text(rows)
    fake.program(
        "nvidia-smi",
        'case "$*" in *-lgi) cat {root}/instances ;; *) echo "$@" >>{root}/log ;; esac',
    )


def current(fake: FakeHost) -> Path:
    return fake.device(FUNCTION) / "nvidia/current_vgpu_type"


def test_a_function_that_has_its_type_is_left_to_the_guest_that_uses_it(tmp_path: Path) -> None:
    fake = shared(tmp_path)
    assert fake.run(VGPUS, "prepare").stderr == ""
    assert current(fake).read_text() == "1123\n"
    log = (tmp_path / "log").read_text()
    assert "-cgi 1g.10gb:0,1g.10gb:1,1g.10gb:2" in log
    cut(fake, (0, 1, 2, 3, 4, 5, 6))
    # What the kernel shows of a function in use: no type to choose, and it takes none.
    (current(fake).parent / "creatable_vgpu_types").write_text("")
    current(fake).chmod(0o444)
    before = current(fake).stat().st_mtime_ns
    assert fake.run(VGPUS, "prepare").stderr == ""
    assert current(fake).stat().st_mtime_ns == before
    assert (tmp_path / "log").read_text() == log, "the GPU is not cut again"


def test_a_function_of_another_type_gets_the_planned_one(tmp_path: Path) -> None:
    fake = shared(tmp_path)
    current(fake).write_text("999\n")
    assert fake.run(VGPUS, "prepare").stderr == ""
    assert current(fake).read_text() == "1123\n"


def test_a_gpu_that_is_cut_otherwise_is_not_taken_as_it_is(tmp_path: Path) -> None:
    fake = shared(tmp_path)
    cut(fake, (0, 4))
    done = fake.run(VGPUS, "prepare")
    assert done.returncode == 1
    assert (
        "0000:0f:00.0 is cut as 1g.10gb:0 1g.10gb:4, and the plan says 1g.10gb:0 1g" in done.stderr
    )
    assert "stop its guests" in done.stderr


def test_a_guest_sends_from_its_own_address_alone(fake: FakeHost) -> None:
    fake.install(PROGRAM, "true")
    fake.program("ip", 'echo "$@" >>{root}/log')
    for nic in (d.address for d in PLAN.hosts[0].devices if d.kind == "nic"):
        device = fake.device(nic)
        for name, text in (("numvfs", "0"), ("totalvfs", "8"), ("drivers_autoprobe", "1")):
            (device / f"sriov_{name}").write_text(text)
        for function in range(3):
            (device / f"virtfn{function}").symlink_to(f"../{nic[:-1]}{function + 1}")
    assert fake.run(texts(PLAN)["usr/local/sbin/gpuplan-nics"]).stderr == ""
    lines = (fake.root / "log").read_text().splitlines()
    assert lines[:2] == ["link set dev ens8 up", "link set dev ens8 vf 0 trust off spoofchk on"]
    assert len(lines) == 16


@pytest.mark.parametrize("verb", ["apply", "remove"])
def test_the_initramfs_is_made_anew(verb: str, fake: FakeHost) -> None:
    """It has a copy of the udev rules, which would bind devices after the stack is gone."""
    script = texts(PLAN)["setup.sh"].replace("sha256sum --check --quiet", "true")
    script = script.replace('sh "$folder/usr/local/sbin/gpuplan-devices" check', ":")
    for path in texts(PLAN):
        if path.startswith(("etc/", "usr/")):
            fake.install(path, "")
    script = script.replace('"$folder$2"', "/dev/null")
    lines = fake.run(script, verb, fake.root).stdout.splitlines()
    assert lines[-2:] == ["update-grub", "update-initramfs -u -k all"]
    assert (fake.root / "etc/udev/rules.d/60-gpuplan-vfio.rules").exists() == (verb == "apply")


# --- settings of devices -----------------------------------------------------------------------

SETTINGS = "usr/local/sbin/gpuplan-settings"
MODPROBE = "etc/modprobe.d/60-gpuplan.conf"


def bridged(fake: FakeHost) -> None:
    """Each device below a switch's port below a root port."""
    for device in PLAN.hosts[0].devices:
        above = fake.root / "sys/devices/pci0000:0d/0000:0d:01.0/0000:0e:1f.0"
        above.mkdir(parents=True, exist_ok=True)
        real = above / device.address
        shutil.move(fake.device(device.address), real)
        fake.device(device.address).symlink_to(real)
    fake.program("setpci", 'echo setpci "$@" >>{root}/log')
    fake.program(
        "mlxconfig",
        'echo mlxconfig "$@" >>{root}/log; case "$*" in *query*) cat {root}/ats ;; esac',
    )


@pytest.mark.parametrize("state", ["False(0)", "True(1)"])
def test_a_card_and_its_gpu_exchange_data_below_their_switch(state: str, fake: FakeHost) -> None:
    bridged(fake)
    (fake.root / "ats").write_text(f"        ATS_ENABLED                 {state}\n")
    assert fake.run(texts(PLAN)[SETTINGS]).stderr == ""
    log = (fake.root / "log").read_text()
    assert ("mlxconfig --yes -d 0000:0e:00.0 set ATS_ENABLED=true" in log) == (state == "False(0)")
    for bridge in ("0000:0d:01.0", "0000:0e:1f.0"):
        assert f"setpci -s {bridge} ECAP_ACS+6.w=40:40" in log
    assert f"setpci -s {GPU}" not in log, "only bridges"


def test_a_setting_that_fails_stops_no_other(fake: FakeHost) -> None:
    bridged(fake)
    (fake.root / "ats").write_text("")
    done = fake.run(texts(PLAN)[SETTINGS])
    assert done.returncode == 1
    assert "mlxconfig says nothing of ATS_ENABLED of 0000:0e:00.0" in done.stderr
    assert "ECAP_ACS+6.w=40:40" in (fake.root / "log").read_text()


def test_shared_gpus_keep_their_driver_and_their_limit(tmp_path: Path) -> None:
    host = MIG.hosts[0]
    limited = (replace(d, power_limit_watts=550.0) if d.kind == "gpu" else d for d in host.devices)
    fake = populate(tmp_path, host)
    changed = replace(MIG, hosts=(replace(host, devices=tuple(limited)),))
    assert fake.run(texts(changed)[SETTINGS]).stderr == ""
    assert (tmp_path / "log").read_text().splitlines()[:2] == [
        f"nvidia-smi -i {GPU} -pm 1",
        f"nvidia-smi -i {GPU} -pl 550",
    ]


def test_an_mtu_that_is_stated_is_set_before_the_card_is_up() -> None:
    host = PLAN.hosts[0]
    devices = tuple(replace(d, mtu=4200) if d.address == CARD else d for d in host.devices)
    script = texts(replace(PLAN, hosts=(replace(host, devices=devices), *PLAN.hosts[1:])))[
        "usr/local/sbin/gpuplan-nics"
    ]
    assert f"raise {CARD} 4200\n" in script
    assert script.index(' mtu "$2"') < script.index('ip link set dev "${port##*/}" up')


def test_what_the_inventory_leaves_is_not_set() -> None:
    shared = replace(plans()["vgpu"])
    name = shared.hosts[0].name
    files = {f.path.removeprefix(f"hypervisor/host/{name}/"): f.text for f in emit(shared).files}
    assert "RmPVMRL=0x01" in files[MODPROBE]
    assert "kernel.numa_balancing = 0" in files["etc/sysctl.d/60-gpuplan.conf"]
    kept = replace(shared, hosts=tuple(replace(h, settings=()) for h in shared.hosts))
    left = {f.path.removeprefix(f"hypervisor/host/{name}/"): f.text for f in emit(kept).files}
    assert files.keys() - left.keys() >= {MODPROBE, "etc/sysctl.d/60-gpuplan.conf", SETTINGS}
    assert not [p for p in left if "irqbalance" in p]
    assert "Left as it is, as the inventory says: `irqs`" in left["README.md"]
    assert "drop /etc/modprobe.d/60-gpuplan.conf" in left["setup.sh"]


def test_mig_backed_guests_take_no_turns() -> None:
    assert MODPROBE not in texts(MIG)
