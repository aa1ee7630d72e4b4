"""Whole servers that are rented by the month, for as long as their provider asks."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from gpuplan.frozen import record
from gpuplan.money.courses import QUARTER, Course
from gpuplan.money.owned import Group
from gpuplan.money.parts import Part, total

ZERO = Decimal(0)


@record
class Terms:
    """What one server costs a month, and its set-up once; it is paid for at least `months`."""

    price: Decimal
    setup: Decimal
    months: int


def terms(group: Group) -> Terms | None:
    """None where nobody states a price."""
    stated = {
        n: group.values[f"rented.{n}"].typical for n in FIELDS if f"rented.{n}" in group.values
    }
    if "server" not in stated:
        return None
    return Terms(
        price=stated["server"], setup=stated.get("setup", ZERO), months=int(stated.get("months", 1))
    )


FIELDS = ("server", "setup", "months")


def by_the_month(
    quarters: Sequence[Sequence[Group]], months: int, beside: Sequence[Part] = ()
) -> Course:
    """`quarters` are the groups of nodes of each quarter. Servers come when the load needs them;
    what is left of the time that each is rented for at least is paid in the last month."""
    shape = ", ".join(f"{g.nodes} × {g.name}" for g in quarters[-1])
    known = {g.name: terms(g) for groups in quarters for g in groups}
    if missing := [name for name, rent in known.items() if rent is None]:
        why = f"unpriced: state `rented.server` in the costs file, for {', '.join(missing)}"
        return Course(name="rented", machines=shape, why=why)
    extra = total(beside)
    paid = [extra.usd] * months
    before: dict[str, int] = {}
    for month in range(months):
        for group in quarters[min(month // QUARTER, len(quarters) - 1)]:
            each = known[group.name]
            assert each is not None, "asked above"
            paid[month] += group.nodes * each.price
            added = max(0, group.nodes - before.get(group.name, 0))
            paid[month] += added * each.setup
            paid[-1] += added * each.price * max(0, month + each.months - months)
            before[group.name] = max(before.get(group.name, 0), group.nodes)
    return Course(
        name="rented",
        machines=shape,
        nodes=tuple(sum(g.nodes for g in groups) for groups in quarters),
        months=tuple(paid),
        unpriced=extra.unpriced,
    )
