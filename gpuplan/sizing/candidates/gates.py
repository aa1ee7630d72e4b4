"""Refused candidates and counted gates, for all kinds of workload."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Never

from gpuplan.plan.model import Flip, Parallelism, Shortfall
from gpuplan.sizing.ask.demand import Demand
from gpuplan.sizing.candidates.choose import Candidate, L
from gpuplan.sizing.hardware.devices import Device
from gpuplan.sizing.hardware.measured import gate_of

NO_FABRIC = gate_of("platform.fabric", "unstated")


def refused(
    demand: Demand,
    device: Device,
    gpus: int,
    gate: tuple[Shortfall, ...],
    *,
    passed: int,
    flip: Flip | None = None,
    parallelism: Parallelism | None = None,
) -> Candidate[Never]:
    """A candidate that stopped at `gate` after `passed` others; its replicas were not reckoned."""
    return Candidate(
        device=device,
        gpus=gpus,
        parallelism=parallelism,
        replicas=1,
        isolation=demand.isolation,
        shortfalls=gate,
        passed=passed,
        flip=flip,
    )


def stopped(
    candidate: Candidate[L], gate: tuple[Shortfall, ...], *, passed: int, flip: Flip | None
) -> Candidate[L]:
    """A reckoned candidate that stopped at `gate`; itself where the gate is open."""
    if not gate:
        return candidate
    return replace(candidate, shortfalls=gate, passed=passed, flip=flip)


def uneven(parts: int, count: int, things: str, over: str = "GPUs") -> Shortfall:
    """`parts` do not divide `count` things; what divides both is the capacity."""
    return Shortfall(
        resource=f"{count:,} {things}",
        requested=float(parts),
        used=0.0,
        capacity=float(math.gcd(parts, count)),
        unit=over,
        lack="uneven",
    )


def memory_gate(
    device: Device, used: float, usable: float, needed: float
) -> tuple[tuple[Shortfall, ...], Flip]:
    """`used` bytes of `usable` ones, which a device with `needed` ones would hold."""
    gate = Shortfall(resource="gpu_memory", requested=used, used=0.0, capacity=usable, unit="B")
    now = device.memory_bytes.value
    return (gate,), Flip(quantity="gpu_memory_bytes", now=now, needed=needed, unit="B")


def count_gate(name: str, requested: int, capacity: int) -> Shortfall:
    return Shortfall(
        resource=name, requested=float(requested), used=0.0, capacity=float(capacity), unit="1"
    )
