"""A guest's devices: its GPUs, the NIC functions near them, drives for its scratch space.

Where there is a fabric, guests get one NIC function a whole GPU: on the GPU's own PCIe switch (its
rail), else on its NUMA node, else anywhere with a finding.
"""

from __future__ import annotations

import uuid
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, field, replace

from gpuplan.diagnostics import Diagnostic
from gpuplan.placement.machines.guests import Guest
from gpuplan.placement.machines.hypervisors import HostDevice
from gpuplan.placement.machines.sets import companions
from gpuplan.placement.machines.state import GpuChoice, HostState, Pick
from gpuplan.placement.problems import kept_by_host, missing_fact
from gpuplan.plan.model import GuestDevice
from gpuplan.sharing.partitions import mediated

FAR = 2
ROUNDING = 1 + 1e-9


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
    state: HostState,
    guest: Guest,
    choice: GpuChoice,
    identity: uuid.UUID,
    macs: MacAddresses,
    *,
    former: Sequence[GuestDevice] = (),
) -> tuple[tuple[GuestDevice, ...], tuple[Diagnostic, ...]]:
    """All devices of `guest`, taken from `state`, and what it lacks. Devices
    of one `group` share a PCIe switch on the host and in the guest. `former` are those that it has
    on this host already."""
    devices: list[GuestDevice] = []
    problems: list[Diagnostic] = []
    for number, pick in enumerate(choice.picks):
        devices.append(_gpu(guest, choice, number, pick))
        if guest.networked:
            kept = _kept_function(state, devices[-1], former)
            card = _card(state, kept) if kept else _nearest(state, guest, pick.gpu)
            if card is None:
                problems += _without_function(state, guest)
                continue
            address = kept.address if kept else state.network_functions[card.address][0]
            state.network_functions[card.address].remove(address)
            function = _function(choice, devices[-1], card, address)
            devices.append(replace(function, mac=macs.of(identity, function.name)))
    devices += _drives(state, guest, choice, len(choice.picks) * 2, former)
    if guest.vgpu is None:
        devices += _functions(state, choice, len(choice.picks) * 2 + len(devices))
    problems += _of_the_host(state, guest, choice, devices)
    return tuple(devices), tuple(problems)


def _gpu(guest: Guest, choice: GpuChoice, number: int, pick: Pick) -> GuestDevice:
    bars = guest.gpu.bar_bytes
    return GuestDevice(
        name=f"gpu{number}",
        kind="vgpu" if guest.vgpu else "gpu",
        address=pick.function or pick.gpu.address,
        parent=pick.gpu.address if guest.vgpu and not mediated(guest.gpu) else None,
        cell=choice.nodes.index(pick.gpu.node),
        group=number,
        managed=False,
        vgpu_type=guest.vgpu.name if guest.vgpu else None,
        bar_bytes=int(bars.value) if bars and not guest.vgpu else None,
    )


def _nearest(state: HostState, guest: Guest, gpu: HostDevice) -> HostDevice | None:
    """The NIC to take a function from: on the GPU's node before others, of those one that still
    carries what the function is to have, then same switch, then the one of which another function
    gets most, or that has the fewest in use where not every rate is known."""
    nics = [d for d in state.hypervisor.of("nic") if state.network_functions.get(d.address)]
    known = all(nic.bytes_per_s for nic in nics)
    wanted = port_rate(state, guest)

    def distance(nic: HostDevice) -> tuple[bool, bool, int, float, str]:
        users = 1 + len(nic.functions) - len(state.network_functions[nic.address])
        rate = nic.bytes_per_s if known and nic.bytes_per_s else 1.0
        full = bool(wanted and nic.bytes_per_s and users * wanted > nic.bytes_per_s * ROUNDING)
        steps = _steps(gpu, nic)
        return steps == FAR, full, steps, users / rate, nic.address

    return min(nics, key=distance, default=None)


def port_rate(state: HostState, guest: Guest) -> float | None:
    """What a function beside each GPU is to carry, as it was sized: the fabric's rate, or each
    GPU's part of all cards of the host."""
    if guest.port_bytes_per_s is None:
        return None
    rates = [nic.bytes_per_s for nic in state.hypervisor.of("nic")]
    if not rates or not all(rates):
        return guest.port_bytes_per_s
    part = sum(rate or 0.0 for rate in rates) / len(state.gpus)
    return min(guest.port_bytes_per_s, part)


def _steps(gpu: HostDevice, nic: HostDevice) -> int:
    """0 on one switch, 1 on one NUMA node, else `FAR`."""
    if gpu.device.switch is not None and gpu.device.switch == nic.device.switch:
        return 0
    return 1 if gpu.node == nic.node else FAR


def _kept_function(
    state: HostState, gpu: GuestDevice, former: Sequence[GuestDevice]
) -> GuestDevice | None:
    """The function that the guest has beside `gpu` already, if that is the same GPU and nobody took
    the function."""
    before = {d.name: d for d in former}
    device = before.get(f"nic{gpu.group}")
    if device is None or gpu.address != before[gpu.name].address:
        return None
    free = state.network_functions.get(device.parent or "", ())
    return device if device.address in free else None


