"""What the libvirt backend writes, and that our own checker finds every fault libvirt does not."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpuplan.backends.libvirt import emit
from gpuplan.backends.libvirt.verify import problems
from gpuplan.backends.libvirt.window import window
from gpuplan.catalog.model import VgpuHost
from gpuplan.diagnostics import Severity
from gpuplan.pipeline import emit as emit_stack
from gpuplan.placement.place import place
from gpuplan.plan import serialize
from gpuplan.plan.model import Disk, Host, Plan, VirtualMachine
from gpuplan.units import GIB, TIB
from tests.support.hypervisor_plans import plan_of, plans, whole_hosts
from tests.support.placement_samples import (
    inventory,
    l40s,
    l40s_text,
    notebook,
    offer,
    place_hgx,
    workload,
)
from tests.support.samples import HOSTILE, libvirt_plan, sample_host, sample_vm
from tests.tools.fakehost import PROGRAMS, FakeHost

STACKS = Path(__file__).parents[2] / "stacks"
PLANS = ["sample", "passthrough", "whole hosts", "infiniband", "vgpu", "uneven", "mig"]


def files(plan: Plan) -> dict[str, str]:
    return {f.path: f.text for f in emit(plan).files}


def domain(plan: Plan, name: str) -> ET.Element:
    return ET.fromstring(files(plan)[f"hypervisor/libvirt/{name}.xml"])


def machines(plan: Plan) -> list[tuple[VirtualMachine, Host, str]]:
    written = files(plan)
    hosts = {h.name: h for h in plan.hosts}
    return [
        (m, hosts[m.host], written[f"hypervisor/libvirt/{m.name}.xml"])
        for m in plan.virtual_machines
    ]


def messages(plan: Plan, rule: str = "") -> list[str]:
    return [d.message for d in emit(plan).diagnostics if d.rule.startswith(rule)]


# --- what is written ---------------------------------------------------------------------------


@pytest.mark.parametrize("name", PLANS)
def test_every_domain_is_without_fault(name: str) -> None:
    for machine, host, xml in machines(plans()[name]):
        assert problems(xml, machine, host, plans()[name].fabric) == ()


def test_the_stacks_in_the_repository_are_without_fault() -> None:
    checked = 0
    for stack in sorted(STACKS.iterdir()):
        plan = serialize.load((stack / "plan.yaml").read_text(encoding="utf-8"))
        hosts = {h.name: h for h in plan.hosts}
        for machine in plan.virtual_machines:
            path = stack / "hypervisor/libvirt" / f"{machine.name}.xml"
            xml = path.read_text(encoding="utf-8")
            assert problems(xml, machine, hosts[machine.host], plan.fabric) == ()
            checked += 1
    assert checked > 0


def test_each_machine_and_host_has_its_files() -> None:
    assert sorted(files(libvirt_plan())) == [
        "apply.sh",
        "hypervisor/host/hv-01/README.md",
        "hypervisor/host/hv-01/etc/default/grub.d/60-gpuplan.cfg",
        "hypervisor/host/hv-01/etc/libvirt/hooks/qemu.d/gpuplan",
        "hypervisor/host/hv-01/etc/modules-load.d/gpuplan-vfio.conf",
        "hypervisor/host/hv-01/etc/sysctl.d/60-gpuplan.conf",
        "hypervisor/host/hv-01/etc/systemd/system.conf.d/60-gpuplan.conf",
        "hypervisor/host/hv-01/etc/systemd/system/gpuplan-hugepages.service",
        "hypervisor/host/hv-01/etc/systemd/system/irqbalance.service.d/60-gpuplan.conf",
        "hypervisor/host/hv-01/etc/systemd/system/libvirtd.service.d/60-gpuplan.conf",
        "hypervisor/host/hv-01/etc/systemd/system/virtqemud.service.d/60-gpuplan.conf",
        "hypervisor/host/hv-01/etc/udev/rules.d/60-gpuplan-vfio.rules",
        "hypervisor/host/hv-01/guests.sh",
        "hypervisor/host/hv-01/setup.sh",
        "hypervisor/host/hv-01/usr/local/sbin/gpuplan-devices",
        "hypervisor/libvirt/tune-0.checks.json",
        "hypervisor/libvirt/tune-0.nccl-topo.xml",
        "hypervisor/libvirt/tune-0.xml",
        "hypervisor/monitoring/prometheus.yaml",
    ]


def test_a_domain_says_where_memory_and_vcpus_are() -> None:
    root = domain(plans()["whole hosts"], "big-0")
    assert [c.get("memory") for c in root.iterfind("cpu/numa/cell")] == ["452", "452"]
    assert [c.get("cpus") for c in root.iterfind("cpu/numa/cell")] == ["0-63", "64-127"]
    assert [m.get("nodeset") for m in root.iterfind("numatune/memnode")] == ["0", "1"]
    assert [s.get("value") for s in root.iterfind("cpu/numa/cell/distances/sibling")] == [
        "10",
        "21",
        "21",
        "10",
    ]
    pins = {p.get("vcpu"): p.get("cpuset") for p in root.iterfind("cputune/vcpupin")}
    assert [pins[v] for v in ("0", "1", "64", "65")] == ["2", "114", "58", "170"]


def test_nothing_is_invented_where_distances_are_unknown() -> None:
    root = domain(plans()["uneven"], "spread-0")
    assert len(root.findall("cpu/numa/cell")) == 2
    assert root.find("cpu/numa/cell/distances") is None


def test_uneven_cells_are_one_socket() -> None:
    topology = domain(plans()["uneven"], "spread-0").find("cpu/topology")
    assert topology is not None
    assert dict(topology.items()) == {"sockets": "1", "dies": "1", "cores": "24", "threads": "2"}


def test_amd_guests_are_told_of_their_threads_and_intel_ones_need_not() -> None:
    features = [
        domain(plans()[plan], vm).find("cpu/feature")
        for plan, vm in (("vgpu", "svc-0"), ("passthrough", "tune-0"))
    ]
    assert features[0] is not None
    assert features[0].get("name") == "topoext"
    assert features[1] is None


def test_devices_that_share_a_switch_share_one_in_the_guest() -> None:
    root = domain(plans()["whole hosts"], "big-0")
    models = [c.get("model") for c in root.iterfind("devices/controller")]
    assert models.count("pcie-expander-bus") == 2
    assert models.count("pcie-switch-upstream-port") == 8
    assert models.count("pcie-switch-downstream-port") == 16
    topo = ET.fromstring(files(plans()["whole hosts"])["hypervisor/libvirt/big-0.nccl-topo.xml"])
    assert [len(cpu.findall("pci")) for cpu in topo.iterfind("cpu")] == [4, 4]
    assert all(len(switch.findall("pci")) == 2 for switch in topo.iterfind("cpu/pci"))


def test_the_checks_and_the_nccl_file_name_the_same_buses() -> None:
    written = files(plans()["whole hosts"])
    checks = json.loads(written["hypervisor/libvirt/big-0.checks.json"])
    topo = ET.fromstring(written["hypervisor/libvirt/big-0.nccl-topo.xml"])
    named = {e.get("busid") for e in topo.iter("pci")}
    expected = {d["bus"] for d in checks["devices"] if d["kind"] != "nvme"}
    assert expected <= named
    for node, cpu in enumerate(topo.iterfind("cpu")):
        buses = {e.get("busid") for e in cpu.iter("pci")}
        on_node = {d["bus"] for d in checks["devices"] if d["node"] == node and d["kind"] != "nvme"}
        assert on_node <= buses
    assert [n["cpus"] for n in checks["nodes"]] == ["0-63", "64-127"]
    numbers = {d["name"]: d["bus"][5:7] for d in checks["devices"]}
    first = [numbers[name] for name in ("gpu0", "nic0", "gpu1", "nic1", "nvme0", "gpu4", "nic4")]
    assert first == ["23", "24", "27", "28", "31", "93", "94"], "as SeaBIOS and OVMF number them"


def test_a_virtual_function_is_left_to_the_host_s_driver() -> None:
    device = domain(plans()["vgpu"], "lab-0").find("devices/hostdev")
    assert device is not None
    assert (device.get("type"), device.get("managed")) == ("pci", "no")
    assert device.find("rom") is None


def test_a_card_without_functions_gives_mediated_devices_that_the_host_makes() -> None:
    placement = place(
        "rack",
        "libvirt",
        [notebook()],
        [offer(l40s(vgpu_host=VgpuHost(interface="mediated-device")), gpus_per_node=4)],
        inventory(l40s_text()),
    )
    plan = plan_of(placement)
    source = domain(plan, "lab-0").find("devices/hostdev[@type='mdev']/source/address")
    assert source is not None
    script = files(plan)["hypervisor/host/hv-11/usr/local/sbin/gpuplan-vgpus"]
    assert f"mediate {source.get('uuid')} 0000:21:00.0 L40S-12C\n" in script
    for machine, host, xml in machines(plan):
        assert problems(xml, machine, host) == ()


def test_network_functions_carry_mac_and_vlan() -> None:
    interface = domain(plans()["whole hosts"], "big-0").find("devices/interface[@type='hostdev']")
    assert interface is not None
    mac, tag = interface.find("mac"), interface.find("vlan/tag")
    assert mac is not None
    assert tag is not None
    assert tag.get("id") == "100"


def test_infiniband_functions_are_devices_because_nothing_sets_their_mac() -> None:
    root = domain(plans()["infiniband"], "big-0")
    assert [i.get("type") for i in root.iterfind("devices/interface")] == ["bridge"]
    device = root.find("devices/hostdev/alias[@name='ua-nic0']/..")
    assert device is not None
    assert (device.get("type"), device.get("managed")) == ("pci", "yes")
    assert "VMs of 'big' are not in VLAN 100: InfiniBand has no VLANs" in messages(
        plans()["infiniband"]
    )
    assert not [m for m in messages(plans()["whole hosts"]) if "VLAN" in m]


def test_disks_share_the_io_threads_and_none_is_idle() -> None:
    plan = plans()["whole hosts"]
    machine = plan.virtual_machines[0]
    assert len(machine.cells) == 2
    for count, used in ((1, ["1"]), (2, ["1", "2"]), (3, ["1", "2", "1"])):
        disks = tuple(
            Disk(name=f"d{n}", source=f"/dev/vg0/d{n}", size_bytes=GIB) for n in range(count)
        )
        changed = replace(plan, virtual_machines=(replace(machine, disks=disks),))
        root = domain(changed, machine.name)
        threads = [d.get("iothread") for d in root.iterfind("devices/disk/driver")]
        assert threads == used
        assert root.findtext("iothreads") == str(min(count, 2))
        assert len(root.findall("cputune/iothreadpin")) == min(count, 2)


# --- hosts -------------------------------------------------------------------------------------


def test_the_kernel_line_survives_a_shell() -> None:
    text = files(plans()["passthrough"])["hypervisor/host/hv-01/etc/default/grub.d/60-gpuplan.cfg"]
    line = text.splitlines()[-1]
    name, _, value = line.partition("=")
    assert name == "GRUB_CMDLINE_LINUX"
    (word,) = shlex.split(value)
    assert word.split() == [
        "$GRUB_CMDLINE_LINUX",
        *plans()["passthrough"].hosts[0].kernel_parameters,
    ]


def test_devices_are_bound_by_address() -> None:
    text = files(plans()["vgpu"])["hypervisor/host/hv-11/etc/udev/rules.d/60-gpuplan-vfio.rules"]
    assert re.findall(r'KERNEL=="([^"]+)"', text) == ["0000:21:00.0", "0000:41:00.0"]


def test_the_host_is_told_how_to_cut_and_share_its_gpus() -> None:
    script = files(plans()["mig"])["hypervisor/host/hv-01/usr/local/sbin/gpuplan-vgpus"]
    assert "partition 0000:0f:00.0 1g.10gb:0,1g.10gb:1,1g.10gb:2" in script
    assert "set_type 0000:0f:00.4 H100XM-1-10C\n" in script
    executable = {f.path for f in emit(plans()["mig"]).files if f.executable}
    assert executable == {
        "apply.sh",
        "hypervisor/host/hv-01/etc/libvirt/hooks/qemu.d/gpuplan",
        "hypervisor/host/hv-01/guests.sh",
        "hypervisor/host/hv-01/setup.sh",
        "hypervisor/host/hv-01/usr/local/sbin/gpuplan-devices",
        "hypervisor/host/hv-01/usr/local/sbin/gpuplan-settings",
        "hypervisor/host/hv-01/usr/local/sbin/gpuplan-vgpus",
    }


def test_services_of_the_host_stay_on_its_own_cores() -> None:
    text = files(libvirt_plan())["hypervisor/host/hv-01/etc/systemd/system.conf.d/60-gpuplan.conf"]
    assert "CPUAffinity=0-1,56-57,112-113,168-169\n" in text


def test_the_page_of_a_host_names_partitions_to_activate() -> None:
    page = files(plans()["passthrough"])["hypervisor/host/hv-01/README.md"]
    assert "| tune-0 | 1 |" in page
    assert "fmpm -a NUMBER" in page
    assert "fmpm" not in files(plans()["vgpu"])["hypervisor/host/hv-11/README.md"]


def test_the_setup_of_a_host_is_checked_and_undone(tmp_path: Path) -> None:
    root, copied, folder = tmp_path / "root", tmp_path / "copied", "hypervisor/host/hv-01"
    for path, text in files(plans()["infiniband"]).items():
        if path.startswith(f"{folder}/"):
            copy = copied / path.removeprefix(f"{folder}/")
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_text(text, encoding="utf-8")
    wanted = {p.relative_to(copied) for p in copied.rglob("*") if p.is_file()}
    placed = sorted(root / p for p in wanted if p.parts[0] in ("etc", "usr"))
    stale = root / "etc/systemd/system/gpuplan-vgpus.service"
    stale.parent.mkdir(parents=True)
    stale.touch()
    fake = FakeHost(tmp_path)
    for name, program in PROGRAMS.items():
        fake.program(name, program)
    text = files(plans()["infiniband"])[f"{folder}/setup.sh"]
    script = re.sub(r"(?<= )/(?=etc/|usr/)", f"{root}/", text)
    script = script.replace("=/var/lib/", f"={root}/var/lib/")
    script = re.sub(r'"\$folder\$(\d)"', rf'"$folder${{\1#{root}}}"', script)
    script = re.sub(r"sh .*/gpuplan-devices. check", ":", script)  # tested by itself
    path = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}

    def setup(verb: str) -> subprocess.CompletedProcess[str]:
        """As the program runs it: the script comes on standard input."""
        command = ["sh", "-s", verb, str(copied)]
        return subprocess.run(
            command, input=script, env=path, capture_output=True, text=True, check=False
        )

    assert setup("diff").returncode == 1
    assert stale.exists(), "a comparison changes nothing"
    for _ in range(2):
        lines = setup("apply").stdout.splitlines()
        assert lines[-5:] == [
            "systemctl daemon-reload",
            "systemctl reenable gpuplan-hugepages.service",
            "systemctl reenable gpuplan-settings.service",
            "update-grub",
            "update-initramfs -u -k all",
        ]
        assert sorted(p for p in root.rglob("*") if p.is_file()) == placed
    assert os.access(root / "usr/local/sbin/gpuplan-nics", os.X_OK)
    assert setup("diff").stdout == ""
    placed[0].write_text("edited", encoding="utf-8")
    done = setup("diff")
    assert (done.returncode, "-edited" in done.stdout) == (1, True)
    assert setup("apply").returncode == 0
    (copied / placed[0].relative_to(root)).write_text("edited", encoding="utf-8")
    assert setup("apply").returncode != 0
    assert setup("remove").stdout.splitlines() == [
        "systemctl disable gpuplan-hugepages.service",
        "systemctl disable gpuplan-settings.service",
        "systemctl daemon-reload",
        "update-grub",
        "update-initramfs -u -k all",
    ]
    assert not [p for p in root.rglob("*") if p.is_file()]
    assert setup("remove").returncode == 0
    assert setup("").returncode == 2


# --- the functions of NICs ---------------------------------------------------------------------

NICS = "hypervisor/host/hv-01/usr/local/sbin/gpuplan-nics"


def guids(plan: Plan) -> dict[str, str]:
    """GUID → function, as the hosts' scripts set them."""
    scripts = [text for path, text in files(plan).items() if path.endswith("/gpuplan-nics")]
    names = [re.findall(r"^ +name \S+ (\S+) (\S+)$", text, re.MULTILINE) for text in scripts]
    assert all(names)
    found = [(guid, f"{host} {at}") for host, found in enumerate(names) for at, guid in found]
    assert len(dict(found)) == len(found), "each function has a GUID of its own"
    return dict(found)


