"""One host of the plan → its configuration: kernel line, pages, CPUs, devices, vGPUs."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence

from gpuplan.backends.libvirt.domain import is_mediated, mediated_uuid
from gpuplan.backends.libvirt.nics import nics
from gpuplan.backends.libvirt.settings import host_settings
from gpuplan.backends.libvirt.versions import requirements
from gpuplan.backends.libvirt.view import (
    DiskToMake,
    Function,
    Guest,
    HostView,
    Mediated,
    Need,
    NodeCpus,
    NodePages,
    Parent,
    Passed,
)
from gpuplan.plan.model import Disk, Host, PciDevice, VirtualMachine
from gpuplan.render.environments import Verbatim
from gpuplan.render.markdown import code
from gpuplan.units import GIB, KIB, format_bytes, format_ranges

NODES = "/sys/devices/system/node"


def host_view(host: Host, machines: Sequence[VirtualMachine], *, infiniband: bool) -> HostView:
    """The view of `host`, which runs `machines`; `infiniband` says what its NICs are."""
    page = host.hugepage_bytes // KIB
    attached = [d for m in machines for d in m.devices]
    mediated = tuple(_mediated(machines))
    parents = tuple(_parents(host, machines))
    whole = [d for d in attached if d.kind in ("gpu", "nvme", "function")]
    passed = tuple(sorted(d.address for d in whole))
    cards = tuple(nics(host, machines, infiniband=infiniband))
    has_vgpus = bool(parents or mediated)
    settings = host_settings(host, machines)
    kernel_line = " ".join(host.kernel_parameters)
    return HostView(
        name=host.name,
        kernel_line=kernel_line,
        kernel_code=Verbatim(code(kernel_line)),
        nodes=tuple(
            NodeCpus(
                path=f"{NODES}/node{n.node}/cpulist",
                cpus=format_ranges(cpu for core in n.cores for cpu in core.cpus),
            )
            for n in host.numa_nodes
            if n.cores
        ),
        pages=tuple(
            NodePages(
                node=n.node,
                count=n.hugepages,
                path=f"{NODES}/node{n.node}/hugepages/hugepages-{page}kB/nr_hugepages",
            )
            for n in host.numa_nodes
        ),
        housekeeping_cpus=format_ranges(
            cpu for n in host.numa_nodes for core in n.reserved_cores for cpu in core.cpus
        ),
        bound_at_boot=tuple(
            _passed(host, d.address)
            for d in sorted(whole, key=lambda d: d.address)
            if d.kind != "nvme"
        ),
        passed_through_codes=tuple(Verbatim(code(address)) for address in passed),
        parents=parents,
        mediated=mediated,
        has_vgpus=has_vgpus,
        nics=cards,
        is_infiniband=infiniband,
        has_vfio=bool(passed or cards),
        has_fabric=any(m.fabric_partition is not None for m in machines),
        settings=settings,
        has_image=host.image is not None,
        image=host.image.path if host.image else "",
        image_sha256=host.image.sha256 if host.image else "",
        units=("gpuplan-hugepages", *(("gpuplan-settings",) if settings.has_program else ())),
        guests=tuple(
            Guest(
                name=m.name,
                devices=tuple(_devices(host, m)),
                has_partition=m.fabric_partition is not None,
                partition=m.fabric_partition,
            )
            for m in machines
        ),
        requirements=tuple(
            Need(
                program=r.program,
                version=r.version,
                purpose=r.purpose,
                call=Verbatim(r.command),
                call_code=Verbatim(code(r.command)),
            )
            for r in requirements(machines)
        ),
        disks=tuple(_to_make(host, m, d) for m in machines for d in m.disks),
    )


def _devices(host: Host, machine: VirtualMachine) -> Iterator[Passed]:
    """What `machine` gets of the host: devices as a whole, and the NICs of its functions."""
    for device in machine.devices:
        if device.kind in ("gpu", "nvme", "function"):
            yield _passed(host, device.address)
    for address in dict.fromkeys(d.parent for d in machine.devices if d.kind == "nic"):
        yield _passed(host, address or "")


def _passed(host: Host, address: str) -> Passed:
    device = next(d for d in host.devices if d.address == address)
    vendor, _, number = (device.pci_id or "").partition(":")
    return Passed(
        kind="shared-nic" if device.kind == "nic" and device.shared else device.kind,
        address=address,
        has_id=device.pci_id is not None,
        pci_id=device.pci_id or "",
        vendor=f"0x{vendor}",
        device=f"0x{number}",
        serial=device.serial or "",
    )


def _to_make(host: Host, machine: VirtualMachine, disk: Disk) -> DiskToMake:
    folder, _, name = disk.source.rpartition("/")
    group = folder.removeprefix("/dev/")
    block = group != folder
    filled = host.image is not None and disk.name == "root"
    if block and "/" not in group:
        kind = "copy" if filled else "volume"
    else:
        kind = "other" if block else ("overlay" if filled else "file")
    made = Verbatim("`gpuplan-disks make`") if host.image is not None else _made_with(disk)
    return DiskToMake(
        path_code=Verbatim(code(disk.source)),
        size=format_bytes(disk.size_bytes),
        command_code=made if kind != "other" else Verbatim("your storage"),
        path=disk.source,
        kib=disk.size_bytes // KIB,
        guest=machine.name,
        name=name,
        group=group if block else "",
        kind=kind,
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
    shared = [(m, d) for m in machines for d in m.devices if d.kind == "vgpu" and d.parent]
    for gpu in host.devices:
        functions = tuple(
            Function(address=d.address, guest=m.name, vgpu_type=d.vgpu_type or "")
            for m, d in shared
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
                    guest=machine.name,
                    parent=device.address,
                    vgpu_type=device.vgpu_type or "",
                )
