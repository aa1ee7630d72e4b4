"""One host of the plan → its configuration: kernel line, pages, CPUs, devices, vGPUs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from gpuplan.backends.libvirt.domain import is_mediated, mediated_uuid
from gpuplan.backends.libvirt.nics import nics
from gpuplan.backends.libvirt.view import (
    DiskToMake,
    Function,
    Guest,
    HostView,
    Installed,
    Mediated,
    NodePages,
    Parent,
    Setup,
)
from gpuplan.plan.model import Disk, Host, PciDevice, VirtualMachine
from gpuplan.render.checksums import sha256
from gpuplan.render.environments import Syntax, Verbatim, render
from gpuplan.render.markdown import code
from gpuplan.render.tree import File
from gpuplan.units import GIB, KIB, format_bytes, format_ranges

FOLDER = "hypervisor/host"


def host_view(host: Host, machines: Sequence[VirtualMachine], *, infiniband: bool) -> HostView:
    """The view of `host`, which runs `machines`; `infiniband` says what its NICs are."""
    page = host.hugepage_bytes // KIB
    attached = [d for m in machines for d in m.devices]
    mediated = tuple(_mediated(machines))
    parents = tuple(_parents(host, machines))
    passed = tuple(sorted(d.address for d in attached if d.kind in ("gpu", "nvme")))
    cards = tuple(nics(host, machines, infiniband=infiniband))
    has_vgpus = bool(parents or mediated)
    units = ["gpuplan-hugepages", *(["gpuplan-nics"] if cards else [])]
    kernel_line = " ".join(host.kernel_parameters)
    return HostView(
        name=host.name,
        kernel_line=kernel_line,
        kernel_code=Verbatim(code(kernel_line)),
        pages=tuple(
            NodePages(
                node=n.node,
                count=n.hugepages,
                path=f"/sys/devices/system/node/node{n.node}/hugepages/hugepages-{page}kB/nr_hugepages",
            )
            for n in host.numa_nodes
        ),
        housekeeping_cpus=format_ranges(
            cpu for n in host.numa_nodes for core in n.reserved_cores for cpu in core.cpus
        ),
        passed_through=passed,
        passed_through_codes=tuple(Verbatim(code(address)) for address in passed),
        parents=parents,
        mediated=mediated,
        has_vgpus=has_vgpus,
        nics=cards,
        is_infiniband=infiniband,
        has_vfio=bool(passed or cards),
        has_fabric=any(m.fabric_partition is not None for m in machines),
        units=(*units, *(["gpuplan-vgpus"] if has_vgpus else [])),
        guests=tuple(
            Guest(
                name=m.name,
                has_partition=m.fabric_partition is not None,
                partition=m.fabric_partition,
            )
            for m in machines
        ),
        disks=tuple(
            DiskToMake(
                path_code=Verbatim(code(d.source)),
                size=format_bytes(d.size_bytes),
                command_code=_made_with(d),
            )
            for m in machines
            for d in m.disks
        ),
    )


def _made_with(disk: Disk) -> Verbatim:
    """The command that makes `disk`: a logical volume or a file."""
    folder, _, name = disk.source.rpartition("/")
    group = folder.removeprefix("/dev/")
    whole = disk.size_bytes % GIB == 0
    size = f"{disk.size_bytes // GIB}G" if whole else f"{disk.size_bytes // KIB}K"
    if group != folder and "/" not in group:
        words = ["lvcreate", "--size", size.lower(), "--name", name, group]
    elif not disk.source.startswith("/dev/"):
        words = ["qemu-img", "create", "-f", "raw", disk.source, size]
    else:
        return Verbatim("your storage")
    return Verbatim(code(shlex.join(words)))


def _parents(host: Host, machines: Sequence[VirtualMachine]) -> Iterator[Parent]:
    """The GPUs that guests share by virtual functions, each with those functions."""
    shared = [d for m in machines for d in m.devices if d.kind == "vgpu" and d.parent]
    for gpu in host.devices:
        functions = tuple(
            Function(address=d.address, vgpu_type=d.vgpu_type or "")
            for d in shared
            if d.parent == gpu.address
        )
        if functions:
            yield Parent(
                address=gpu.address,
                has_layout=bool(gpu.instances),
                layout=_layout(gpu),
                functions=functions,
            )


def _layout(gpu: PciDevice) -> str:
    """`3g.40gb:4,1g.10gb:0`: profile and start, in creation order (`nvidia-smi mig -cgi`)."""
    return ",".join(f"{i.profile}:{i.start}" for i in gpu.instances)


def _mediated(machines: Sequence[VirtualMachine]) -> Iterator[Mediated]:
    for machine in machines:
        for device in machine.devices:
            if is_mediated(device):
                yield Mediated(
                    uuid=mediated_uuid(machine, device),
                    parent=device.address,
                    vgpu_type=device.vgpu_type or "",
                )


# Every file that a host may need, by its path there.
TEMPLATES: dict[str, tuple[Syntax, str]] = {
    "/etc/default/grub.d/60-gpuplan.cfg": ("shell", "grub.cfg"),
    "/etc/modules-load.d/gpuplan-vfio.conf": ("conf", "modules.conf"),
    "/etc/systemd/system.conf.d/60-gpuplan.conf": ("conf", "system.conf"),
    "/etc/systemd/system/gpuplan-hugepages.service": ("conf", "hugepages.service"),
    "/etc/systemd/system/gpuplan-nics.service": ("conf", "nics.service"),
    "/etc/systemd/system/gpuplan-vgpus.service": ("conf", "vgpus.service"),
    "/etc/udev/rules.d/60-gpuplan-vfio.rules": ("conf", "vfio.rules"),
    "/usr/local/sbin/gpuplan-nics": ("shell", "nics.sh"),
    "/usr/local/sbin/gpuplan-vgpus": ("shell", "vgpus.sh"),
}
PROGRAMS = "/usr/"


def _absent(view: HostView) -> Iterator[str]:
    """The files that the host does not need."""
    needed = {
        "modules-load": view.has_vfio,
        "rules": bool(view.passed_through),
        "gpuplan-nics": bool(view.nics),
        "gpuplan-vgpus": view.has_vgpus,
    }
    for path in TEMPLATES:
        if any(part in path and not wanted for part, wanted in needed.items()):
            yield path


def host_files(view: HostView) -> Iterator[File]:
    """The host's files, below a folder that mirrors its root; what puts them to work; a page."""
    folder = f"{FOLDER}/{view.name}"
    stale = tuple(_absent(view))
    texts = {
        path: render(syntax, f"libvirt/host/{template}.j2", host=view)
        for path, (syntax, template) in TEMPLATES.items()
        if path not in stale
    }
    for path, text in texts.items():
        yield File(f"{folder}{path}", text, executable=path.startswith(PROGRAMS))
    setup = Setup(
        files=tuple(
            Installed(path=path, sha256=sha256(text.encode())) for path, text in texts.items()
        ),
        stale=stale,
        programs=tuple(path for path in texts if path.startswith(PROGRAMS)),
        units=tuple(f"{unit}.service" for unit in view.units),
    )
    script = render("shell", "libvirt/host/setup.sh.j2", host=view, setup=setup)
    yield File(f"{folder}/setup.sh", script, executable=True)
    yield File(f"{folder}/README.md", render("markdown", "libvirt/host/README.md.j2", host=view))