def test_guids_are_local_and_stay() -> None:
    plan = plans()["infiniband"]
    found = guids(plan)
    assert len(found) == 16
    assert all(re.fullmatch("52(:[0-9a-f]{2}){7}", g) for g in found)
    assert guids(plan) == found
    moved = [
        replace(
            m,
            devices=tuple(
                replace(d, address=d.address[:-1] + "3") if d.kind == "nic" else d
                for d in m.devices
            ),
        )
        for m in plan.virtual_machines
    ]
    assert guids(replace(plan, virtual_machines=tuple(moved))).keys() == found.keys()
    page = files(plan)["hypervisor/host/hv-01/README.md"]
    assert [g for g in found if g in page] == [g for g, at in found.items() if at[0] == "0"]


def fake_host(folder: Path, plan: Plan, made: int = 0) -> Path:
    """A host's /sys with the NICs of `plan` and, of each, three functions; where its programs log
    what they are called with."""
    nics = [d for d in plan.hosts[0].devices if d.kind == "nic"]
    for number, nic in enumerate(nics):
        device = folder / "sys/bus/pci/devices" / nic.address
        (device / f"net/ib{number}").mkdir(parents=True)
        (device / "driver").mkdir()
        for name, text in (("numvfs", str(made)), ("totalvfs", "8"), ("drivers_autoprobe", "1")):
            (device / f"sriov_{name}").write_text(text)
        for function in range(3):
            (device / f"virtfn{function}").symlink_to(f"../{nic.address[:-1]}{function + 1}")
    ip = folder / "bin/ip"
    ip.parent.mkdir()
    ip.write_text(f'#!/bin/sh\necho "$@" >> {folder}/log\n')
    ip.chmod(0o755)
    (folder / "log").touch()
    return folder / "log"


