"""The files of a guest's NoCloud seed: user-data, network-config, meta-data.

Source: docs.cloud-init.io, NoCloud and cloud-config modules; the network configuration is version
2. What must not stand in a seed (secrets, licence tokens) comes from files of the host as systemd
credentials, which QEMU hands over (systemd.io, System and Service Credentials).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from gpuplan.backends.libvirt.monitoring import shared
from gpuplan.backends.libvirt.pci import PciTree
from gpuplan.backends.libvirt.seed import join, pins, run
from gpuplan.backends.libvirt.seed.view import SeedView
from gpuplan.backends.libvirt.view import Credential
from gpuplan.engines.container import CONFIG
from gpuplan.engines.launch import Launch
from gpuplan.engines.start import RUNS
from gpuplan.plan.model import GuestImage, Host, VirtualMachine, Workload, record
from gpuplan.plan.site import JOIN_FILE, SECRETS
from gpuplan.render import commented
from gpuplan.render.checksums import sha256
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.tree import File

LICENCE = "vgpu-licence"
PACKAGES = ("ca-certificates", "curl", "gnupg", "lvm2", "podman", "qemu-guest-agent")
TITLE = "#cloud-config"
DCGM = "gpuplan-dcgm.service"
GUEST = "gpuplan-guest.service"
# At each start, before volumes are mounted: `blkid` ends with 2 where it finds nothing at all on a
# disk (its manual). cloud-init's own fs_setup makes whole disks anew whenever the seed changes.
FORMAT = """\
udevadm settle
for name; do
    disk="/dev/disk/by-id/virtio-$name"
    have=0
    blkid -p "$disk" >/dev/null || have=$?
    test "$have" -ne 2 || mkfs.ext4 -q -L "$name" "$disk"
