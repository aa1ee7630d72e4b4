"""Guests on hosts by search, for where first fit finds no place for some and there is one.

Depth first, the guests in the order given, each in its best place first. A state that failed once
is not tried again; hosts of one kind that look alike make equal states, as guests of a workload do.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from math import ceil

from gpuplan.frozen import frozen
from gpuplan.placement.machines.choose import choices
from gpuplan.placement.machines.guests import Guest
from gpuplan.placement.machines.state import GpuChoice, GpuState, HostState
from gpuplan.sharing.partitions import takes_turns

MOST_LOOKS = 20_000  # at one host for one guest: some 2 s at the most

HostChoice = tuple[int, GpuChoice]  # the host by number


@frozen
class _Move:
    """A guest that was put somewhere, and what its host was before."""

    place: HostChoice
    before: HostState
    look: int


@dataclass(slots=True)
class _Board:
    """`looks` number what later guests see of each host; equal hosts have equal numbers. `seen`
    counts how often a place was looked for on a host."""

    hosts: list[HostState]
    seen: int = 0
    looks: list[int] = field(init=False)
    known: dict[Hashable, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.looks = [self._number(host) for host in self.hosts]

    def _number(self, host: HostState) -> int:
        return self.known.setdefault(_look(host), len(self.known))

    @property
    def look(self) -> tuple[int, ...]:
        return tuple(sorted(self.looks))

    def put(self, guest: Guest, place: HostChoice) -> _Move:
        number, choice = place
        move = _Move(place, self.hosts[number], self.looks[number])
        filled = move.before.copy()
        filled.take(guest, choice)
        self.hosts[number], self.looks[number] = filled, self._number(filled)
        return move

    def undo(self, move: _Move) -> None:
        number = move.place[0]
        self.hosts[number], self.looks[number] = move.before, move.look


@frozen
class Assignment:
    """`places` are the number of the host and the GPUs of each guest; None where not all guests
    fit, or, with `exhausted` false, where the search was given up."""

    places: tuple[HostChoice, ...] | None
    exhausted: bool


def assign(hosts: Sequence[HostState], guests: Sequence[Guest]) -> Assignment:
    """A place for every guest of `guests` on `hosts`, which are left as they are."""
    if not _enough(hosts, guests):
        return Assignment(None, exhausted=True)
    board = _Board(list(hosts))
    trail: list[_Move] = []
    ways = [_places(board, guests[0])]
    failed: set[Hashable] = set()
    while board.seen < MOST_LOOKS:
        place = next(ways[-1], None)
        if place is not None:
            trail.append(board.put(guests[len(trail)], place))
            if len(trail) == len(guests):
                return Assignment(tuple(move.place for move in trail), exhausted=True)
            known = (len(trail), board.look) in failed
            ways.append(iter(()) if known else _places(board, guests[len(trail)]))
        elif not trail:
            return Assignment(None, exhausted=True)
        else:
            failed.add((len(trail), board.look))
            ways.pop()
            board.undo(trail.pop())
    return Assignment(None, exhausted=False)


def _enough(hosts: Sequence[HostState], guests: Sequence[Guest]) -> bool:
    """Whether there are as many GPUs of each type, cores and pages as the guests take."""
    gpus: Counter[str] = Counter(d.device.model for h in hosts for d in h.hypervisor.of("gpu"))
    nodes = [node for host in hosts for node in host.nodes if node.gpus]
    apart = not any(host.strangers for host in hosts)
    wanted: dict[tuple[str, str], Fraction] = {}  # by GPU type; by tenant where those keep apart
    for guest in guests:
        alone = guest.workload.tenant if apart and takes_turns(guest.vgpu) else ""
        key = guest.gpu.identifier, alone
        wanted[key] = wanted.get(key, Fraction()) + guest.gpus * guest.share
    taken: dict[str, int] = {}
    for (name, _), count in wanted.items():
        taken[name] = taken.get(name, 0) + ceil(count)
    return (
        all(count <= gpus[name] for name, count in taken.items())
        and sum(g.cores * g.gpus for g in guests) <= sum(node.usable_cores for node in nodes)
        and sum(g.pages * g.gpus for g in guests) <= sum(node.usable_pages for node in nodes)
    )


def _places(board: _Board, guest: Guest) -> Iterator[HostChoice]:
    """Where `guest` fits, on one NUMA node first; of hosts that look alike the first."""
    first: dict[int, int] = {}
    for number, look in enumerate(board.looks):
        first.setdefault(look, number)
    for narrow in (True, False):
        for number in first.values():
            host = board.hosts[number]
            board.seen += 1
            for choice in choices(host, guest):
                if (len(choice.nodes) == 1) == narrow and not host.shortfalls(guest, choice):
                    yield number, choice


def _look(host: HostState) -> Hashable:
    """What later guests see of a host."""
    nodes = tuple((len(n.cores), n.free_pages) for n in host.nodes)
    return host.hypervisor.kind, host.owner, nodes, tuple(_use(g) for g in host.gpus.values())


def _use(gpu: GpuState) -> Hashable:
    users = sorted(
        (u.vgpu.name if u.vgpu else "", u.workload.tenant, u.workload.isolation) for u in gpu.users
    )
    return len(gpu.free_functions), tuple(users)
