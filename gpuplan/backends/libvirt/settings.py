"""The settings of a host beside what its guests own: interrupts, memory balancing, power, the turns
that guests take on a GPU, address translation of network cards.

Sources: Linux, Documentation/admin-guide/kernel-parameters.txt (irqaffinity) and
Documentation/admin-guide/sysctl/kernel.rst (numa_balancing); irqbalance(1),
IRQBALANCE_BANNED_CPULIST; NVIDIA's vGPU documentation, RmPVMRL; NVIDIA, "Optimizing VM
Configuration for AI Inference", ATS and ACS configuration (read 2026-11-23).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.backends.libvirt.view import CardPath, HostSettings, PoweredGpu
from gpuplan.plan.model import Host, PciDevice, VirtualMachine
from gpuplan.plan.site import HOST_SETTINGS
from gpuplan.render.environments import Verbatim
from gpuplan.render.markdown import code
from gpuplan.units import format_ranges


def host_settings(host: Host, machines: Sequence[VirtualMachine]) -> HostSettings:
    """What `host` sets for `machines`, without what its inventory leaves as it is."""
    shared = _shared(host, machines)
    powered = tuple(map(_powered, shared)) if "gpu-power" in host.settings else ()
    paths = tuple(_paths(machines)) if "ats" in host.settings else ()
    given = [cpu for n in host.numa_nodes for c in n.cores for cpu in c.cpus]
    kept = {cpu for n in host.numa_nodes for c in n.reserved_cores for cpu in c.cpus}
    return HostSettings(
        has_irqs="irqs" in host.settings,
        guests_cpus=format_ranges(cpu for cpu in given if cpu not in kept),
        no_numa_balancing="numa-balancing" in host.settings,
        has_scheduler="vgpu-scheduler" in host.settings
        and any(not gpu.instances for gpu in shared),
        gpus=powered,
        has_gpus=bool(powered),
        paths=paths,
        has_paths=bool(paths),
        has_program=bool(powered or paths),
        left=tuple(Verbatim(code(s)) for s in left(host)),
    )


def left(host: Host) -> tuple[str, ...]:
    """The settings that the inventory leaves as they are."""
    return tuple(s for s in HOST_SETTINGS if s not in host.settings)


def _shared(host: Host, machines: Sequence[VirtualMachine]) -> list[PciDevice]:
    """The GPUs that the host's own driver keeps: those that guests share."""
    shared = {d.parent or d.address for m in machines for d in m.devices if d.kind == "vgpu"}
    return [d for d in host.devices if d.address in shared]


def _powered(gpu: PciDevice) -> PoweredGpu:
    limit = gpu.power_limit_watts
    return PoweredGpu(address=gpu.address, watts=f"{limit:g}" if limit else "")


def _paths(machines: Sequence[VirtualMachine]) -> Iterator[CardPath]:
    """Each card with a function in a guest beside a GPU that is on one switch with it."""
    seen: set[tuple[str, str]] = set()
    for machine in machines:
        gpus = {d.group: d.address for d in machine.devices if d.kind == "gpu"}
        for nic in (d for d in machine.devices if d.kind == "nic" and d.group in gpus):
            pair = nic.parent or nic.address, gpus[nic.group]
            if pair not in seen:
                seen.add(pair)
                card, gpu = pair
                yield CardPath(card=card, gpu=gpu)