def make_functions(folder: Path, plan: Plan) -> subprocess.CompletedProcess[str]:
    """Without the comparison, which is tested by itself."""
    script = files(plan)[NICS].replace("/sys/", f"{folder}/sys/")
    script = script.replace("/usr/local/sbin/gpuplan-devices", "true")
    path = {"PATH": f"{folder}/bin:{os.environ['PATH']}"}
    command = ["sh", "-c", script]
    return subprocess.run(command, env=path, capture_output=True, text=True, check=False)


def test_each_boot_makes_the_functions_that_guests_own(tmp_path: Path) -> None:
    plan = plans()["infiniband"]
    log = fake_host(tmp_path, plan)
    assert make_functions(tmp_path, plan).stderr == ""
    device = tmp_path / "sys/bus/pci/devices/0000:0e:00.0"
    assert (device / "sriov_numvfs").read_text() == "3\n"
    assert (device / "sriov_drivers_autoprobe").read_text() == "0\n"
    first = next(guid for guid, at in guids(plan).items() if at == "0 0000:0e:00.1")
    lines = log.read_text().splitlines()
    assert lines[0] == "link set dev ib0 up"
    assert lines[1] == f"link set dev ib0 vf 0 node_guid {first} port_guid {first} state auto"
    assert len(lines) == 16
    (device / "sriov_drivers_autoprobe").write_text("untouched")
    assert make_functions(tmp_path, plan).returncode == 0
    assert (device / "sriov_drivers_autoprobe").read_text() == "untouched"


