"""What a unit of work costs: a request, a million tokens, a run. One function for every place that
says it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Literal

from gpuplan.frozen import record
from gpuplan.plan.workload import Workload
from gpuplan.units import HOURS_PER_MONTH, format_unit_usd

SECONDS_PER_HOUR, HOURS_PER_DAY, MILLION = Decimal(3600), Decimal(24), Decimal(1_000_000)
ENDS = ("training", "finetuning", "batch")
Unit = Literal[
    "run", "request", "million output tokens", "million tokens", "million trained tokens",
    "million trained images",
    "hour of audio",
]  # fmt: skip
CostBasis = Literal["mean load", "limit", "run"]
BASES: dict[CostBasis, str] = {
    "mean load": "at the mean load",
    "limit": "at the most that it is said to serve",
    "run": "",
}


@record
class UnitCost:
    """USD of one `unit`. `basis`: the nodes are paid for all hours and serve the mean load in the
    busy ones; or they serve all that is predicted, all the time; or of a run that ends."""

    unit: Unit
    usd: Decimal
    basis: CostBasis

    @property
    def text(self) -> str:
        """`$0.0042 a request`."""
        article = "an" if self.unit.startswith("hour") else "a"
        return f"{format_unit_usd(self.usd)} {article} {self.unit}"


def unit_costs(work: Workload, numbers: Mapping[str, float]) -> tuple[UnitCost, ...]:
    """By the plan's evidence (`numbers`: quantity → value); none of work without a price or on
    GPUs that others pay for anyway, and none of a basis that nothing is known of."""
    if not work.usd_per_hour:
        return ()
    if work.task in ENDS:
        return tuple(_of_run(work, numbers))
    costs = list(_per_request(work, numbers, usd_per_request(work, numbers), "mean load"))
    rate = _estimate(work, "requests_per_second")
    if rate is not None:
        each = work.usd_per_hour / (rate * SECONDS_PER_HOUR)
        costs += _per_request(work, numbers, each, "limit")
    return tuple(costs)


def idle_hours(work: Workload, numbers: Mapping[str, float]) -> Decimal:
    """Hours of a day without requests."""
    return (_number(numbers, f"{work.name}.load.idle") or Decimal(0)) / SECONDS_PER_HOUR


def busy_share(work: Workload, numbers: Mapping[str, float]) -> Decimal:
    """The part of a day that has requests."""
    return 1 - idle_hours(work, numbers) / HOURS_PER_DAY


def requests_per_month(work: Workload, numbers: Mapping[str, float]) -> Decimal | None:
    """At the mean load, in the busy hours; None where no rate is stated."""
    rate = _number(numbers, f"{work.name}.load.requests_per_second.mean")
    if rate is None:
        return None
    return rate * SECONDS_PER_HOUR * HOURS_PER_MONTH * busy_share(work, numbers)


def usd_per_request(work: Workload, numbers: Mapping[str, float]) -> Decimal | None:
    """At the mean load; idle hours are paid too."""
    requests = requests_per_month(work, numbers)
    if not requests or work.usd_per_hour is None:
        return None
    return work.usd_per_hour * HOURS_PER_MONTH / requests


def usd_of_idle_hours(work: Workload, numbers: Mapping[str, float]) -> Decimal | None:
    """What the hours without requests cost in a month; None without such hours, or a price."""
    idle = idle_hours(work, numbers)
    if not idle or work.usd_per_hour is None:
        return None
    return work.usd_per_hour * HOURS_PER_MONTH * idle / HOURS_PER_DAY


def tokens_of_request(work: Workload, numbers: Mapping[str, float]) -> tuple[Decimal, Decimal]:
    """Tokens that go in and that are written; 0 where it has none. Windows of audio are not counted
    here."""
    audio = f"{work.name}.load.audio" in numbers
    texts = _number(numbers, f"{work.name}.load.texts") or Decimal(1)
    given = _number(numbers, f"{work.name}.load.input_tokens.mean") or Decimal(0)
    written = _number(numbers, f"{work.name}.load.output_tokens.mean") or Decimal(0)
    return (Decimal(0), Decimal(0)) if audio else (given * texts, written)


def _of_run(work: Workload, numbers: Mapping[str, float]) -> Iterator[UnitCost]:
    if work.usd_per_run is None:
        return
    yield UnitCost(unit="run", usd=work.usd_per_run, basis="run")
    requests = _number(numbers, f"{work.name}.load.requests")
    if requests:
        yield from _per_request(work, numbers, work.usd_per_run / requests, "run")
    if work.training is not None:
        run = work.training
        samples = Decimal(run.steps) * run.global_batch
        # a network of images has patches, which nobody counts
        seen = any(m.name == "images_per_second" for m in work.metrics)
        unit: Unit = "million trained images" if seen else "million trained tokens"
        units = samples if seen else samples * run.sequence_length
        yield UnitCost(unit=unit, usd=work.usd_per_run / units * MILLION, basis="run")


def _per_request(
    work: Workload, numbers: Mapping[str, float], usd: Decimal | None, basis: CostBasis
) -> Iterator[UnitCost]:
    if usd is None:
        return
    yield UnitCost(unit="request", usd=usd, basis=basis)
    given, written = tokens_of_request(work, numbers)
    if written:
        yield UnitCost(unit="million output tokens", usd=usd / written * MILLION, basis=basis)
    if given:
        both = given + written
        yield UnitCost(unit="million tokens", usd=usd / both * MILLION, basis=basis)
    audio = _number(numbers, f"{work.name}.load.audio")
    if audio:
        yield UnitCost(unit="hour of audio", usd=usd / audio * SECONDS_PER_HOUR, basis=basis)


def _number(numbers: Mapping[str, float], quantity: str) -> Decimal | None:
    """The digits that the evidence has."""
    value = numbers.get(quantity)
    return None if value is None else Decimal(repr(value))


def _estimate(work: Workload, name: str) -> Decimal | None:
    values = (m.estimate.value for m in work.metrics if m.name == name)
    return next((Decimal(repr(v)) for v in values if v), None)
