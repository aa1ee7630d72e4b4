"""One host of the plan → its configuration: kernel line, pages, CPUs, devices, vGPUs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.backends.libvirt.domain import is_mediated, mediated_uuid, ranges
from gpuplan.backends.libvirt.view import (
    DiskToMake,
    Function,
    Guest,
    HostView,
    Mediated,
    NodePages,
    Parent,
)
from gpuplan.plan.model import Host, PciDevice, VirtualMachine
from gpuplan.render.environments import Syntax, Verbatim, render
from gpuplan.render.markdown import code
from gpuplan.render.tree import File
from gpuplan.units import KIB, format_bytes

FOLDER = "hypervisor/host"


def host_view(host: Host, machines: Sequence[VirtualMachine]) -> HostView:
    """The view of `host`, which runs `machines`."""
    page = host.hugepage_bytes // KIB
    attached = [d for m in machines for d in m.devices]
    mediated = tuple(_mediated(machines))
    parents = tuple(_parents(host, machines))
    passed = tuple(sorted(d.address for d in attached if d.kind in ("gpu", "nvme")))
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
        housekeeping_cpus=ranges(
            cpu for n in host.numa_nodes for core in n.reserved_cores for cpu in core.cpus
        ),
        passed_through=passed,
        passed_through_codes=tuple(Verbatim(code(address)) for address in passed),
        parents=parents,
        mediated=mediated,
        has_vgpus=bool(parents or mediated),
        has_fabric=any(m.fabric_partition is not None for m in machines),
        guests=tuple(
            Guest(
                name=m.name,
                has_partition=m.fabric_partition is not None,
                partition=m.fabric_partition,
            )
            for m in machines
        ),
        disks=tuple(
            DiskToMake(path=Verbatim(code(d.source)), size=format_bytes(d.size_bytes))
            for m in machines
            for d in m.disks
        ),
    )


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


def host_files(view: HostView) -> Iterator[File]:
    """The host's files, below a folder that mirrors its root."""
    folder = f"{FOLDER}/{view.name}"

    def file(path: str, syntax: Syntax, template: str, *, executable: bool = False) -> File:
        text = render(syntax, f"libvirt/host/{template}.j2", host=view)
        return File(f"{folder}/{path}", text, executable=executable)

    yield file("README.md", "markdown", "README.md")
    yield file("etc/default/grub.d/60-gpuplan.cfg", "shell", "grub.cfg")
    yield file("etc/systemd/system/gpuplan-hugepages.service", "conf", "hugepages.service")
    yield file("etc/systemd/system.conf.d/60-gpuplan.conf", "conf", "system.conf")
    if view.passed_through:
        yield file("etc/modules-load.d/gpuplan-vfio.conf", "conf", "modules.conf")
        yield file("etc/udev/rules.d/60-gpuplan-vfio.rules", "conf", "vfio.rules")
    if view.has_vgpus:
        yield file("usr/local/sbin/gpuplan-vgpus", "shell", "vgpus.sh", executable=True)
        yield file("etc/systemd/system/gpuplan-vgpus.service", "conf", "vgpus.service")