def test_functions_in_use_are_not_made_again(tmp_path: Path) -> None:
    plan = plans()["infiniband"]
    fake_host(tmp_path, plan, made=1)
    assert "has 1 functions instead of 3: stop the guests" in make_functions(tmp_path, plan).stderr


def test_a_function_that_is_not_there_stops_the_guests(tmp_path: Path) -> None:
    plan = plans()["whole hosts"]
    fake_host(tmp_path, plan)
    assert make_functions(tmp_path, plan).returncode == 0
    (tmp_path / "sys/bus/pci/devices/0000:0e:00.0/virtfn0").unlink()
    done = make_functions(tmp_path, plan)
    assert done.returncode != 0
    assert "0000:0e:00.1 is none of the functions of 0000:0e:00.0" in done.stderr


def test_a_host_without_such_functions_makes_none() -> None:
    assert not [path for path in files(plans()["passthrough"]) if "gpuplan-nics" in path]


# --- what cannot be expressed ------------------------------------------------------------------


def test_the_page_of_a_host_lists_the_disks_to_make() -> None:
    page = files(libvirt_plan())["hypervisor/host/hv-01/README.md"]
    assert "| `/dev/vg0/tune-0-root` | 200 GiB |" in page


def test_a_guest_s_disk_is_made_as_its_path_says() -> None:
    plan = libvirt_plan()
    sources = {
        "/dev/vg0/root": "`lvcreate --size 200g --name root vg0`",
        "/var/lib/libvirt/images/root": (
            "`qemu-img create -f raw /var/lib/libvirt/images/root 200G`"
        ),
        "/dev/disk/by-id/root": "your storage",
    }
    for source, command in sources.items():
        disk = Disk(name="root", source=source, size_bytes=200 * GIB)
        changed = replace(plan, virtual_machines=(replace(sample_vm(), disks=(disk,)),))
        page = files(changed)["hypervisor/host/hv-01/README.md"]
        assert f"| `{source}` | 200 GiB | {command} |" in page


