"""What a guest is told at its first start, held against cloud-init's own schema, a shell, systemd
and a person's reading; and how its disks are made."""

from __future__ import annotations

import json
import os
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gpuplan.backends.libvirt import emit
from gpuplan.plan.model import Disk, GuestImage, Plan, SecretRef, Volume
from gpuplan.units import GIB, MIB
from tests.support.hypervisor_plans import plans
from tests.support.require import require
from tests.tools.libvirtd import TRIXIE

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIBd5oQqNBGTwmU8cLC6fqgKkb0Vho0GfFYgGYBLBFDXG me"
IMAGE = GuestImage(
    path="/srv/images/debian-13.qcow2", sha256="a" * 64, system="debian-13", keys=(KEY,)
)
PLANS = ("whole hosts", "infiniband", "vgpu", "mig", "uneven")
SECRETS = (SecretRef(environment="HF_TOKEN", store="config", name="hfToken", key="HF_TOKEN"),)


def imaged(name: str, **workload: Any) -> Plan:
    plan = plans()[name]
    return replace(
        plan,
        hosts=tuple(replace(h, image=IMAGE) for h in plan.hosts),
        workloads=tuple(replace(w, **workload) for w in plan.workloads),
    )


def seeds(plan: Plan) -> dict[str, dict[str, str]]:
    """Each guest's seed: its files by name."""
    found: dict[str, dict[str, str]] = {}
    for file in emit(plan).files:
        if "/seeds/" in file.path:
            _, _, place = file.path.partition("/seeds/")
            guest, _, name = place.partition("/")
            found.setdefault(guest, {})[name] = file.text
    return found


def tree(text: str) -> Any:
    return YAML(typ="safe").load(text)


def written(seed: dict[str, str]) -> dict[str, str]:
    """The files that a guest gets."""
    return {f["path"]: f["content"] for f in tree(seed["user-data"])["write_files"]}


@pytest.mark.hypervisor
@pytest.mark.parametrize("root", [Path("/"), TRIXIE], ids=["cloud-init 22", "cloud-init 25"])
@pytest.mark.parametrize("name", PLANS)
def test_cloud_init_takes_each_seed(name: str, root: Path, tmp_path: Path) -> None:
    if not (root / "usr/bin/cloud-init").exists():
        require("hypervisor", "cloud-init is not installed (see tests/tools/hypervisor-setup)")
    judge = (*(() if root == Path("/") else ("chroot", root)), "cloud-init", "schema")

    def judged(text: str) -> subprocess.CompletedProcess[str]:
        with tempfile.NamedTemporaryFile("w", encoding="utf-8", dir=root / "tmp") as file:
            file.write(text)
            file.flush()
            words = [*judge, "--config-file", f"/tmp/{Path(file.name).name}"]
            return subprocess.run(words, capture_output=True, text=True, check=False)

    plan = imaged(name, secrets=SECRETS)
    assert seeds(plan).keys() == {m.name for m in plan.virtual_machines}
    kinds = {tuple(sorted(tree(s["user-data"]))): s for s in seeds(plan).values()}
    for seed in kinds.values():
        done = judged(seed["user-data"])
        assert done.returncode == 0, done.stdout + done.stderr
        assert "deprecat" not in (done.stdout + done.stderr).lower()
    wrong = judged(seed["user-data"].replace("permissions:", "permisions:"))
    assert "permisions" in wrong.stdout + wrong.stderr


@pytest.mark.hypervisor
@pytest.mark.parametrize("name", PLANS)
def test_scripts_and_units_of_a_guest_are_sound(name: str, tmp_path: Path) -> None:
    if shutil.which("systemd-analyze") is None:
        require("hypervisor", "systemd-analyze is not installed (see tests/tools/hypervisor-setup)")
    seed = next(iter(seeds(imaged(name, secrets=SECRETS)).values()))
    for path, text in written(seed).items():
        copy = tmp_path / Path(path).name
        copy.write_text(text, "utf-8")
        if text.startswith("#!"):
            subprocess.run(["sh", "-n", copy], check=True)
    for unit in [*tmp_path.glob("*.service"), *tmp_path.glob("*.timer")]:
        done = subprocess.run(
            ["systemd-analyze", "verify", "--man=no", "--recursive-errors=no", unit],
            capture_output=True,
            text=True,
            check=False,
        )
        mine = [line for line in done.stderr.splitlines() if unit.name in line]
        assert [line for line in mine if "is not executable" not in line] == []


