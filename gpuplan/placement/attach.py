"""A guest's devices: its GPUs, the NIC functions near them, drives for its scratch space.

Guests of a replica that spans hosts get one NIC function a GPU: on the GPU's own PCIe switch, else
on its NUMA node, else anywhere with a finding.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from gpuplan.diagnostics import Diagnostic
from gpuplan.placement.choose import mediated
from gpuplan.placement.free import Choice, HostState, Pick
from gpuplan.placement.guests import Guest
from gpuplan.placement.inventory import Slot
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
    """The NIC to take a function from: same switch, then same node, then the least used one."""
    nics = [s for s in state.site.of("nic") if state.network_functions[s.device.address]]

    def distance(nic: Slot) -> tuple[int, int, str]:
        used = len(nic.functions) - len(state.network_functions[nic.device.address])
        return _steps(gpu, nic), used, nic.device.address

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
    """Drives of the guest's nodes for its scratch space, if its part of the drives is enough."""
    near = [d for d in state.drives if d.device.numa_node in choice.nodes]
    total = [d for d in state.site.of("nvme") if d.device.numa_node in choice.nodes]
    gpus = sum(state.nodes[n].gpus for n in choice.nodes) * guest.per_gpu
    allowed = near[: len(total) * guest.gpus // max(1, gpus)]
    taken: list[Slot] = []
    while allowed and sum(d.size_bytes for d in taken) < guest.scratch_bytes:
        taken.append(allowed.pop(0))
    if not taken or sum(d.size_bytes for d in taken) < guest.scratch_bytes:
        return
    for number, drive in enumerate(taken):
        state.drives.remove(drive)
        yield GuestDevice(
            name=f"nvme{number}",
            kind="nvme",
            address=drive.device.address,
            cell=choice.nodes.index(drive.device.numa_node),
            group=first_group + number,
            managed=True,
        )
