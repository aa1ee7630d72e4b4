"""What the libvirt backend has to say: one constructor a message.

GP051 not expressed by these files · GP052 the guest's address space · GP053 a text that was
changed · GP054 a fault in a domain's XML.
"""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.diagnostics import Diagnostic, error, note, warning
from gpuplan.plan.model import VirtualMachine, Workload
from gpuplan.source import Origin
from gpuplan.units import format_bytes


def no_migration(workload: Workload) -> Diagnostic:
    return note(
        "GP051",
        f"VMs of '{workload.name}' own their devices, so they cannot be migrated live",
        workload.origin,
        help="plan a restart of the workload for each maintenance of a host",
    )


def no_guest_setup(workload: Workload) -> Diagnostic:
    names = ", ".join(s.environment for s in workload.secrets)
    secrets = f", nor puts {names} there" if names else ""
    return warning(
        "GP051",
        f"nothing installs '{workload.name}' in its VMs{secrets}: only the machines are described",
        workload.origin,
        help="name a cloud image in the inventory (hypervisor.image), or write an image with the "
        "driver, the engine and the start command to each root disk",
    )


def joined(workload: Workload, kind: str, server: str) -> Diagnostic:
    return note(
        "GP051",
        f"VMs of '{workload.name}' become nodes of {server} ({kind}), whose scheduler starts work "
        "there: their own engine is not started",
        workload.origin,
        help="compile the workload for that cluster, or take 'join' out of the inventory",
    )


def volume_without_disk(workload: Workload, volume: str) -> Diagnostic:
    return warning(
        "GP051",
        f"volume '{volume}' of '{workload.name}' is no disk: several VMs share it",
        workload.origin,
        help="mount it in the guests from a network file system",
    )


def no_vlan(workload: Workload, vlans: Sequence[int]) -> Diagnostic:
    numbers = ", ".join(map(str, vlans))
    return warning(
        "GP051",
        f"VMs of '{workload.name}' are not in VLAN {numbers}: InfiniBand has no VLANs",
        workload.origin,
        help="have the subnet manager put the GUIDs that the hosts' READMEs list into a partition",
    )


def foreign_architecture(host: str, vendor: str, origin: Origin | None) -> Diagnostic:
    return error(
        "GP051",
        f"host '{host}' has {vendor} CPUs; only x86 guests are described",
        origin,
        help="take the host out of the inventory",
    )


def too_many_cpus(machine: VirtualMachine, count: int) -> Diagnostic:
    return error(
        "GP051",
        f"{machine.name} has {count} vCPUs; more than 255 need a virtual IOMMU, which is not "
        "described",
        machine.origin,
        help="use fewer cores per GPU",
    )


def too_many_buses(machine: VirtualMachine) -> Diagnostic:
    return error(
        "GP052",
        f"the devices of {machine.name} need more PCI buses than a guest has",
        machine.origin,
        help="use fewer devices in one VM",
    )


def small_address_space(machine: VirtualMachine, needed: int) -> Diagnostic:
    bits = machine.physical_address_bits
    return error(
        "GP052",
        f"{machine.name} needs a window of {format_bytes(needed)} for its GPUs' memory, which does "
        f"not fit beside {format_bytes(machine.memory_bytes)} of memory in {bits} address bits",
        machine.origin,
        help="use fewer GPUs in one VM, or hosts with more physical address bits",
    )


def unknown_address_space(machine: VirtualMachine, needed: int) -> Diagnostic:
    return warning(
        "GP052",
        f"it is not known whether {machine.name} has room for {format_bytes(needed)} of GPU memory "
        "windows",
        machine.origin,
        help="state the host's 'physical_address_bits'",
    )


def text_changed(workload: Workload, characters: Sequence[str]) -> Diagnostic:
    listed = ", ".join(f"U+{ord(c):04X}" for c in characters)
    return warning(
        "GP053",
        f"the description of '{workload.name}' has characters that XML cannot hold: {listed}",
        workload.origin,
        help="they are shown as U+FFFD; remove them from the manifest",
    )


def fault(machine: VirtualMachine, message: str) -> Diagnostic:
    return error("GP054", f"{machine.name}: {message}", machine.origin)
