"""What is to be packed on which machines, and the answer. Money is whole micro-USD per hour."""

from __future__ import annotations

from gpuplan.frozen import record
from gpuplan.plan.isolation import Neighbours
from gpuplan.sharing.modes import Mode, ModeName
from gpuplan.source import Origin

PRIORITIES = ("low", "normal", "high", "critical")
NORMAL = PRIORITIES.index("normal")


@record
class GpuModel:
    name: str
    memory_bytes: int
    modes: tuple[Mode, ...] = ()


@record
class Card:
    """A network card: its virtual functions, and the GPUs (by number) on its PCIe switch; none
    where that is not known."""

    functions: int
    gpus: tuple[int, ...] = ()


@record
class NumaCapacity:
    """What workloads may take of a NUMA node, after the host's reserve. Cores are physical; `gpus`
    are the host's GPU numbers."""

    gpus: tuple[int, ...]
    cores: int
    memory_bytes: int
    cards: tuple[Card, ...] = ()


@record
class HostType:
    """Equal hosts. `islands`: the sets of GPUs that a workload on several GPUs may take (NVSwitch
    partitions, NVLink bridges); empty: any GPUs, of one node where it is big enough. `together`:
    GPUs that go to one whole-GPU workload or to none (one IOMMU group), `unpassed`: those that go
    to none, and can be shared alone. `available` is None where
    hosts can be bought without limit; `names` are those of an inventory; `place`: the provider and
    region that one is rented of."""

    name: str
    gpu: str
    nodes: tuple[NumaCapacity, ...]
    islands: tuple[tuple[int, ...], ...] = ()
    together: tuple[tuple[int, ...], ...] = ()
    unpassed: tuple[int, ...] = ()
    cost: int
    available: int | None
    names: tuple[str, ...] = ()
    place: tuple[str, str] | None = None


@record
class Option:
    """One way to hold a workload: `gpus` whole GPUs, or one `part` in `mode` (then `gpus` is 0).
    Cores, memory and virtual functions are of the whole workload; on several NUMA nodes each gives
    its GPUs' part of them. `host_gpus`: only on hosts with so many GPUs."""

    gpu: str
    gpus: int = 0
    mode: ModeName | None = None
    part: str | None = None
    cores: int
    memory_bytes: int
    functions: int = 0
    host_gpus: int | None = None


@record
class Request:
    """`count` equal items. `isolation`: who else may be on the GPU or the host: anyone, or only the
    same tenant. Items of one `spread` group stand on different hosts. `growth` more items are kept
    free for later; they are placed, but never moved for, and not spread. Where not all find a
    place, those of a higher `priority` (0 to 3) do."""

    name: str
    count: int
    options: tuple[Option, ...]
    tenant: str = ""
    isolation: Neighbours = "shared"
    spread: str | None = None
    growth: int = 0
    priority: int = NORMAL
    origin: Origin | None = None


@record
class Ways:
    """A workload that may run in several ways, each of some requests: the first is among those of
    the problem, and another may take its place."""

    ways: tuple[tuple[Request, ...], ...]


@record
class Placed:
    """Item `number` of a request on host `host` (counted from 0) of a type; numbers from `count`
    on are room for growth. `start` is the first unit of its part, None for whole GPUs and in
    uniform modes; `cards` are the node's cards, by number, that its functions come from."""

    request: str
    number: int
    host_type: str
    host: int
    gpus: tuple[int, ...]
    mode: ModeName | None = None
    part: str | None = None
    start: int | None = None
    cards: tuple[int, ...] = ()


@record
class Problem:
    """`kept` is what stands now: a move (another GPU, part or start) counts `move_cost`."""

    gpus: tuple[GpuModel, ...]
    hosts: tuple[HostType, ...]
    requests: tuple[Request, ...]
    ways: tuple[Ways, ...] = ()
    kept: tuple[Placed, ...] = ()
    move_cost: int = 0


@record
class Addition:
    """What would take so many refused items while all else stands as it does: more hosts of a type
    (`cost`: theirs, micro-USD per hour), or so much more of a resource on one node of the host
    `host` of the type. Where `host` is None and the resource is not `hosts`, on every host."""

    host_type: str
    resource: str
    amount: float
    unit: str
    items: int
    host: int | None = None
    cost: int | None = None


@record
class Refused:
    """Items of a request that found no place, and what was short: the resource and the two amounts,
    on the host type that came nearest. `enough`: what each alone would take them."""

    request: str
    numbers: tuple[int, ...]
    resource: str
    host_type: str | None
    requested: float
    available: float
    unit: str
    enough: tuple[Addition, ...] = ()


@record
class Moved:
    """An item that stands elsewhere than before, and why."""

    before: Placed
    after: Placed
    why: str


@record
class Preemption:
    """A place that an item without one could have, if items of lower priority were stopped or
    moved. Nothing of it is done."""

    placed: Placed
    stopped: tuple[Placed, ...]
    moved: tuple[Moved, ...]


@record
class Merged:
    """Requests that differ little were packed as equal ones: so many kinds instead of so many.
    Amounts were rounded up by at most the part `rounded` of the item's share of its host, which
    costs at most the part `cost` of the linear model's cost; the bound is of amounts rounded down,
    so that the gap has both."""

    before: int
    after: int
    rounded: float
    cost: float


@record
class Result:
    """`cost` of the hosts used; `bound` is a proven lower bound of what every packing of the same
    items costs, `bound_hosts` of how many hosts it takes. `cut_short` names a solver that ran into
    its safety limit (the answer is then valid, but another machine may find another).
    `merged` is None where all kinds of items were packed by their own amounts.
    `preemptions` are proposals, each after the ones before."""

    placed: tuple[Placed, ...]
    refused: tuple[Refused, ...] = ()
    preemptions: tuple[Preemption, ...] = ()
    moved: tuple[Moved, ...] = ()
    hosts: tuple[tuple[str, int], ...]
    cost: int
    bound: int
    bound_hosts: int
    cut_short: tuple[str, ...] = ()
    merged: Merged | None = None
