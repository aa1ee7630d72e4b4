"""Machines that are bought: what is paid at once, each month and got back; when that is less than
renting. In cash: what is written off is no payment, the purchase was.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal

from gpuplan.frozen import record
from gpuplan.money.inputs import Value
from gpuplan.money.parts import Part
from gpuplan.units import HOURS_PER_MONTH, format_unit_usd, format_usd, significant

WATTS_PER_KW, MONTHS = Decimal(1000), Decimal(12)
ZERO, ONE = Decimal(0), Decimal(1)
Amounts = Mapping[str, Decimal]


@record
class Group:
    """Equal nodes with the inputs of one of them."""

    name: str
    gpu: str = ""
    nodes: int
    values: Mapping[str, Value]


@record
class Owning:
    """USD. `upfront` is paid on the first day, `finance_per_month` for `finance_months` at
    `finance_rate` a year, `parts` each month; `residual` is got back at the end.
    `depreciation_per_month` is no payment."""

    purchase: Decimal
    upfront: Decimal
    finance_per_month: Decimal
    finance_months: int
    finance_rate: Decimal
    parts: tuple[Part, ...]
    depreciation_per_month: Decimal | None
    residual: Decimal

    @property
    def running_per_month(self) -> Decimal:
        return sum((p.usd_per_month or ZERO for p in self.parts), ZERO)

    @property
    def unpriced(self) -> tuple[str, ...]:
        return tuple(p.name for p in self.parts if p.state == "unpriced")


def annuity(principal: Decimal, rate_per_year: Decimal, months: int) -> Decimal:
    """The equal payment of each month that repays `principal` with interest."""
    rate = rate_per_year / MONTHS
    if not rate:
        return principal / months
    return principal * rate / (1 - (1 + rate) ** -months)


def outstanding(payment: Decimal, rate_per_year: Decimal, months: int) -> Decimal:
    """What is owed while `months` equal payments are left: their present value."""
    rate = rate_per_year / MONTHS
    if not rate:
        return payment * months
    return payment * (1 - (1 + rate) ** -months) / rate


def power_usd_per_month(
    watts: Decimal, *, load: Decimal, pue: Decimal, usd_per_kwh: Decimal, hours: Decimal
) -> Decimal:
    """What a server and its cooling draw in `hours` of a month."""
    return watts / WATTS_PER_KW * load * pue * hours * usd_per_kwh


def break_even_months(
    upfront: Decimal, saved_per_month: Decimal, finance_per_month: Decimal, finance_months: int
) -> Decimal | None:
    """Months after which all that was paid for owned machines is what renting would have cost;
    `saved_per_month` is the rent less what running costs. None where that is never."""
    during = saved_per_month - finance_per_month
    if during > 0 and (not finance_months or upfront / during <= finance_months):
        return upfront / during
    if saved_per_month <= 0:
        return None
    months = (upfront + finance_per_month * finance_months) / saved_per_month
    return max(months, Decimal(finance_months))


def counted_twice_months(
    purchase: Decimal, saved_per_month: Decimal, life_months: Decimal
) -> Decimal | None:
    """What calculators print that subtract what is written off from what is saved and then divide
    the purchase by the rest: the purchase is in both. It is shown to be told from the above."""
    left = saved_per_month - purchase / life_months
    return purchase / left if left > 0 else None


def owning(groups: Sequence[Group], hours: Decimal = Decimal(HOURS_PER_MONTH)) -> Owning | None:
    """All groups; None where no price of a node is known."""
    if any("owned.purchase" not in g.values for g in groups) or not groups:
        return None
    sums = [_of_group(g, {n: v.typical for n, v in g.values.items()}, hours) for g in groups]
    shared = {name: value for g in groups for name, value in g.values.items()}
    parts = [*_joined([p for s in sums for p in s.parts]), *_of_fleet(shared)]
    written_off = [s.depreciation_per_month for s in sums]
    return Owning(
        purchase=sum((s.purchase for s in sums), ZERO),
        upfront=sum((s.upfront for s in sums), ZERO),
        finance_per_month=sum((s.finance_per_month for s in sums), ZERO),
        finance_months=max(s.finance_months for s in sums),
        finance_rate=max(s.finance_rate for s in sums),
        parts=tuple(parts),
        depreciation_per_month=None
        if None in written_off
        else sum((w for w in written_off if w is not None), ZERO),
        residual=sum((s.residual for s in sums), ZERO),
    )


def _of_group(group: Group, amounts: Amounts, hours: Decimal) -> Owning:
    nodes = Decimal(group.nodes)
    purchase = amounts["owned.purchase"] * nodes * (1 + amounts.get("owned.network_share", ZERO))
    months = int(amounts.get("owned.financing.months", ZERO))
    financed = purchase * amounts.get("owned.financing.share", ONE) if months else ZERO
    rate = amounts.get("owned.financing.rate", ZERO)
    life, residual = amounts.get("owned.life_months"), amounts.get("owned.residual", ZERO)
    back = amounts["owned.purchase"] * nodes * residual
    return Owning(
        purchase=purchase,
        upfront=purchase - financed,
        finance_per_month=annuity(financed, rate, months) if months else ZERO,
        finance_months=months,
        finance_rate=rate,
        parts=tuple(_parts(group, amounts, hours)),
        depreciation_per_month=(purchase - back) / life if life else None,
        residual=back,
    )


def _parts(group: Group, amounts: Amounts, hours: Decimal) -> Iterator[Part]:
    values, nodes = group.values, Decimal(group.nodes)
    space = values.get("owned.colocation.price")
    watts = values.get("owned.power")
    if space is not None:
        yield _colocation(space, watts, nodes)
    if space is None or not amounts.get("owned.colocation.includes_power"):
        yield _power(group, amounts, hours)
    for value in values.values():
        if value.without:
            yield Part(name=value.without, what="nobody says what it costs", state="unpriced")
    kept = values.get("owned.maintenance")
    if kept is None:
        yield Part(name="maintenance", what="nobody says what it costs", state="unpriced")
        return
    usd = amounts["owned.purchase"] * nodes * kept.typical / MONTHS
    share = significant(float(kept.typical) * 100)
    yield _given("maintenance", f"{share} % of the purchase a year", usd, kept)


def _colocation(space: Value, watts: Value | None, nodes: Decimal) -> Part:
    if watts is None:
        return Part(name="colocation", what="nobody says what nodes draw", state="unpriced")
    kilowatts = watts.typical / WATTS_PER_KW * nodes
    what = f"{significant(float(kilowatts))} kW at {format_usd(space.typical)}/kW"
    return _given("colocation", what, kilowatts * space.typical, space)


def _power(group: Group, amounts: Amounts, hours: Decimal) -> Part:
    """Power × load × PUE × hours × tariff; without a known load the most that it draws."""
    absent = [n for n in ("owned.power", "owned.pue", "owned.tariff") if n not in amounts]
    if absent:
        what = f"nobody says {', '.join(n.removeprefix('owned.') for n in absent)}"
        return Part(name="power", what=what, state="unpriced")
    load = amounts.get("owned.load", ONE)
    usd = group.nodes * power_usd_per_month(
        amounts["owned.power"],
        load=load,
        pue=amounts["owned.pue"],
        usd_per_kwh=amounts["owned.tariff"],
        hours=hours,
    )
    kilowatts = significant(float(amounts["owned.power"] * group.nodes / WATTS_PER_KW))
    at = "at most" if "owned.load" not in amounts else f"× {significant(float(load) * 100)} %"
    price = format_unit_usd(amounts["owned.tariff"])
    what = f"{kilowatts} kW {at} × PUE {amounts['owned.pue'].normalize()} × {price}/kWh"
    return _given("power", what, usd, group.values["owned.tariff"])


def _of_fleet(values: Mapping[str, Value]) -> Iterator[Part]:
    """What is paid once for all nodes."""
    facility, staff = values.get("owned.facility"), values.get("owned.staff")
    if facility is not None:
        yield _given("facility", "space and all in it", facility.typical, facility)
    if staff is None:
        yield Part(name="staff", what="nobody says what it costs", state="unpriced")
    else:
        yield _given("staff", "the share of people's time", staff.typical, staff)


def _given(name: str, what: str, usd: Decimal, value: Value) -> Part:
    return Part(
        name=name,
        what=what,
        state="priced",
        usd_per_month=usd,
        source=value.source,
        given=value.given,
    )


def _joined(parts: Sequence[Part]) -> Iterator[Part]:
    """Parts of several groups by name; one that is unpriced anywhere stays so."""
    for name in dict.fromkeys(p.name for p in parts):
        same = [p for p in parts if p.name == name]
        first = next((p for p in same if p.state != "priced"), same[0])
        if first.state != "priced" or len(same) == 1:
            yield first
            continue
        yield Part(
            name=name,
            what="; ".join(p.what for p in same),
            state="priced",
            usd_per_month=sum((p.usd_per_month or ZERO for p in same), ZERO),
            source=same[0].source,
            given=all(p.given for p in same),
        )