def _card(state: HostState, function: GuestDevice) -> HostDevice:
    return next(d for d in state.hypervisor.of("nic") if d.address == function.parent)


def _function(choice: GpuChoice, gpu: GuestDevice, nic: HostDevice, address: str) -> GuestDevice:
    """The function of `nic` at `address`, beside `gpu`, still without its MAC address."""
    beside = choice.picks[gpu.group].gpu
    near = gpu.group if _steps(beside, nic) == 0 else gpu.group + len(choice.picks)
    return GuestDevice(
        name=f"nic{gpu.group}",
        kind="nic",
        address=address,
        parent=nic.address,
        cell=choice.nodes.index(nic.node) if nic.node in choice.nodes else gpu.cell,
        group=near,
        managed=True,
        vlan=nic.vlan,
    )


def _without_function(state: HostState, guest: Guest) -> Iterator[Diagnostic]:
    counted = [d for d in state.hypervisor.of("nic") if d.unlisted_functions]
    if counted and guest.between_hosts:
        yield missing_fact(
            "the address of each virtual function",
            f"network between the hosts of '{guest.workload.name}'",
            counted[0].origin.child("virtual_functions"),
            "write the list of addresses (`ls -l /sys/bus/pci/devices/ADDRESS/virtfn*`)",
        )


def _drives(
    state: HostState,
    guest: Guest,
    choice: GpuChoice,
    first_group: int,
    former: Sequence[GuestDevice],
) -> Iterator[GuestDevice]:
    """The drives in its GPUs' IOMMU groups, and of its nodes' drives as many as its scratch space
    takes, if its part of them is enough."""
    taken = [d for d in state.drives if not guest.vgpu and _comes_along(state, choice, d)]
    total = [d for d in state.hypervisor.of("nvme") if d.free and d.node in choice.nodes]
    gpus = sum(state.nodes[n].gpus for n in choice.nodes) * guest.per_gpu
    part = len(total) * guest.gpus // max(1, gpus)
    wanted = guest.scratch_bytes - sum(d.size_bytes for d in taken)
    taken += _scratch(_near(state, choice, {d.address for d in former}), part - len(taken), wanted)
    for number, drive in enumerate(taken):
        state.drives.remove(drive)
        yield GuestDevice(
            name=f"nvme{number}",
            kind="nvme",
            address=drive.address,
            cell=choice.nodes.index(drive.node) if drive.node in choice.nodes else 0,
            group=first_group + number,
            managed=False,
        )


def _functions(state: HostState, choice: GpuChoice, first_group: int) -> Iterator[GuestDevice]:
    """The other functions in the IOMMU groups of its GPUs."""
    beside = (d for pick in choice.picks for d in companions(state, pick.gpu))
    along = dict.fromkeys(d.address for d in beside if d.device.kind == "function")
    nodes = {d.address: d.node for d in state.hypervisor.devices}
    for number, address in enumerate(along):
        node = nodes[address]
        yield GuestDevice(
            name=f"function{number}",
            kind="function",
            address=address,
            cell=choice.nodes.index(node) if node in choice.nodes else 0,
            group=first_group + number,
            managed=False,
        )


def _of_the_host(
    state: HostState, guest: Guest, choice: GpuChoice, devices: Sequence[GuestDevice]
) -> Iterator[Diagnostic]:
    """The drives and cards that the host keeps where `guest` has less than it should."""
    sizes = {d.address: d.size_bytes for d in state.hypervisor.of("nvme")}
    for device in state.hypervisor.devices:
        kind = device.device.kind
        drive = (
            kind == "nvme" and sum(sizes.get(d.address, 0) for d in devices) < guest.scratch_bytes
        )
        lacking = (drive and device.node in choice.nodes) or (kind == "nic" and guest.networked)
        if lacking and not device.free:
            yield kept_by_host(kind, device.address, device.in_use, device.origin)


def _comes_along(state: HostState, choice: GpuChoice, drive: HostDevice) -> bool:
    return any(pick.gpu in companions(state, drive) for pick in choice.picks)


def _near(
    state: HostState, choice: GpuChoice, former: Collection[str]
) -> list[tuple[HostDevice, ...]]:
    """The free drives of the guest's nodes: its `former` ones first, then those on its GPUs'
    switches. Drives of one IOMMU group are one; a group with another device is not for scratch
    space."""
    groups: dict[str, tuple[HostDevice, ...]] = {}
    for drive in state.drives:
        group = (drive, *companions(state, drive))
        if drive.node in choice.nodes and all(d in state.drives for d in group):
            groups.setdefault(min(d.address for d in group), group)

    def steps(group: tuple[HostDevice, ...]) -> tuple[bool, int]:
        new = any(d.address not in former for d in group)
        return new, min(_steps(p.gpu, d) for p in choice.picks for d in group)

    return sorted(groups.values(), key=steps)


def _scratch(groups: Sequence[tuple[HostDevice, ...]], most: int, wanted: int) -> list[HostDevice]:
    """The first of `groups` that hold `wanted` bytes, or none if more than `most` drives would."""
    taken: list[HostDevice] = []
    for group in groups:
        if sum(d.size_bytes for d in taken) < wanted and len(taken) + len(group) <= most:
            taken += group
    return taken if sum(d.size_bytes for d in taken) >= wanted else []
