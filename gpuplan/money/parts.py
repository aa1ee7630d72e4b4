"""A part of a bill. It is priced, unpriced (nobody knows) or not offered (nobody sells it): three
states, and a total with an unpriced part is a floor."""

from __future__ import annotations

import calendar
import re
from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from typing import Literal

from gpuplan.frozen import record
from gpuplan.units import format_usd

State = Literal["priced", "unpriced", "not offered"]
_MOMENT = re.compile(r"(\d{4})(?:-(?:(\d\d)(?:-(\d\d))?|H([12])|Q([1-4])))?")


@record
class Part:
    """`usd_per_month` is None unless it is priced. `when` is the time that the price is of, as the
    source says it; `given`: a person set it, no source did."""

    name: str
    what: str
    state: State
    usd_per_month: Decimal | None = None
    source: str = ""
    when: str = ""
    given: bool = False


@record
class Total:
    """The sum of the priced parts, and the names of those that nobody can price."""

    usd: Decimal
    unpriced: tuple[str, ...] = ()

    @property
    def at_least(self) -> str:
        """`at least $1,637` where a part is unpriced."""
        return f"at least {format_usd(self.usd)}" if self.unpriced else format_usd(self.usd)


def total(parts: Iterable[Part]) -> Total:
    every = tuple(parts)
    return Total(
        usd=sum((p.usd_per_month for p in every if p.usd_per_month is not None), Decimal(0)),
        unpriced=tuple(p.name for p in every if p.state == "unpriced"),
    )


def last_day(when: str) -> date | None:
    """The last day of `2026`, `2026-04`, `2026-H1`, `2026-Q4` or `2026-04-27`; None of another
    text."""
    match = _MOMENT.fullmatch(when)
    if match is None:
        return None
    year, month, day, half, quarter = (int(g) if g else 0 for g in match.groups())
    if not month:
        month = half * 6 or quarter * 3 or 12
    try:
        return date(year, month, day or calendar.monthrange(year, month)[1])
    except ValueError:
        return None


def age_days(when: str, as_of: date) -> int | None:
    """Days from a price to `as_of`, none below 0; None of one without a date."""
    day = last_day(when)
    return None if day is None else max(0, (as_of - day).days)