def readme(plan: Plan) -> str:
    return next(f.text for f in emit_stack(plan).files if f.path == "README.md")


def test_the_readme_of_a_stack_goes_from_a_fresh_host_to_guests_and_back() -> None:
    plan = plans()["infiniband"]
    page = readme(plan)
    steps = [
        "## Before",
        "NUM_OF_VFS=3",
        "virt_enabled 2",
        "FABRIC_MODE=1",
        "disks that the host's page lists",
        "(hypervisor/host/hv-01/README.md)",
        """pulumi config set --path 'hostKeys["hv-01"]' "$(ssh-keyscan""",
        "## Apply",
        "`pulumi up`",
        "Boot each host anew",
        "The guests start with their host",
        "## After",
        "## Remove",
        "ssh root@hv-01 virsh shutdown big-0\n",
        "pulumi destroy",
        "Then boot each host anew",
    ]
    places = [page.find(step) for step in steps]
    assert -1 not in places, steps[places.index(-1)]
    assert places == sorted(places)
    linked = re.findall(r"\]\((hypervisor/[^)]+)\)", page)
    assert linked == [f"hypervisor/host/{h.name}/README.md" for h in plan.hosts]
    assert set(linked) <= files(plan).keys()


def test_the_readme_of_a_stack_speaks_of_what_its_guests_have() -> None:
    page = readme(plans()["vgpu"])
    assert "The guests start with their host.\n" in page
    assert "NVIDIA's vGPU driver" in page
    assert not re.search("fmpm|NUM_OF_VFS|virt_enabled", page)


def test_what_the_files_do_not_do_is_said() -> None:
    assert messages(libvirt_plan()) == [
        "VMs of 'tune' own their devices, so they cannot be migrated live",
        (
            "nothing installs 'tune' in its VMs, nor puts HF_TOKEN there: only the machines are "
            "described"
        ),
        "volume 'checkpoints' of 'tune' is no disk: several VMs share it",
    ]


def test_arm_hosts_get_no_x86_guests() -> None:
    plan = libvirt_plan()
    arm = replace(plan, hosts=(replace(sample_host(), cpu_vendor="arm"),))
    assert "host 'hv-01' has arm CPUs; only x86 guests are described" in messages(arm)
    assert files(arm) == {}


def test_more_vcpus_than_an_apic_can_name_are_refused() -> None:
    vm = sample_vm()
    pins = tuple(p for _ in range(5) for p in vm.cells[0].pins)
    many = replace(vm, cells=(replace(vm.cells[0], pins=pins),))
    plan = replace(libvirt_plan(), virtual_machines=(many,))
    assert [m for m in messages(plan) if "320 vCPUs" in m]


# --- the window for GPU memory -----------------------------------------------------------------


def with_bits(bits: int | None, memory_bytes: int | None = None) -> VirtualMachine:
    machine = plans()["whole hosts"].virtual_machines[0]
    size = machine.memory_bytes if memory_bytes is None else memory_bytes
    return replace(machine, physical_address_bits=bits, memory_bytes=size)