def test_the_engine_gets_the_arguments_that_its_sizing_computed(tmp_path: Path) -> None:
    plan = imaged("vgpu", secrets=SECRETS)
    files = written(seeds(plan)["svc-0"])
    run = files["/usr/local/sbin/gpuplan-svc"]
    program = tmp_path / "podman"
    program.write_text('#!/bin/sh\nprintf "%s\\n" "$@" >"$OUT"\nenv >>"$OUT"\n')
    program.chmod(0o755)
    (tmp_path / "HF_TOKEN").write_text("hunter2")
    environment = {
        "PATH": f"{tmp_path}:{os.environ['PATH']}",
        "OUT": str(tmp_path / "out"),
        "CREDENTIALS_DIRECTORY": str(tmp_path),
    }
    subprocess.run(["sh", "-c", run], env=environment, check=True)
    words = (tmp_path / "out").read_text().splitlines()
    serving = next(w.serving for w in plan.workloads if w.name == "svc")
    assert serving is not None
    assert f"--max-num-seqs={serving.max_num_seqs}" in words
    assert json.loads(words[words.index("--entrypoint") + 1]) == ["vllm", "serve"]
    assert any(w.startswith("docker.io/vllm/vllm-openai:") for w in words)
    assert "HF_TOKEN=hunter2" in words, "from systemd's credential, in the environment alone"
    assert words.count("NCCL_TOPO_FILE=/etc/gpuplan/nccl-topo.xml") == 1
    assert files["/etc/gpuplan/nccl-topo.xml"].startswith("<system")


def with_volume() -> Plan:
    plan = imaged("vgpu")
    volume = Volume(
        name="models",
        size_bytes=GIB,
        storage_class=None,
        shared=False,
        mount_path="/models",
        purpose="models",
    )
    disk = Disk(name="models", source="/dev/vg0/models", size_bytes=GIB)
    return replace(
        plan,
        workloads=tuple(replace(w, volumes=(volume,)) for w in plan.workloads),
        virtual_machines=tuple(replace(m, disks=(*m.disks, disk)) for m in plan.virtual_machines),
    )


@pytest.mark.hypervisor
def test_an_empty_volume_is_formatted_and_any_other_is_left_as_it_is(tmp_path: Path) -> None:
    """At each start, and when the seed changes, which is when cloud-init's own fs_setup formats."""
    seed = seeds(with_volume())["svc-0"]
    user = tree(seed["user-data"])
    assert "fs_setup" not in user
    (command,) = user["bootcmd"]
    disk = tmp_path / "virtio-models"
    words = [w.replace("/dev/disk/by-id", str(tmp_path)) for w in command]
    (tmp_path / "udevadm").write_text("#!/bin/sh\n")
    (tmp_path / "udevadm").chmod(0o755)
    environment = {"PATH": f"{tmp_path}:/usr/sbin:/sbin:{os.environ['PATH']}"}

    def started() -> bytes:
        subprocess.run(words, env=environment, check=True)
        return disk.read_bytes()

    disk.write_bytes(bytes(16 * MIB))
    first = started()
    assert first[1024 + 0x38 : 1024 + 0x3A] == b"\x53\xef", "ext4's own mark"
    assert started() == first
    for other in (["mkswap", disk], ["mkfs.ext4", "-qFL", "other", disk]):
        disk.write_bytes(bytes(16 * MIB))
        subprocess.run(other, env=environment, check=True, capture_output=True)
        theirs = disk.read_bytes()
        assert started() == theirs, other


def test_an_engine_waits_for_its_volumes_and_a_failed_step_ends_the_start() -> None:
    seed = seeds(with_volume())["svc-0"]
    unit = written(seed)["/etc/systemd/system/gpuplan-svc.service"]
    assert "RequiresMountsFor= /srv/models\n" in unit
    commands = tree(seed["user-data"])["runcmd"]
    assert commands[0] == "set -e"
    assert commands[-1][:3] == ["systemctl", "restart", "--no-block"]
    assert commands[-1][-1] == "gpuplan-svc.service"


