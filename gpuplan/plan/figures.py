"""The numbers of a plan that a reviewer compares, before and after."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal
from functools import partial
from types import MappingProxyType
from typing import TypeVar

from gpuplan.plan.costs.units import unit_costs
from gpuplan.plan.model import Metric, NodePool, Plan, Workload, record

Number = int | float | Decimal
NOTHING: Mapping[str, float] = MappingProxyType({})
R = TypeVar("R", Plan, Workload, NodePool)


@record
class Figure:
    """A number before and after; None is unknown. `at_least`: part of it is unknown, so the known
    part is a floor. `unpriced` names what has no price."""

    name: str
    unit: str
    base: Number | None
    head: Number | None
    base_unpriced: tuple[str, ...] = ()
    head_unpriced: tuple[str, ...] = ()

    @property
    def change(self) -> float | None:
        """The difference; None when it is not known."""
        if self.base is None or self.head is None or self.base_unpriced or self.head_unpriced:
            return None
        return float(self.head) - float(self.base)

    @property
    def differs(self) -> bool:
        before, after = (self.base, self.base_unpriced), (self.head, self.head_unpriced)
        return before != after


def headroom(metric: Metric) -> float | None:
    """Percent between the prediction and its objective; negative when the objective is missed."""
    if not metric.limit:
        return None
    room = (metric.limit - metric.estimate.value) / metric.limit * 100
    return room if metric.sense == "at_most" else -room


def _figure(
    base: R | None, head: R | None, name: str, unit: str, measure: Callable[[R], Number | None]
) -> Figure:
    """What `measure` says of both sides; 0 of a side that does not exist."""
    before, after = (0 if side is None else measure(side) for side in (base, head))
    return Figure(name=name, unit=unit, base=before, head=after)


def plan_figures(base: Plan | None, head: Plan | None) -> tuple[Figure, ...]:
    figure = partial(_figure, base, head)
    return (
        figure("gpus", "", lambda p: sum(n.node_count * n.gpus_per_node for n in p.node_pools)),
        figure("gpus_used", "", lambda p: sum(w.gpu_count for w in p.workloads)),
        figure("nodes", "", lambda p: sum(n.node_count for n in p.node_pools)),
        figure("virtual_machines", "", lambda p: len(p.virtual_machines)),
        replace(
            figure("usd_per_month", "USD", lambda p: p.cost.usd_per_month),
            base_unpriced=base.cost.unpriced if base else (),
            head_unpriced=head.cost.unpriced if head else (),
        ),
        figure("gpu_memory_bytes", "B", _gpu_memory),
        figure("host_memory_bytes", "B", lambda p: _sum(_host_memory(n) for n in p.node_pools)),
        figure("watts", "W", lambda p: p.cost.watts),
    )


def gpu_type_figures(base: Plan | None, head: Plan | None) -> tuple[Figure, ...]:
    """GPUs by type, before and after."""

    def count(plan: Plan | None, gpu: str) -> int:
        pools = plan.node_pools if plan else ()
        return sum(n.node_count * n.gpus_per_node for n in pools if n.gpu == gpu)

    types = {n.gpu for plan in (base, head) if plan for n in plan.node_pools}
    return tuple(
        Figure(name=gpu, unit="", base=count(base, gpu), head=count(head, gpu))
        for gpu in sorted(types)
    )


def _gpu_memory(plan: Plan) -> int:
    pools = plan.node_pools
    return sum(n.node_count * n.gpus_per_node * n.gpu_memory_bytes for n in pools)


def _host_memory(pool: NodePool) -> int | None:
    return None if pool.memory_bytes is None else pool.memory_bytes * pool.node_count


def _sum(values: Iterable[int | None]) -> int | None:
    known = list(values)
    return None if None in known else sum(v for v in known if v is not None)


def workload_figures(
    base: Workload | None,
    head: Workload | None,
    before: Mapping[str, float] = NOTHING,
    after: Mapping[str, float] = NOTHING,
) -> tuple[Figure, ...]:
    """`before` and `after` are the plans' evidence: quantity → value."""
    figure = partial(_figure, base, head)
    each = _each(base, before), _each(head, after)
    return (
        figure("gpus", "", lambda w: w.gpu_count),
        figure("replicas", "", lambda w: w.replicas),
        figure("usd_per_month", "USD", lambda w: w.usd_per_month),
        figure("watts", "W", lambda w: w.watts),
        figure("gpu_memory_used_bytes", "B", lambda w: w.memory.used_bytes),
        *(
            Figure(
                name=f"usd_per_{unit}",
                unit="USD each",
                base=each[0].get(unit, 0 if base is None else None),
                head=each[1].get(unit, 0 if head is None else None),
            )
            for unit in dict.fromkeys([*each[0], *each[1]])
        ),
        *_headrooms(base, head),
    )


def _each(work: Workload | None, numbers: Mapping[str, float]) -> dict[str, Decimal]:
    """What a request or a run costs, at the mean load."""
    costs = unit_costs(work, numbers) if work else ()
    return {c.unit: c.usd for c in costs if c.unit in ("request", "run") and c.basis != "limit"}


def _headrooms(base: Workload | None, head: Workload | None) -> list[Figure]:
    """Room to each objective that either side has; a side without it has None."""
    before = {m.name: headroom(m) for m in base.metrics} if base else {}
    after = {m.name: headroom(m) for m in head.metrics} if head else {}
    names = [n for n in {**before, **after} if (before.get(n), after.get(n)) != (None, None)]
    return [
        Figure(name=f"{n}_headroom", unit="%", base=before.get(n), head=after.get(n))
        for n in sorted(names)
    ]


def pool_figures(base: NodePool | None, head: NodePool | None) -> tuple[Figure, ...]:
    figure = partial(_figure, base, head)
    return (
        figure("nodes", "", lambda n: n.node_count),
        figure("gpus", "", lambda n: n.node_count * n.gpus_per_node),
        figure("usd_per_hour", "USD/h", _pool_cost),
        figure("host_memory_bytes", "B", _host_memory),
        figure("watts", "W", lambda n: None if n.watts is None else n.watts * n.node_count),
    )


def _pool_cost(pool: NodePool) -> Decimal | None:
    """By the hour: how long a pool is there depends on its workloads."""
    return None if pool.usd_per_hour is None else pool.usd_per_hour * pool.node_count