@pytest.mark.parametrize(
    ("bits", "asked", "fits"),
    [
        (52, None, True),  # firmware uses 46 of them: 8 TiB of window
        (46, None, True),
        (45, None, True),
        (44, 4 * TIB, True),  # 2 TiB is what the eight bridges take, and there are other devices
        (43, 4 * TIB, True),
        (42, 4 * TIB, False),
    ],
)
def test_the_window_holds_the_bars_of_eight_gpus(bits: int, asked: int | None, fits: bool) -> None:
    space = window(with_bits(bits))
    assert space.needed_bytes == 8 * 256 * GIB + GIB
    assert (space.asked_bytes, space.fits) == (asked, fits)


def test_memory_takes_room_from_the_window() -> None:
    assert window(with_bits(43, 4094 * GIB)).fits
    assert not window(with_bits(43, 4095 * GIB)).fits


def test_a_window_that_is_asked_for_stands_in_the_domain() -> None:
    plan = replace(plans()["whole hosts"], virtual_machines=(with_bits(43),))
    xml = files(plan)["hypervisor/libvirt/big-0.xml"]
    assert "value='name=opt/ovmf/X-PciMmio64Mb,string=4194304'" in xml
    (machine, host, _), *_ = machines(plan)
    assert problems(xml, machine, host) == ()
    assert (
        "the GPUs' BARs need a window"
        in problems(re.sub("string=4194304", "string=1048576", xml), machine, host)[0].message
    )
    unsaid = replace(plans()["whole hosts"], virtual_machines=(with_bits(42),))
    (message,) = messages(unsaid, "GP052")
    assert "needs a window of 2 TiB" in message


# --- free text is data -------------------------------------------------------------------------


@settings(max_examples=100)
@given(st.text(max_size=60))
def test_any_description_is_data(text: str) -> None:
    plan = libvirt_plan()
    described = replace(plan, workloads=(replace(plan.workloads[0], description=text),))
    root = domain(described, "tune-0")
    legal = re.sub("[^\t\n\r -\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", "\ufffd", text)
    assert (root.findtext("description") or "") == legal
    assert root.findtext("name") == "tune-0"
    assert len(list(root)) == len(list(domain(plan, "tune-0"))) - (text == "")
    assert bool(messages(described, "GP053")) == (legal != text)


def test_hostile_text_reaches_no_other_file() -> None:
    plan = libvirt_plan()
    described = replace(plan, workloads=(replace(plan.workloads[0], description=HOSTILE),))
    assert domain(described, "tune-0").findtext("description") == HOSTILE
    before, after = files(plan), files(described)
    assert {p for p in before if before[p] != after[p]} == {"hypervisor/libvirt/tune-0.xml"}


def test_a_control_character_is_named() -> None:
    plan = libvirt_plan()
    described = replace(plan, workloads=(replace(plan.workloads[0], description="a\x00b\x1b"),))
    assert messages(described, "GP053") == [
        "the description of 'tune' has characters that XML cannot hold: U+0000, U+001B"
    ]
    assert domain(described, "tune-0").findtext("description") == "a\ufffdb\ufffd"


# --- our own checker ---------------------------------------------------------------------------