done
"""


@record
class Scene:
    """A guest on a host with an image: its devices' places, how its engine starts, and `nccl`, the
    topology that NCCL reads."""

    machine: VirtualMachine
    host: Host
    workload: Workload
    pci: PciTree
    launch: Launch
    nccl: str

    @property
    def image(self) -> GuestImage:
        if self.host.image is None:
            raise ValueError(f"{self.host.name} has no image")
        return self.host.image


def seed(scene: Scene) -> Iterator[File]:
    """The three files, by their names in the seed."""
    machine, user = scene.machine, user_data(scene)
    meta = {"instance-id": f"{machine.name}-{sha256(user.encode())[:12]}"}
    meta["local-hostname"] = machine.name
    yield File("user-data", user)
    yield File("meta-data", commented.dumps(meta, {}))
    yield File("network-config", commented.dumps(network(machine, scene.host), {}))


def credentials(
    stack: str, machine: VirtualMachine, host: Host, workload: Workload
) -> Iterator[Credential]:
    """The files of the host whose contents the guest gets, each under a name of its own."""
    names = [s.name if s.store == "config" else f"{s.name}.{s.key}" for s in workload.secrets]
    if any(d.kind == "vgpu" for d in machine.devices):
        names.append(LICENCE)
    if host.join is not None:
        names.append(JOIN_FILE)
    for name in dict.fromkeys(names):
        yield Credential(
            name=f"opt/io.systemd.credentials/{name}", file=f"{SECRETS}/{stack}/{name}"
        )


def user_data(scene: Scene) -> str:
    machine, image = scene.machine, scene.image
    tree: dict[str, Any] = {
        "hostname": machine.name,
        "ssh_pwauth": False,
        "package_update": True,
        "packages": [*PACKAGES, pins.HEADERS[image.system]],
    }
    if image.keys:
        tree["ssh_authorized_keys"] = list(image.keys)
    volumes = [d.name for d in machine.disks if d.name != "root"]
    if volumes:
        tree["bootcmd"] = [["sh", "-c", FORMAT, "sh", *volumes]]
        tree["mounts"] = [_mount(name) for name in volumes]
    tree["write_files"] = list(_files(scene))
    tree["runcmd"] = list(_commands(scene))
    return f"{TITLE}\n{commented.dumps(tree, {})}"


def _commands(scene: Scene) -> Iterator[str | list[str]]:
    """What ends the first start, and that after a change; it ends with the first that fails, so
    that `cloud-init status` tells. Units may run already, with what the seed before said."""
    engine = f"gpuplan-{scene.workload.name}.service"
    late = [*(() if shared(scene.machine) else (DCGM,)), engine]
    yield "set -e"
    yield ["sh", "/usr/local/sbin/gpuplan-install"]
    yield ["systemctl", "daemon-reload"]
    yield ["systemctl", "enable", "--now", "qemu-guest-agent", "serial-getty@ttyS0.service"]
    if scene.host.join is not None:
        yield ["sh", join.INSTALL]
        yield ["systemctl", "enable", GUEST, join.UNIT]
        yield ["systemctl", "restart", GUEST, join.UNIT]
        return
    yield ["systemctl", "enable", GUEST, "gpuplan-health.timer", *late]
    yield ["systemctl", "restart", GUEST, "gpuplan-health.timer"]
    yield ["systemctl", "restart", "--no-block", *late]


def _mount(name: str) -> list[str]:
    options = "defaults,nofail,x-systemd.device-timeout=10min"
    return [f"/dev/disk/by-id/virtio-{name}", f"{run.FOLDERS}/{name}", "ext4", options, "0", "2"]


def _files(scene: Scene) -> Iterator[dict[str, Any]]:
    view, joined = view_of(scene), scene.host.join
    for path, (syntax, template) in TEMPLATES.items():
        if template == "dcgm.service" and view.has_vgpus:
            continue
        if joined is not None and template in ENGINE:
            continue
        target = path.replace("WORKLOAD", scene.workload.name)
        mode = "0755" if target.startswith("/usr/") else "0644"
        yield _file(target, render(syntax, f"libvirt/guest/{template}.j2", guest=view), mode)
    for path, text in () if joined is None else join.files(scene.machine, joined):
        yield _file(path, text, "0755" if path.startswith("/usr/") else "0644")
    yield _file(run.NCCL, scene.nccl)
    for name, text in scene.launch.files:
        yield _file(f"{CONFIG}/{name}", text)


def _file(path: str, text: str, mode: str = "0644") -> dict[str, Any]:
    return {"path": path, "permissions": mode, "content": text}


TEMPLATES: dict[str, tuple[Any, str]] = {
    "/etc/apt/preferences.d/60-gpuplan": ("text", "preferences"),
    "/usr/local/sbin/gpuplan-install": ("shell", "install.sh"),
    "/usr/local/sbin/gpuplan-guest": ("shell", "guest.sh"),
    "/usr/local/sbin/gpuplan-health": ("shell", "health.sh"),
    "/usr/local/sbin/gpuplan-WORKLOAD": ("shell", "run.sh"),
    "/etc/systemd/system/gpuplan-guest.service": ("conf", "guest.service"),
    "/etc/systemd/system/gpuplan-dcgm.service": ("conf", "dcgm.service"),
    "/etc/systemd/system/gpuplan-health.service": ("conf", "health.service"),
    "/etc/systemd/system/gpuplan-health.timer": ("conf", "health.timer"),
    "/etc/systemd/system/gpuplan-WORKLOAD.service": ("conf", "run.service"),
}


# What starts an engine and looks after it, which a cluster does by itself.
ENGINE = ("health.sh", "run.sh", "dcgm.service", "health.service", "health.timer", "run.service")


def view_of(scene: Scene) -> SeedView:
    machine, host, workload = scene.machine, scene.host, scene.workload
    pci, launch, system = scene.pci, scene.launch, scene.image.system
    vgpus = [d for d in machine.devices if d.kind == "vgpu"]
    gpus = [d for d in machine.devices if d.kind == "gpu"]
    limits = {d.address: d.power_limit_watts for d in host.devices}
    limited = "gpu-power" in host.settings
    first = run.before(workload, machine, launch)
    return SeedView(
        workload=workload.name,
        dcgm=f"{pins.DCGM.packages[0]}:{pins.DCGM.version}",
        driver=pins.DRIVER.version,
        driver_packages=" ".join(pins.DRIVER.packages),
        toolkit=pins.TOOLKIT.version,
        cuda_repository=f"{pins.CUDA_REPOSITORY}/{pins.CUDA_FOLDER[system]}",
        toolkit_repository=pins.TOOLKIT_REPOSITORY,
        has_vgpus=bool(vgpus),
        gpus=len(vgpus) + len(gpus),
        limits=tuple(
            f"{pci.buses[d.name]}={watts:g}"
            for d in gpus
            if limited and (watts := limits.get(d.address))
        ),
        scratch=tuple(
            f"/dev/disk/by-path/pci-{pci.buses[d.name]}-nvme-1"
            for d in machine.devices
            if d.kind == "nvme"
        ),
        has_scratch=any(d.kind == "nvme" for d in machine.devices),
        secrets=tuple(
            Credential(
                name=s.environment, file=s.name if s.store == "config" else f"{s.name}.{s.key}"
            )
            for s in workload.secrets
        ),
        has_before=bool(first),
        before=Verbatim(run.line(first)),
        command=Verbatim(run.line(run.words(workload, machine, launch))),
        ends=workload.task in RUNS,
        mounts=tuple(f"{run.FOLDERS}/{d.name}" for d in machine.disks if d.name != "root"),
        has_mounts=len(machine.disks) > 1,
        has_port=launch.port is not None,
        port=launch.port or 0,
        has_health=launch.health is not None,
        health=f"http://localhost:{launch.port}{launch.health}",
    )


def network(machine: VirtualMachine, host: Host) -> dict[str, Any]:
    """The bridge's interface asks for an address; functions of network cards have none of their
    own. An InfiniBand function is told apart by nothing that is known before it starts."""
    mtus = {d.address: d.mtu for d in host.devices}
    ethernets: dict[str, Any] = {"bridge": {"match": {"macaddress": machine.mac}, "dhcp4": True}}
    for device in machine.devices:
        if device.kind == "nic" and device.mac:
            mtu = mtus.get(device.parent or "")
            ethernets[device.name] = {
                "match": {"macaddress": device.mac},
                "optional": True,
                "dhcp4": False,
                **({"mtu": mtu} if mtu else {}),
            }
    return {"version": 2, "ethernets": ethernets}
