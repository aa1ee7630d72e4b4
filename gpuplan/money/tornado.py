"""Which input decides: one at a time to its low and its high, the rest as they are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from decimal import Decimal

from gpuplan.frozen import record
from gpuplan.money.inputs import Value

Values = Mapping[str, Value]
Difference = Callable[[Values], Decimal | None]  # what owning costs more than renting


@record
class Bar:
    """The difference at an input's low and high; `flips`: its sign is not always that of the
    typical one."""

    name: str
    low: Value
    high: Value
    at_low: Decimal
    at_high: Decimal
    flips: bool

    @property
    def width(self) -> Decimal:
        return abs(self.at_high - self.at_low)


def bars(values: Values, difference: Difference) -> tuple[Bar, ...]:
    """The widest first; inputs without a range have none."""
    middle = difference(values)
    if middle is None:
        return ()
    drawn = [bar for v in values.values() if (bar := _bar(v, values, difference, middle))]
    return tuple(sorted(drawn, key=lambda bar: (-bar.width, bar.name)))


def _bar(value: Value, values: Values, difference: Difference, middle: Decimal) -> Bar | None:
    if value.low is None or value.high is None:
        return None
    ends = [replace(value, typical=end) for end in (value.low, value.high)]
    at = [difference({**values, value.name: end}) for end in ends]
    if at[0] is None or at[1] is None or at[0] == at[1]:
        return None
    return Bar(
        name=value.name,
        low=ends[0],
        high=ends[1],
        at_low=at[0],
        at_high=at[1],
        flips=any((x > 0) != (middle > 0) for x in (at[0], at[1])),
    )


def deciding(bars: Iterable[Bar]) -> tuple[str, ...]:
    """Names of the inputs that flip the decision."""
    return tuple(bar.name for bar in bars if bar.flips)