Fault = tuple[str, str, str, str]
FAULTS: dict[str, Fault] = {
    # fault: (pattern, replacement, what is said of it, how often to replace, or "")
    "cells do not add up": (r"memory='452'", "memory='440'", "the cells have", "1"),
    "memory is no multiple of a page": (
        r"memory='452' unit='GiB'",
        "memory='462849' unit='MiB'",
        "cell 0 is no whole number of pages",
        "1",
    ),
    "vCPU that does not exist": (
        r"vcpu='127'",
        "vcpu='200'",
        "vCPU 200 is pinned but does not",
        "",
    ),
    "vCPU that is not pinned": (r"<vcpupin vcpu='7' [^>]*>", "", "vCPU 7 is pinned 0 times", ""),
    "vCPU pinned twice": (r"vcpu='8' cpuset", "vcpu='7' cpuset", "vCPU 7 is pinned 2 times", ""),
    "CPU that does not exist": (
        r"(vcpu='127' cpuset=)'\d+'",
        r"\1'999'",
        "not pinned to one CPU of the host: [999]",
        "",
    ),
    "CPU used twice": (r"(vcpu='2' cpuset=)'3'", r"\1'2'", "2 vCPUs share CPU 2", ""),
    "vCPU free to move": (r"(vcpu='2' cpuset=)'3'", r"\1'3-4'", "not pinned to one CPU", ""),
    "vCPU on a core of the host": (r"(vcpu='0' cpuset=)'2'", r"\1'0'", "which the host keeps", ""),
    "vCPU on a remote node": (
        r"(vcpu='0' cpuset=)'2'",
        r"\1'60'",
        "vCPU 0 runs on node 1, its memory is on node 0",
        "",
    ),
    "threads of a core torn apart": (
        r"(vcpu='1' cpuset=)'114'",
        r"\1'115'",
        "vCPUs 0 to 1 are one core of the guest, not of the host",
        "",
    ),
    "overlapping bus numbers": (r"busNr='144'", "busNr='40'", "overlap the next range", ""),
    "the same bus numbers": (r"busNr='144'", "busNr='32'", "start at the same bus number", ""),
    "GPU behind the other node's bus": (
        r"(<alias name='ua-gpu0'/>\s*<address type='pci' domain='0x0000' bus=)'0x[0-9a-f]+'",
        r"\1'0x23'",
        "gpu0 is on host node 0, the guest sees it on cell 1",
        "",
    ),
    "expander bus of the other cell": (
        r"<node>0</node>",
        "<node>1</node>",
        "gpu0 is on host node 0, the guest sees it on cell 1",
        "",
    ),
    "memory of a cell that is not bound": (
        r"<memnode cellid='1'[^>]*>",
        "",
        "the memory of cell 1 is not bound",
        "",
    ),
    "memory bound to the other node": (
        r"(cellid='1' mode='strict' nodeset=)'1'",
        r"\1'0'",
        "the memory of cell 1 is bound to node 0",
        "",
    ),
    "memory bound only if possible": (
        r"cellid='0' mode='strict'",
        "cellid='0' mode='preferred'",
        "the memory of cell 0 is not bound",
        "",
    ),
    "a cell without pages": (
        r"nodeset='0-1'/>\n    </huge",
        "nodeset='0'/>\n    </huge",
        "cells [1] have no huge",
        "",
    ),
    "small pages": (
        r"size='1' unit='GiB'",
        "size='2' unit='MiB'",
        "the host reserves pages of",
        "",
    ),
    "distances of another host": (r"value='21'", "value='20'", "is not the host's", "1"),
    "topology of another size": (r"cores='32'", "cores='31'", "the topology has not 128", ""),
    "emulator on guest cores": (
        r"(<emulatorpin cpuset=)'0,56'",
        r"\1'5'",
        "the emulator is not on",
        "",
    ),
    "emulator anywhere": (r"<emulatorpin [^>]*>", "", "the emulator is not pinned", ""),
    "emulator nowhere": (r"(<emulatorpin cpuset=)'0,56'", r"\1''", "the emulator is not on", ""),
    "I/O thread on guest cores": (
        r"(iothread='1' cpuset=)'112'",
        r"\1'60'",
        "I/O thread 1 is not on",
        "",
    ),
    "I/O thread anywhere": (
        r"<iothreadpin iothread='1'[^>]*>",
        "",
        "I/O thread 1 is not pinned",
        "",
    ),
    "I/O thread that idles": (
        r"<iothreads>1</iothreads>",
        "<iothreads>2</iothreads>",
        "I/O thread 2 serves no disk",
        "",
    ),
    "another MAC address": (
        r"(hostdev' managed='yes'>\s*<mac address=)'[^']*'",
        r"\1'52:54:00:00:00:01'",
        "nic0 has another MAC address than 52:",
        "1",
    ),
    "no MAC address": (
        r"(hostdev' managed='yes'>\s*)<mac address='[^']*'/>",
        r"\1",
        "nic0 has another MAC address than 52:",
        "1",
    ),
    "another VLAN": (r"<tag id='100'/>", "<tag id='101'/>", "nic0 is not in the VLAN", "1"),
    "no VLAN": (r"<vlan>.*?</vlan>", "", "nic0 is not in the VLAN that the plan says: 100", "1"),
    "a NIC function as a plain device": (
        r"<interface type='hostdev'(.*?)<mac.*?<address type='pci'(.*?)<vlan>.*?</vlan>(.*?)</\w+>",
        r"<hostdev mode='subsystem' type='pci'\1<source><address\2\3</hostdev>",
        "nic0 is a plain device, so that nothing sets its MAC address",
        "1",
    ),
    "a GPU that libvirt takes from the host unseen": (
        r"<hostdev mode='subsystem' type='pci' managed='no'",
        "<hostdev mode='subsystem' type='pci' managed='yes'",
        "gpu0 is managed='yes', the plan says otherwise",
        "1",
    ),
    "disk on a thread that does not exist": (
        r"iothread='1'/>\s*<source",
        "iothread='9'/><source",
        "a disk uses I/O thread 9",
        "",
    ),
    "a GPU of somebody else": (
        r"(<hostdev.*?<address domain='0x0000' bus=)'0x0f'",
        r"\1'0x77'",
        "0000:77:00.0 is passed through, which the plan does not say",
        "",
    ),
    "the same GPU twice": (
        r"(ua-gpu0.*?<address domain='0x0000' bus=)'0x10'",
        r"\1'0x0f'",
        "0000:0f:00.0 is passed through 2 times",
        "",
    ),
    "a GPU is missing": (
        r"<hostdev(?:(?!</hostdev>).)*ua-gpu3.*?</hostdev>",
        "",
        "gpu3 is missing",
        "",
    ),
    "two devices at one address": (
        r"(<alias name='ua-gpu1'/>\s*<address type='pci' domain='0x0000' bus=)'0x[0-9a-f]+'",
        r"\1'0x0a'",
        "2 devices are at PCI address 10:0.0",
        "",
    ),
    "a device on an expander bus itself": (
        r"(<alias name='ua-nvme0'/>\s*<address type='pci' domain='0x0000' bus=)'0x[0-9a-f]+'",
        r"\1'0x05'",
        "nvme0 hangs on a pcie-expander-bus",
        "",
    ),
    "a device on no bus": (
        r"(<alias name='ua-nvme0'/>\s*<address type='pci' domain='0x0000' bus=)'0x[0-9a-f]+'",
        r"\1'0x77'",
        "nvme0 is on no PCI bus",
        "",
    ),
    "emulation": (r"<domain type='kvm'", "<domain type='qemu'", "does not use KVM", ""),
    "another machine": (r"machine='q35'", "machine='pc'", "no q35 machine", ""),
    "memory that can be swapped": (r"<locked/>", "", "the memory is not locked", ""),
    "a balloon": (r"memballoon model='none'", "memballoon model='virtio'", "memory balloon", ""),
    "a video card": (r"<model type='none'/>", "<model type='vga'/>", "a video card", ""),
    "a migratable CPU": (r"migratable='off'", "migratable='on'", "claims to be migratable", ""),
    "a named CPU": (r"mode='host-passthrough'", "mode='custom'", "the CPU is not the host's", ""),
    "another name": (r"<name>big-0</name>", "<name>big-9</name>", "<name> is 'big-9'", ""),
    "less memory than planned": (r">904<", ">900<", "the plan says", ""),
    "less memory at the start": (
        r"(<currentMemory unit='GiB'>)904",
        r"\g<1>900",
        "currentMemory",
        "",
    ),
    "an entity": (r"<domain type", "<!DOCTYPE x><domain type", "document type", ""),
    "no XML": (r"</domain>", "", "not XML", ""),
    "numbers that are none": (
        r"<vcpu placement='static'>128",
        "<vcpu>many",
        "has not -1 vCPUs",
        "",
    ),
}


