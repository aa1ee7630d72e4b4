"""Which GPUs of a host a guest may have, best first.

On an NVSwitch board only whole fabric partitions count: GPUs of one NUMA node come first, then the
partition that breaks up the fewest bigger ones. Elsewhere `sets` says what is best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.catalog.model import FabricPartition
from gpuplan.placement.machines.free import Choice, GpuState, HostState, Pick
from gpuplan.placement.machines.guests import Guest
from gpuplan.placement.machines.sets import bundles, companions, sets
from gpuplan.plan.model import Shortfall
from gpuplan.sharing.fabric import fabric_partitions
from gpuplan.sharing.mig import layout


def choices(state: HostState, guest: Guest) -> Iterator[Choice]:
    """Sets of GPUs for `guest`, best first; cores and memory are not looked at."""
    if not state.admits(guest):
        return
    if guest.vgpu is not None:
        yield from _shared(state, guest)
        return
    board = board_of(state, guest)
    free = [g for g in _typed(state, guest) if not g.users]
    if not board:
        yield from (_choice(gpus) for gpus in sets(state, free, guest.gpus))
        return
    free = [gpu for bundle in bundles(state, free) for gpu in bundle]
    if all(g.slot.module_id is not None for g in _typed(state, guest)):
        found = _fabric(free, board, guest.gpus)
    else:
        found = _unnumbered(state, free, board, guest.gpus)
    yield from (choice for choice in found if _whole(state, choice))


def board_of(state: HostState, guest: Guest) -> tuple[FabricPartition, ...]:
    return fabric_partitions(guest.gpu, len(_typed(state, guest)))


def gpu_shortfall(state: HostState, guest: Guest) -> Shortfall:
    """How many GPUs (or parts of GPUs) of the wanted type a host has left, in numbers."""
    typed = _typed(state, guest)
    parts = guest.per_gpu
    free = sum(_room(g, guest) if guest.vgpu else not g.users for g in typed)
    capacity = len(typed) * parts
    used = capacity - free if state.admits(guest) else capacity
    return Shortfall(
        resource=guest.vgpu.name if guest.vgpu else guest.gpu.identifier,
        requested=guest.gpus,
        used=used,
        capacity=capacity,
        unit="1",
    )


def _typed(state: HostState, guest: Guest) -> list[GpuState]:
    return [g for g in state.gpus.values() if g.slot.device.model == guest.gpu.identifier]


def _fabric(
    free: Sequence[GpuState], board: tuple[FabricPartition, ...], count: int
) -> Iterator[Choice]:
    modules = {g.slot.module_id: g for g in free if g.slot.module_id is not None}
    whole = [p for p in board if modules.keys() >= set(p.modules)]
    fitting = [
        (_choice([modules[m] for m in p.modules], p.number), p)
        for p in whole
        if len(p.modules) == count
    ]
    fitting.sort(key=lambda item: (len(item[0].nodes), _broken(item[1], whole), item[1].number))
    yield from (choice for choice, _ in fitting)


def _unnumbered(
    state: HostState, free: Sequence[GpuState], board: tuple[FabricPartition, ...], count: int
) -> Iterator[Choice]:
    """Without module numbers only the whole board and single GPUs are certain to be partitions."""
    whole = next(p for p in board if len(p.modules) == max(len(q.modules) for q in board))
    if count == len(whole.modules) == len(free):
        yield _choice(free, whole.number)
    elif count == 1:
        yield from (_choice(gpus) for gpus in sets(state, free, 1))


def _whole(state: HostState, choice: Choice) -> bool:
    """Whether a partition of the board holds each of its GPUs' IOMMU groups whole."""
    taken = {pick.slot.device.address for pick in choice.picks}
    others = (o for pick in choice.picks for o in companions(state, pick.slot))
    return all(o.device.kind != "gpu" or o.device.address in taken for o in others)


def _broken(chosen: FabricPartition, whole: Sequence[FabricPartition]) -> int:
    """Free partitions that are bigger than `chosen` and lose a GPU to it."""
    return sum(
        len(p.modules) > len(chosen.modules) and bool(set(p.modules) & set(chosen.modules))
        for p in whole
    )


def _choice(gpus: Sequence[GpuState], partition: int | None = None) -> Choice:
    ordered = sorted(gpus, key=lambda g: (g.slot.device.numa_node, g.slot.device.address))
    return Choice(picks=tuple(Pick(slot=g.slot) for g in ordered), partition=partition)


def _shared(state: HostState, guest: Guest) -> Iterator[Choice]:
    """vGPUs of one type; the fullest GPU first, so that others stay whole."""
    open_gpus = [g for g in _typed(state, guest) if _room(g, guest)]
    open_gpus.sort(key=lambda g: (_room(g, guest), g.slot.device.numa_node))
    by_node: dict[int, list[Pick]] = {}
    for gpu in open_gpus:
        picks = by_node.setdefault(gpu.slot.device.numa_node, [])
        picks.extend(Pick(slot=gpu.slot, function=function) for function in _functions(gpu, guest))
    for _, picks in sorted(by_node.items(), key=lambda item: (len(item[1]), item[0])):
        if len(picks) >= guest.gpus:
            yield Choice(picks=tuple(picks[: guest.gpus]))
    spread = [pick for picks in by_node.values() for pick in picks]
    if len(by_node) > 1 and len(spread) >= guest.gpus:
        yield Choice(picks=tuple(spread[: guest.gpus]))
    if guest.gpus == 1:
        yield from (Choice(picks=(_pick(gpu, guest),)) for gpu in open_gpus[1:])


def _pick(gpu: GpuState, guest: Guest) -> Pick:
    return Pick(slot=gpu.slot, function=_functions(gpu, guest)[0])


def _room(gpu: GpuState, guest: Guest) -> int:
    """How many more vGPUs of the guest's type the GPU takes: one tenant where the isolation says
    so, one function each."""
    tenant = guest.workload.tenant
    for user in gpu.users:
        alone = "gpu" in (user.workload.isolation, guest.workload.isolation)
        if alone and user.workload.tenant != tenant:
            return 0
    return len(_functions(gpu, guest))


def _functions(gpu: GpuState, guest: Guest) -> list[str]:
    """The addresses to attach: free virtual functions, one for each vGPU that still has room; where
    there are none, the GPU itself, of which the vGPU is a mediated device."""
    room = _instances(gpu, guest)
    if mediated(guest):
        return [gpu.slot.device.address] * room
    return gpu.free_functions[:room]


def _instances(gpu: GpuState, guest: Guest) -> int:
    """How many more vGPUs of the guest's type: time-sliced ones are all of one type, those on MIG
    instances of any that a legal layout holds."""
    assert guest.vgpu is not None
    if all(u.vgpu and u.vgpu.name == guest.vgpu.name for u in gpu.users):
        return guest.vgpu.maximum - len(gpu.users)
    there, mine = [u.profile for u in gpu.users], guest.profile
    known = [p for p in there if p is not None]
    if mine is None or len(known) < len(there):
        return 0
    counts = range(guest.vgpu.maximum, 0, -1)
    return next((n for n in counts if layout([*known, *[mine] * n]) is not None), 0)


def mediated(guest: Guest) -> bool:
    """Whether the guest's vGPUs are mediated devices of the GPU, and not virtual functions."""
    host = guest.gpu.vgpu_host
    return host is not None and host.interface == "mediated-device"