def test_secrets_and_the_licence_are_references() -> None:
    plan = imaged("mig", secrets=SECRETS)
    texts = {f.path: f.text for f in emit(plan).files}
    domain = texts["hypervisor/libvirt/mig-0.xml"]
    for name in ("hfToken", "vgpu-licence"):
        entry = f"name='opt/io.systemd.credentials/{name}' file='/etc/gpuplan/secrets/rack/{name}'"
        assert entry in domain
    files = written(seeds(plan)["mig-0"])
    assert "LoadCredential=HF_TOKEN:hfToken\n" in files["/etc/systemd/system/gpuplan-mig.service"]
    assert "LoadCredential=vgpu-licence\n" in files["/etc/systemd/system/gpuplan-guest.service"]
    assert (
        "vgpu-licence"
        not in written(seeds(imaged("whole hosts"))["big-0"])[
            "/etc/systemd/system/gpuplan-guest.service"
        ]
    )


def test_whole_gpus_get_a_pinned_driver_and_shared_ones_the_image_s() -> None:
    pins = written(seeds(imaged("whole hosts"))["big-0"])["/etc/apt/preferences.d/60-gpuplan"]
    assert "Pin: version 580.126.20-*" in pins
    assert "Pin: version 1.19.1-*" in pins
    shared = written(seeds(imaged("mig"))["mig-0"])
    assert "580.126.20" not in shared["/etc/apt/preferences.d/60-gpuplan"]
    assert "the image has no vGPU driver" in shared["/usr/local/sbin/gpuplan-install"]


def test_drives_are_the_scratch_space_and_functions_need_no_address() -> None:
    plan = imaged("whole hosts")
    host = plan.hosts[0]
    devices = tuple(replace(d, mtu=4200) if d.kind == "nic" else d for d in host.devices)
    plan = replace(plan, hosts=(replace(host, devices=devices), *plan.hosts[1:]))
    seed = seeds(plan)["big-0"]
    checks = {f.path: f.text for f in emit(plan).files}["hypervisor/libvirt/big-0.checks.json"]
    drives = [d["bus"] for d in json.loads(checks)["devices"] if d["kind"] == "nvme"]
    guest = written(seed)["/usr/local/sbin/gpuplan-guest"]
    paths = [f"/dev/disk/by-path/pci-{bus}-nvme-1" for bus in drives]
    assert f"scratch {shlex.join(paths)}\n" in guest
    network = tree(seed["network-config"])["ethernets"]
    machine = plan.virtual_machines[0]
    assert network["bridge"] == {"match": {"macaddress": machine.mac}, "dhcp4": True}
    assert network["nic0"]["mtu"] == 4200
    assert network["nic0"]["optional"] is True
    assert len(network) == 1 + sum(d.kind == "nic" for d in machine.devices)


def test_a_changed_seed_is_another_instance() -> None:
    """cloud-init runs again for one, at the guest's next start."""
    first = tree(seeds(imaged("mig"))["mig-0"]["meta-data"])
    other = tree(seeds(imaged("mig", secrets=()))["mig-0"]["meta-data"])
    assert first["instance-id"] != other["instance-id"]
    assert first["local-hostname"] == "mig-0"


def test_a_host_without_an_image_is_said_to_start_nothing() -> None:
    assert not seeds(plans()["mig"])
    said = [d.message for d in emit(plans()["mig"]).diagnostics]
    assert any("nothing installs 'mig' in its VMs" in text for text in said)
    assert not any("nothing installs" in d.message for d in emit(imaged("mig")).diagnostics)


# --- disks -------------------------------------------------------------------------------------

DISKS = "hypervisor/host/{}/usr/local/sbin/gpuplan-disks"


