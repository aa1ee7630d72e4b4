"""The nodes of a plan, bought or rented by the month, against what they cost by the hour."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal

from gpuplan.catalog.load import Catalog
from gpuplan.catalog.tariffs import Tariffs
from gpuplan.frozen import record
from gpuplan.money.inputs import Value, inputs
from gpuplan.money.owned import Group, Owning, break_even_months, counted_twice_months, owning
from gpuplan.plan.model import NodePool, Plan
from gpuplan.units import HOURS_PER_MONTH

Given = Callable[[str], Sequence[Value]]  # a GPU type → what a person says of its nodes


@record
class Bought:
    """`owning` is None where no price of a node is known. `against_per_month`: what the same nodes
    cost by the hour. The break-even is in months of cash; `counted_twice` is what it reads where
    the purchase is subtracted a second time, as write-off. `rented_per_month`: servers by the
    month. `assumed` says what nobody stated."""

    owning: Owning | None
    against_per_month: Decimal | None
    break_even: Decimal | None
    counted_twice: Decimal | None
    rented_per_month: Decimal | None
    inputs: tuple[Value, ...]
    assumed: tuple[str, ...]


def bought(plan: Plan, catalog: Catalog, tariffs: Tariffs, given: Given) -> Bought:
    groups = groups_of(plan.node_pools, catalog, tariffs, given)
    owned = owning(groups)
    cost = plan.cost.usd_per_hour
    against = None if cost is None or plan.cost.unpriced else cost * HOURS_PER_MONTH
    months = twice = None
    if owned is not None and against is not None:
        saved = against - owned.running_per_month
        months = break_even_months(
            owned.upfront, saved, owned.finance_per_month, owned.finance_months
        )
        life = groups[0].values.get("owned.life_months")
        financed = owned.finance_months
        twice = (
            None
            if life is None or financed
            else counted_twice_months(owned.purchase, saved, life.typical)
        )
    return Bought(
        owning=owned,
        against_per_month=against,
        break_even=months,
        counted_twice=twice,
        rented_per_month=rented_per_month(groups),
        inputs=tuple(dict.fromkeys(v for g in groups for v in g.values.values())),
        assumed=one_price(groups),
    )


def groups_of(
    pools: Sequence[NodePool], catalog: Catalog, tariffs: Tariffs, given: Given
) -> tuple[Group, ...]:
    return tuple(
        Group(
            name=p.name,
            gpu=p.gpu,
            nodes=p.node_count,
            values=inputs(given(p.gpu), p, catalog, tariffs),
        )
        for p in pools
    )


def one_price(groups: Sequence[Group]) -> tuple[str, ...]:
    """That one stated price, or power, is taken of nodes with several GPU types, where it is."""
    gpus = sorted({g.gpu for g in groups})
    notes = []
    for name in ("owned.purchase", "owned.power", "rented.server"):
        values = [g.values.get(name) for g in groups]
        if len(gpus) > 1 and len(set(values)) == 1 and values[0] is not None and values[0].given:
            notes.append(
                f"{name} is taken of every node, with {' as with '.join(gpus)}: it may differ"
            )
    return tuple(notes)


def rented_per_month(groups: Sequence[Group]) -> Decimal | None:
    """Of servers by the month; None where nobody states a price."""
    prices = [(g.nodes, _typical(g.values, "rented.server")) for g in groups]
    if not prices or any(price is None for _, price in prices):
        return None
    return sum((nodes * price for nodes, price in prices if price is not None), Decimal(0))


def _typical(values: Mapping[str, Value], name: str) -> Decimal | None:
    value = values.get(name)
    return None if value is None else value.typical
