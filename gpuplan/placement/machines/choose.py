"""Which GPUs of a host a guest may have, best first.

On an NVSwitch board only whole fabric partitions count: GPUs of one NUMA node come first, then the
partition that breaks up the fewest bigger ones. Elsewhere `sets` says what is best.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from gpuplan.catalog.model import FabricPartition
from gpuplan.placement.machines.guests import Guest
from gpuplan.placement.machines.sets import bundles, companions, sets
from gpuplan.placement.machines.state import GpuChoice, GpuState, HostState, Pick
from gpuplan.plan.isolation import share_a_gpu
from gpuplan.plan.model import Shortfall
from gpuplan.sharing.fabric import fabric_partitions, on_modules
from gpuplan.sharing.partitions import mediated, room_for, takes_turns


def choices(state: HostState, guest: Guest) -> Iterator[GpuChoice]:
    """Sets of GPUs for `guest`, best first; cores and memory are not looked at."""
    if not state.admits(guest):
        return
    if guest.vgpu is not None:
        yield from _shared(state, guest)
        return
    board = board_of(state, guest)
    free = [g for g in _typed(state, guest) if not g.users and _reached(state, g, guest)]
    if not board:
        yield from (_choice(gpus) for gpus in sets(state, free, guest.gpus))
        return
    free = [gpu for bundle in bundles(state, free) for gpu in bundle]
    if all(g.gpu.module_id is not None for g in _typed(state, guest)):
        on_board = _fabric(free, board, guest.gpus)
    else:
        on_board = _unnumbered(state, free, board, guest.gpus)
    yield from (choice for choice in on_board if _whole(state, choice))


def _reached(state: HostState, gpu: GpuState, guest: Guest) -> bool:
    """Whether a guest on several GPUs may have this one: not of a board whose others NVLink joins,
    if it does not reach it. Cards may be joined in pairs, and work without."""
    if guest.gpus == 1 or guest.gpu.is_card:
        return True
    return bool(gpu.gpu.joined) or not any(g.gpu.joined for g in _typed(state, guest))


def board_of(state: HostState, guest: Guest) -> tuple[FabricPartition, ...]:
    return fabric_partitions(guest.gpu, len(_typed(state, guest)))


def gpu_shortfall(state: HostState, guest: Guest) -> Shortfall:
    """How many GPUs (or parts of GPUs) of the wanted type a host has left, in numbers."""
    typed = _typed(state, guest)
    free = sum(_room(state, g, guest) if guest.vgpu else not g.users for g in typed)
    capacity = len(typed) * guest.per_gpu
    used = capacity - free if state.admits(guest) else capacity
    return Shortfall(
        resource=guest.vgpu.name if guest.vgpu else guest.gpu.identifier,
        requested=guest.gpus,
        used=used,
        capacity=capacity,
        unit="1",
    )


def _typed(state: HostState, guest: Guest) -> list[GpuState]:
    return [g for g in state.gpus.values() if g.gpu.device.model == guest.gpu.identifier]


def _fabric(
    free: Sequence[GpuState], board: tuple[FabricPartition, ...], count: int
) -> Iterator[GpuChoice]:
    modules = {g.gpu.module_id: g for g in free if g.gpu.module_id is not None}
    whole = on_modules(board, modules)
    fitting = [
        (_choice([modules[m] for m in p.modules], p.number), p)
        for p in whole
        if len(p.modules) == count
    ]
    fitting.sort(key=lambda item: (len(item[0].nodes), _broken(item[1], whole), item[1].number))
    yield from (choice for choice, _ in fitting)


def _unnumbered(
    state: HostState, free: Sequence[GpuState], board: tuple[FabricPartition, ...], count: int
) -> Iterator[GpuChoice]:
    """Without module numbers only the whole board and single GPUs are certain to be partitions."""
    whole = max(board, key=lambda p: len(p.modules))
    if count == len(whole.modules) == len(free):
        yield _choice(free, whole.number)
    elif count == 1:
        yield from (_choice(gpus) for gpus in sets(state, free, 1))


def _whole(state: HostState, choice: GpuChoice) -> bool:
    """Whether a partition of the board holds each of its GPUs' IOMMU groups whole."""
    taken = {pick.gpu.address for pick in choice.picks}
    others = (o for pick in choice.picks for o in companions(state, pick.gpu))
    return all(o.device.kind != "gpu" or o.address in taken for o in others)


def _broken(chosen: FabricPartition, whole: Sequence[FabricPartition]) -> int:
    """Free partitions that are bigger than `chosen` and lose a GPU to it."""
    return sum(
        len(p.modules) > len(chosen.modules) and bool(set(p.modules) & set(chosen.modules))
        for p in whole
    )


def _choice(gpus: Sequence[GpuState], partition: int | None = None) -> GpuChoice:
    ordered = sorted(gpus, key=lambda g: (g.node, g.address))
    return GpuChoice(picks=tuple(Pick(gpu=g.gpu) for g in ordered), partition=partition)


def _shared(state: HostState, guest: Guest) -> Iterator[GpuChoice]:
    """vGPUs of one type; the fullest GPU first, so that others stay whole."""
    open_gpus = [g for g in _typed(state, guest) if _room(state, g, guest)]
    open_gpus.sort(key=lambda g: (_room(state, g, guest), g.node))
    by_node: dict[int, list[Pick]] = {}
    for gpu in open_gpus:
        picks = by_node.setdefault(gpu.node, [])
        picks.extend(Pick(gpu=gpu.gpu, function=function) for function in _functions(gpu, guest))
    for _, picks in sorted(by_node.items(), key=lambda item: (len(item[1]), item[0])):
        if len(picks) >= guest.gpus:
            yield GpuChoice(picks=tuple(picks[: guest.gpus]))
    spread = [pick for picks in by_node.values() for pick in picks]
    if len(by_node) > 1 and len(spread) >= guest.gpus:
        yield GpuChoice(picks=tuple(spread[: guest.gpus]))
    if guest.gpus == 1:
        yield from (GpuChoice(picks=(_pick(gpu, guest),)) for gpu in open_gpus[1:])


def _pick(gpu: GpuState, guest: Guest) -> Pick:
    return Pick(gpu=gpu.gpu, function=_functions(gpu, guest)[0])


def _room(state: HostState, gpu: GpuState, guest: Guest) -> int:
    """How many more vGPUs of the guest's type the GPU takes: one function each."""
    wants = guest.workload
    others = any(user.workload.tenant != wants.tenant for user in gpu.users)
    if others and takes_turns(guest.vgpu) and not state.strangers:
        return 0
    for user in (u.workload for u in gpu.users):
        same_tenant = user.tenant == wants.tenant
        if not share_a_gpu(user.isolation, wants.isolation, same_tenant=same_tenant):
            return 0
    return len(_functions(gpu, guest))


def _functions(gpu: GpuState, guest: Guest) -> list[str]:
    """The addresses to attach: free virtual functions, one for each vGPU that still has room; where
    there are none, the GPU itself, of which the vGPU is a mediated device."""
    assert guest.vgpu is not None
    room = room_for(guest.vgpu, [user.vgpu for user in gpu.users], guest.gpu)
    if mediated(guest.gpu):
        return [gpu.address] * room
    return gpu.free_functions[:room]