def disks(tmp_path: Path, verb: str, *, have: str = "a" * 64) -> subprocess.CompletedProcess[str]:
    """The script on a machine whose programs only say what they were asked."""
    plan = imaged("mig")
    machine = plan.virtual_machines[0]
    files = (
        replace(machine.disks[0], name="root", source=str(tmp_path / "guests/root")),
        replace(machine.disks[0], name="data", source="/dev/vg0/mig-0-data"),
    )
    plan = replace(plan, virtual_machines=(replace(machine, disks=files),))
    image = tmp_path / "image"
    image.touch()
    plan = replace(
        plan, hosts=tuple(replace(h, image=replace(IMAGE, path=str(image))) for h in plan.hosts)
    )
    texts = {f.path: f.text for f in emit(plan).files}
    script = texts[DISKS.format("hv-01")].replace("/var/lib/gpuplan", str(tmp_path))
    (tmp_path / "bin").mkdir(exist_ok=True)
    (tmp_path / "guests").mkdir(exist_ok=True)
    folder = tmp_path / "seeds/mig-0"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "user-data").touch()
    log = f'echo "${{0##*/}} $*" >>{tmp_path}/log'
    for name, text in {
        "sha256sum": f"echo {have} image",
        "qemu-img": log,
        "lvcreate": log,
        "xorriso": f"{log}; touch {tmp_path}/seeds/mig-0.new",
    }.items():
        program = tmp_path / "bin" / name
        program.write_text(f"#!/bin/sh\n{text}\n")
        program.chmod(0o755)
    environment = {"PATH": f"{tmp_path}/bin:{os.environ['PATH']}"}
    command = ["sh", "-c", script, "sh", verb]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_disks_are_made_of_the_image_and_seeds_beside_them(tmp_path: Path) -> None:
    assert disks(tmp_path, "make").stderr == ""
    lines = (tmp_path / "log").read_text().splitlines()
    assert lines[0].startswith(f"qemu-img create -q -f qcow2 -F qcow2 -b {tmp_path}/image ")
    assert lines[1].startswith("lvcreate --yes --wipesignatures y --size ")
    assert lines[1].endswith(" --name mig-0-data vg0")
    assert "-volid CIDATA" in lines[2]
    assert (tmp_path / "seeds/mig-0.iso").exists()


def test_a_disk_that_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "guests").mkdir()
    (tmp_path / "guests/root").write_text("data")
    assert disks(tmp_path, "make").returncode == 0
    assert "qemu-img" not in (tmp_path / "log").read_text()


def test_what_is_gone_is_shown(tmp_path: Path) -> None:
    """Logical volumes are not made here: `lvcreate` is a stand-in."""
    volume, root = "+ /dev/vg0/mig-0-data", f"+ {tmp_path}/guests/root"
    seed = tmp_path / "seeds/mig-0.iso"
    gone = disks(tmp_path, "diff")
    assert gone.returncode == 1
    assert set(gone.stdout.splitlines()) == {root, volume, f"+ {seed}"}
    (tmp_path / "guests/root").write_text("data")
    assert disks(tmp_path, "make").returncode == 0
    assert disks(tmp_path, "diff").stdout.splitlines() == [volume]
    seed.unlink()
    assert disks(tmp_path, "diff").stdout.splitlines() == [volume, f"+ {seed}"]


def test_another_image_is_refused(tmp_path: Path) -> None:
    done = disks(tmp_path, "make", have="b" * 64)
    assert done.returncode == 1
    assert "has the checksum bbbb" in done.stderr
    assert not (tmp_path / "log").exists()


# --- monitoring --------------------------------------------------------------------------------


def scraped(plan: Plan) -> dict[str, set[str]]:
    text = next(f.text for f in emit(plan).files if f.path.endswith("prometheus.yaml"))
    return {
        job["job_name"].removeprefix("rack-"): {
            t for s in job["static_configs"] for t in s["targets"]
        }
        for job in tree(text)["scrape_configs"]
    }


def test_metrics_of_gpus_are_where_their_driver_is() -> None:
    whole = scraped(imaged("whole hosts"))
    assert whole["dcgm"] == {"big-0:9400", "big-1:9400"}
    unit = "/etc/systemd/system/gpuplan-dcgm.service"
    assert unit in written(seeds(imaged("whole hosts"))["big-0"])
    mig = imaged("mig")
    hosts = {h.name for h in mig.hosts}
    assert scraped(mig)["dcgm"] == {f"{host}:9400" for host in hosts}
    assert scraped(mig)["libvirt"] == {f"{host}:9177" for host in hosts}
    assert unit not in written(seeds(mig)["mig-0"])
    assert "svc-0:8000" in scraped(imaged("vgpu"))["engines"]


@pytest.mark.hypervisor
@pytest.mark.parametrize("name", PLANS)
def test_prometheus_takes_its_configuration(name: str, tmp_path: Path) -> None:
    program = shutil.which("promtool")
    if program is None:
        require("hypervisor", "promtool is not installed (see tests/tools/hypervisor-setup)")
    text = next(f.text for f in emit(imaged(name)).files if f.path.endswith("prometheus.yaml"))
    path = tmp_path / "prometheus.yml"
    path.write_text(text, "utf-8")
    done = subprocess.run(
        [program or "", "check", "config", path], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
