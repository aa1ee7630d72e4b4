"""A guest's devices: its GPUs, the NIC functions near them, drives for its scratch space.

Guests of a replica that spans hosts get one NIC function a GPU: on the GPU's own PCIe switch, else
on its NUMA node, else anywhere with a finding.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from gpuplan.diagnostics import Diagnostic
from gpuplan.placement.machines.choose import mediated
from gpuplan.placement.machines.free import Choice, HostState, Pick
from gpuplan.placement.machines.guests import Guest
from gpuplan.placement.machines.inventory import Slot
from gpuplan.placement.machines.sets import companions
from gpuplan.placement.problems import far_device, missing_fact, no_network_function
from gpuplan.plan.model import GuestDevice

FAR = 2


@dataclass(slots=True)
class MacAddresses:
    """Locally administered addresses from names; a second name for one address gets another one."""

    used: set[str] = field(default_factory=set)

    def of(self, identity: uuid.UUID, device: str) -> str:
        attempt = 0
        while True:
            digest = uuid.uuid5(identity, f"{device}#{attempt}" if attempt else device).bytes
            mac = ":".join(f"{b:02x}" for b in (0x52, *digest[:5]))
            if mac not in self.used:
                self.used.add(mac)
                return mac
            attempt += 1


def attach(
    state: HostState, guest: Guest, choice: Choice, identity: uuid.UUID, macs: MacAddresses
) -> tuple[tuple[GuestDevice, ...], tuple[Diagnostic, ...]]:
    """All devices of `guest`, taken from `state`, and what is not as near as it should be. Devices
    of one `group` share a PCIe switch on the host and in the guest."""
    devices: list[GuestDevice] = []
    problems: list[Diagnostic] = []
    for number, pick in enumerate(choice.picks):
        devices.append(_gpu(guest, choice, number, pick))
        if guest.between_hosts:
            found = _nearest(state, pick.slot)
            if found is None:
                problems += _without_function(state, guest, pick)
                continue
            function = _function(state, choice, devices[-1], found)
            devices.append(replace(function, mac=macs.of(identity, function.name)))
            if _steps(pick.slot, found) == FAR:
                near, far = pick.slot.device.address, found.device.address
                problems.append(far_device(guest.name, far, near, found.origin))
    devices += _drives(state, guest, choice, len(choice.picks) * 2)
    return tuple(devices), tuple(problems)


def _gpu(guest: Guest, choice: Choice, number: int, pick: Pick) -> GuestDevice:
    device = pick.slot.device
    bars = guest.gpu.bar_bytes
    return GuestDevice(
        name=f"gpu{number}",
        kind="vgpu" if guest.vgpu else "gpu",
        address=pick.function or device.address,
        parent=device.address if guest.vgpu and not mediated(guest) else None,
        cell=choice.nodes.index(device.numa_node),
        group=number,
        managed=guest.vgpu is None,
        vgpu_type=guest.vgpu.name if guest.vgpu else None,
        bar_bytes=int(bars.value) if bars and not guest.vgpu else None,
    )


def _nearest(state: HostState, gpu: Slot) -> Slot | None:
    """The NIC to take a function from: same switch, then same node, then the one of which another
    function gets most, or that has the fewest in use where not every rate is known."""
    nics = [s for s in state.site.of("nic") if state.network_functions[s.device.address]]
    known = all(nic.bytes_per_s for nic in nics)

    def distance(nic: Slot) -> tuple[int, float, str]:
        users = 1 + len(nic.functions) - len(state.network_functions[nic.device.address])
        rate = nic.bytes_per_s if known and nic.bytes_per_s else 1.0
        return _steps(gpu, nic), users / rate, nic.device.address

    return min(nics, key=distance, default=None)


def _steps(gpu: Slot, nic: Slot) -> int:
    """0 on one switch, 1 on one NUMA node, else `FAR`."""
    if gpu.device.switch is not None and gpu.device.switch == nic.device.switch:
        return 0
    return 1 if gpu.device.numa_node == nic.device.numa_node else FAR


def _function(state: HostState, choice: Choice, gpu: GuestDevice, nic: Slot) -> GuestDevice:
    """A function of `nic` beside `gpu`, still without its MAC address."""
    node = nic.device.numa_node
    near = gpu.group if _steps(_slot(choice, gpu), nic) == 0 else gpu.group + len(choice.picks)
    return GuestDevice(
        name=f"nic{gpu.group}",
        kind="nic",
        address=state.network_functions[nic.device.address].pop(0),
        parent=nic.device.address,
        cell=choice.nodes.index(node) if node in choice.nodes else gpu.cell,
        group=near,
        managed=True,
        vlan=nic.vlan,
    )


def _slot(choice: Choice, gpu: GuestDevice) -> Slot:
    return choice.picks[gpu.group].slot


def _without_function(state: HostState, guest: Guest, pick: Pick) -> Iterator[Diagnostic]:
    counted = [s for s in state.site.of("nic") if s.unlisted_functions]
    if counted:
        yield missing_fact(
            "the address of each virtual function",
            f"network between the hosts of '{guest.workload.name}'",
            counted[0].origin.child("virtual_functions"),
            "write the list of addresses (`ls -l /sys/bus/pci/devices/ADDRESS/virtfn*`)",
        )
    else:
        gpu = pick.slot.device.address
        yield no_network_function(guest.name, gpu, guest.workload.origin)


def _drives(
    state: HostState, guest: Guest, choice: Choice, first_group: int
) -> Iterator[GuestDevice]:
    """The drives in its GPUs' IOMMU groups, and of its nodes' drives as many as its scratch space
    takes, if its part of them is enough."""
    taken = [s for s in state.drives if not guest.vgpu and _comes_along(state, choice, s)]
    total = [d for d in state.site.of("nvme") if d.device.numa_node in choice.nodes]
    gpus = sum(state.nodes[n].gpus for n in choice.nodes) * guest.per_gpu
    part = len(total) * guest.gpus // max(1, gpus)
    wanted = guest.scratch_bytes - sum(d.size_bytes for d in taken)
    taken += _scratch(_near(state, choice), part - len(taken), wanted)
    for number, drive in enumerate(taken):
        state.drives.remove(drive)
        yield GuestDevice(
            name=f"nvme{number}",
            kind="nvme",
            address=drive.device.address,
            cell=choice.nodes.index(drive.device.numa_node)
            if drive.device.numa_node in choice.nodes
            else 0,
            group=first_group + number,
            managed=True,
        )


def _comes_along(state: HostState, choice: Choice, drive: Slot) -> bool:
    return any(pick.slot in companions(state, drive) for pick in choice.picks)


def _near(state: HostState, choice: Choice) -> list[tuple[Slot, ...]]:
    """The free drives of the guest's nodes, those on its GPUs' switches first. Drives of one IOMMU
    group are one; a group with another device is not for scratch space."""
    found: dict[str, tuple[Slot, ...]] = {}
    for drive in state.drives:
        group = (drive, *companions(state, drive))
        if drive.device.numa_node in choice.nodes and all(s in state.drives for s in group):
            key = min(s.device.address for s in group)
            found.setdefault(key, group)
    steps = {
        key: min(_steps(p.slot, s) for p in choice.picks for s in group)
        for key, group in found.items()
    }
    return [found[key] for key in sorted(found, key=steps.__getitem__)]


def _scratch(groups: Sequence[tuple[Slot, ...]], most: int, wanted: int) -> list[Slot]:
    """The first of `groups` that hold `wanted` bytes, or none if more than `most` drives would."""
    taken: list[Slot] = []
    for group in groups:
        if sum(d.size_bytes for d in taken) < wanted and len(taken) + len(group) <= most:
            taken += group
    return taken if sum(d.size_bytes for d in taken) >= wanted else []
