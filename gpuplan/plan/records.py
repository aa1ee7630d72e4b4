"""The records of numbers and where they come from."""

from __future__ import annotations

from dataclasses import field
from decimal import Decimal
from typing import Literal

from gpuplan.frozen import record
from gpuplan.source import Origin

Basis = Literal["measured", "calibrated", "extrapolated", "derived"]
Lack = Literal["absent", "unknown", "unmeasured", "unstated", "undivided", "uneven"]


def origin_field() -> Origin | None:
    """An optional origin, which never makes two records differ."""
    return field(default=None, compare=False)


@record
class Estimate:
    """A predicted value with its 90 % interval (`low` ≤ `value` ≤ `high`)."""

    value: float
    low: float
    high: float
    basis: Basis


@record
class Input:
    """One input of a formula. `source` is `quantity:NAME` for another derived number, else a
    citation: `manifest: PATH`, `catalog: FILE FIELD (publisher, date)`, `default: FIELD`,
    `constant: …`."""

    name: str
    value: float
    unit: str
    source: str


@record
class Evidence:
    """How a number came about: `value` is `formula` evaluated over `inputs`. `quantity` is
    `WORKLOAD.NAME`. An overridden number keeps its derivation and carries `overridden_by`."""

    quantity: str
    value: float
    unit: str
    formula: str
    source: str
    inputs: tuple[Input, ...] = ()
    overridden_by: str | None = None


@record
class Shortfall:
    """A gate that a candidate did not pass: `requested` + `used` exceeds `capacity`. Where no
    amount is short, `lack` says in which way `resource` is: there is none of it, the catalogue does
    not know it, nobody measured it, the platform does not state it, no layout divides it, or so
    many of `unit` do not."""

    resource: str
    requested: float
    used: float
    capacity: float
    unit: str
    lack: Lack | None = None


@record
class Flip:
    """What would have to change for a rejected candidate to be chosen."""

    quantity: str
    now: float
    needed: float
    unit: str


@record
class Alternative:
    """A candidate that was not chosen. `gate` names what rejected it (`cost` when it was feasible
    but dearer); `shortfalls` are the verdicts; `usd_per_hour` is None when unpriced; `node_type` is
    of nodes that would be bought, `rented` whose they are and in which region, `priced_at` the list
    of their price; `seconds` is how long work that ends would take.
    `saves_usd_per_hour`: of a service whose GPU is forced, what the
    whole plan would cost less, with the nodes that nobody needs then."""

    gpu: str
    node_type: str | None = None
    rented: str | None = None
    priced_at: str | None = None
    gpu_count: int
    tensor_parallel_size: int
    replicas: int
    usd_per_hour: Decimal | None
    seconds: float | None = None
    saves_usd_per_hour: Decimal | None = None
    gate: str
    shortfalls: tuple[Shortfall, ...] = ()
    flip: Flip | None = None


@record
class Tradeoff:
    """A layout that meets every objective and that no other beats in cost, latency and headroom
    together. `request_latency` is the likely mean in seconds at the sized peak, `headroom` the
    requests per second that it serves over those that it must. `node_type` is of nodes that are
    bought."""

    gpu: str
    node_type: str | None = None
    partition: str | None
    gpu_count: int
    tensor_parallel_size: int
    replicas: int
    usd_per_hour: Decimal | None
    request_latency: float
    headroom: float
    chosen: bool


@record
class Split:
    """Pools of their own for prefill and for decode, on `nodes` nodes of one kind. The cache of a
    prompt goes from one to the other `over` the links of a node, each of which then has both, or
    the fabric between nodes. `assured` requests per second are served with the wanted confidence;
    `sequences` are of one decode replica; times are likely."""

    gpu: str
    node_type: str | None = None
    prefill_replicas: int
    prefill_tensor_parallel_size: int
    decode_replicas: int
    decode_tensor_parallel_size: int
    over: Literal["links", "fabric"]
    nodes: int
    usd_per_hour: Decimal | None = None
    sequences: int
    assured: float
    requests_per_second: Estimate
    time_to_first_token: float
    time_per_output_token: float


@record
class ResourceUse:
    """What a workload needs of one thing that may run out, of what there is: `need` and `supply` in
    `unit`, `of` what they are counted. Where one is None, `unknown` says why. `remedy` is the
    cheapest way to more of it, None where nothing is known to be short."""

    resource: str
    of: str
    need: float | None
    supply: float | None
    unit: str
    remedy: str | None
    unknown: str | None = None

    @property
    def share(self) -> float | None:
        """The part of the supply that is needed; more than 1 where it is too little."""
        return None if self.need is None or not self.supply else self.need / self.supply


@record
class Override:
    """A value of the manifest that replaced a derived one; `derived` is None where nothing would
    have fitted."""

    quantity: str
    derived: float | str | None
    value: float | str
    unit: str
    origin: Origin | None = origin_field()


@record
class EngineVariable:
    """A variable that an image's program is started with, and why."""

    name: str
    value: str
    reason: str