def seeded(name: str) -> tuple[str, VirtualMachine, Host, str]:
    """The domain of a whole host with one fault."""
    machine, host, xml = machines(plans()["whole hosts"])[0]
    pattern, replacement, said, count = FAULTS[name]
    broken = re.sub(pattern, replacement, xml, count=int(count or 0), flags=re.DOTALL)
    assert broken != xml, "the fault is not in the text"
    return broken, machine, host, said


@pytest.mark.parametrize("name", FAULTS)
def test_a_seeded_fault_is_found(name: str) -> None:
    xml, machine, host, said = seeded(name)
    found = problems(xml, machine, host)
    assert said in " | ".join(d.message for d in found)
    assert {d.rule for d in found} == {"GP054"}
    assert {d.severity for d in found} == {Severity.ERROR}


def test_an_infiniband_function_as_an_interface_is_found() -> None:
    """libvirt accepts it, and fails when the guest starts."""
    plan = plans()["infiniband"]
    machine, host, _ = machines(plan)[0]
    ethernet = files(plans()["whole hosts"])["hypervisor/libvirt/big-0.xml"]
    found = [d.message for d in problems(ethernet, machine, host, plan.fabric)]
    assert found == [
        f"big-0: nic{n} is a network interface, whose MAC address no InfiniBand card takes"
        for n in range(8)
    ]


@settings(max_examples=150)
@given(st.data())
def test_the_checker_survives_any_edit(data: Any) -> None:
    machine, host, xml = machines(libvirt_plan())[0]
    values = list(re.finditer(r"'([^']*)'|>([^<>\s]+)<", xml))
    match = data.draw(st.sampled_from(values))
    text = data.draw(
        st.sampled_from(["", "-1", "x", "0x", "99999999", "é", "0-", "1,,2", "0-9999"])
    )
    group = 1 if match.group(1) is not None else 2
    edited = xml[: match.start(group)] + text + xml[match.end(group) :]
    for problem in problems(edited, machine, host):
        assert problem.message


@pytest.mark.parametrize(
    ("written", "edited", "fault"),
    [
        (">64</vcpu>", ">99999999</vcpu>", "the topology has not 99999999 vCPUs"),
        (">1</iothreads>", ">99999999</iothreads>", "I/O thread 2 is not pinned"),
        ("cpuset='2'", "cpuset='0-99999999'", "vCPU 0 is not pinned to one CPU of the host"),
        ("cpuset='2'", "cpuset='2,99999999'", "not pinned to one CPU of the host: [2, 99999999]"),
    ],
)
def test_a_count_with_too_many_digits_is_a_fault_and_fills_no_memory(
    written: str, edited: str, fault: str
) -> None:
    machine, host, xml = machines(libvirt_plan())[0]
    assert written in xml
    said = [p.message for p in problems(xml.replace(written, edited, 1), machine, host)]
    assert any(fault in message for message in said)
    assert len(said) < 40_000


def test_the_checker_wants_the_right_host() -> None:
    machine, host, xml = machines(libvirt_plan())[0]
    (problem,) = problems(xml, machine, replace(host, name="hv-02"))
    assert problem.message == "tune-0: it is planned for hv-01, not hv-02"


def test_whole_hosts_is_a_plan_with_everything() -> None:
    """The seeded faults need a domain with cells, switches, NICs and drives."""
    placement = place_hgx(whole_hosts())
    kinds = {d.kind for m in placement.virtual_machines for d in m.devices}
    assert kinds == {"gpu", "nic", "nvme"}
    assert workload("x").isolation == "vm"
