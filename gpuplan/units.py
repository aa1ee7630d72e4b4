"""Quantities as people write them, and as gpuplan keeps them: base units, nothing else.

Bytes, bytes per second, seconds, watts and USD per hour are the only units inside; "80 GiB" exists
in YAML and here. A unit is always required: `80` alone is refused where a quantity is expected.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from decimal import Decimal

KB, MB, GB, TB, PB = (10 ** (3 * i) for i in range(1, 6))
KIB, MIB, GIB, TIB, PIB = (2 ** (10 * i) for i in range(1, 6))

HOURS_PER_MONTH = 730  # 8,760 hours a year over 12 months, the convention of cloud price lists

BYTES = {
    "B": 1,
    "kB": KB,
    "KB": KB,
    "MB": MB,
    "GB": GB,
    "TB": TB,
    "PB": PB,
    "KiB": KIB,
    "MiB": MIB,
    "GiB": GIB,
    "TiB": TIB,
    "PiB": PIB,
}
BITS = {"b": 1, "kb": KB, "Mb": MB, "Gb": GB, "Tb": TB}
RATE = {f"{u}/s": f for u, f in BYTES.items()} | {f"{u}/s": f / 8 for u, f in BITS.items()}
SECONDS = {
    "us": 1e-6,
    "µs": 1e-6,
    "ms": 1e-3,
    "s": 1,
    "min": 60,
    "h": 3600,
    "d": 86400,
    "w": 604800,
    "months": HOURS_PER_MONTH * 3600,
    "month": HOURS_PER_MONTH * 3600,
}
WATTS = {"W": 1, "kW": 1000, "MW": 1_000_000}
FLOPS = {"GFLOP/s": 1e9, "TFLOP/s": 1e12, "PFLOP/s": 1e15}
PER_HOUR = {"hour": 1, "h": 1, "day": 24, "month": HOURS_PER_MONTH, "year": 8760}

MILLISECOND = 1e-3  # in seconds
MICRO = Decimal("0.000001")  # of a USD: finer prices are rounded
MICROS = 1_000_000  # of a USD
LARGEST = 10**21  # of any base unit: more is a typing error, and formulas would overflow

_NUMBER = r"([0-9][0-9_,]*(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?)"
# Compiled when something is read: most of what starts does not.
_QUANTITY = rf"\s*{_NUMBER}\s*([A-Za-zµ/]*)\s*"
_SHARE = r"([0-9]{1,6}(?:\.[0-9]{1,9})?) *%"
_MONEY = rf"\s*(?:USD\s*|\$\s*){_NUMBER}\s*(?:/\s*([a-z]+))?\s*"
_STORAGE_PRICE = rf"\s*(?:USD\s*|\$\s*){_NUMBER}\s*/\s*GB\s*(?:/\s*|-)month\s*"


class UnitError(ValueError):
    """A text is not a quantity of the expected kind; the message names the units that are."""


def parse(text: str, units: Mapping[str, float], kind: str) -> float:
    """`"40 ms"` with `SECONDS` → 0.04. Raises `UnitError`."""
    match = re.fullmatch(_QUANTITY, text)
    choices = ", ".join(units)
    if not match:
        raise UnitError(f"'{text}' is not a {kind}: write a number and a unit ({choices})")
    number, unit = match.groups()
    if not unit:
        raise UnitError(f"a {kind} needs a unit ({choices})")
    if unit not in units:
        raise UnitError(f"'{unit}' is not a unit of {kind}: use {choices}")
    return float(_scaled(number, Decimal(str(units[unit])), text))


def _scaled(number: str, factor: Decimal, text: str) -> Decimal:
    """`number` × `factor`. Raises `UnitError` where that is out of any proportion."""
    try:
        value = Decimal(number.replace(",", "").replace("_", "")) * factor
    except ArithmeticError:  # an exponent beyond what decimals can have
        value = Decimal("inf")
    if value > LARGEST:
        raise UnitError(f"'{text}' is too large to be meant")
    return value


def parse_bytes(text: str) -> int:
    """`"80 GiB"` → 85899345920."""
    return round(parse(text, BYTES, "size"))


def parse_rate(text: str) -> float:
    """`"400 Gb/s"` → 5e10 bytes per second."""
    return parse(text, RATE, "bandwidth")


def parse_seconds(text: str) -> float:
    return parse(text, SECONDS, "duration")


def parse_share(text: str) -> float:
    """`"60 %"` → 0.6."""
    match = re.fullmatch(_SHARE, text)
    if not match:
        raise UnitError(f"'{text}' is not a share: write a number, or percent as '60 %'")
    return float(Decimal(match[1]) / 100)


def parse_watts(text: str) -> float:
    return parse(text, WATTS, "power")


def parse_flops(text: str) -> float:
    return parse(text, FLOPS, "compute rate")


def parse_usd_per_gb_month(text: str) -> Decimal:
    """`"$0.08/GB/month"` → 0.08, of a decimal gigabyte."""
    match = re.fullmatch(_STORAGE_PRICE, text)
    if not match:
        raise UnitError(f"'{text}' is not a price of storage: write $…/GB/month")
    return _scaled(match[1], Decimal(1), text).quantize(Decimal("0.000001"))


def parse_usd_per_hour(text: str) -> Decimal:
    """`"$20,000/month"` → 27.397260 (a month has 730 hours). Exact to a micro-dollar."""
    match = re.fullmatch(_MONEY, text)
    if not match or match[2] not in PER_HOUR:
        periods = ", ".join(f"$…/{p}" for p in ("hour", "day", "month", "year"))
        raise UnitError(f"'{text}' is not a price: write {periods}")
    amount = _scaled(match[1], Decimal(1), text) / PER_HOUR[match[2]]
    return amount.quantize(Decimal("0.000001"))


_USD = rf"\s*(?:USD\s*|\$\s*){_NUMBER}\s*(/[A-Za-z/ ]+)?\s*"


def _parse_amount(text: str, per: str, example: str) -> Decimal:
    """USD before exactly the unit `per`."""
    match = re.fullmatch(_USD, text)
    unit = (match[2] or "").replace(" ", "") if match else None
    if match is None or unit != per:
        raise UnitError(f"'{text}' is not an amount of USD{per}: write {example}")
    return _scaled(match[1], Decimal(1), text)


def parse_usd(text: str) -> Decimal:
    """`"$320,000"` → 320000."""
    return _parse_amount(text, "", "$320,000")


def parse_usd_per_month(text: str) -> Decimal:
    """`"$6,000/month"` → 6000."""
    return _parse_amount(text, "/month", "$6,000/month")


def parse_usd_per_kwh(text: str) -> Decimal:
    """`"$0.12/kWh"` → 0.12."""
    return _parse_amount(text, "/kWh", "$0.12/kWh")


def parse_usd_per_kw_month(text: str) -> Decimal:
    """`"$200/kW/month"` → 200."""
    return _parse_amount(text, "/kW/month", "$200/kW/month")


def significant(value: float, digits: int = 3) -> str:
    """`1234.5` → `1,230`; `0.04567` → `0.0457`; trailing zeros dropped."""
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits}g}")
    if abs(rounded) >= 10 ** (digits - 1):
        return f"{rounded:,.0f}"
    text = f"{rounded:.10f}".rstrip("0").rstrip(".")
    return text or "0"


def format_bytes(value: float, digits: int = 3) -> str:
    """Binary units, three significant digits: `85899345920` → `80 GiB`."""
    for factor, unit in ((PIB, "PiB"), (TIB, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if abs(value) >= factor:
            return f"{significant(value / factor, digits)} {unit}"
    return f"{significant(value, digits)} B"


def format_rate(value: float, digits: int = 3) -> str:
    for factor, unit in ((TB, "TB/s"), (GB, "GB/s"), (MB, "MB/s"), (KB, "kB/s")):
        if abs(value) >= factor:
            return f"{significant(value / factor, digits)} {unit}"
    return f"{significant(value, digits)} B/s"


def time_unit(value: float) -> tuple[float, str]:
    """The unit that `value` s is printed in, with its seconds."""
    scales = ((86400.0, "d"), (3600.0, "h"), (60.0, "min"), (1.0, "s"), (1e-3, "ms"))
    for factor, unit in scales:
        if abs(value) >= factor * (2 if factor > 1 else 1):
            return factor, unit
    return (1e-6, "µs") if value else (1.0, "s")


def format_seconds(value: float, digits: int = 3) -> str:
    factor, unit = time_unit(value)
    return f"{significant(value / factor, digits)} {unit}"


def format_probability(value: float) -> str:
    """`97 %`; nothing is certain."""
    percent = round(value * 100)
    return "> 99 %" if percent > 99 else "< 1 %" if percent < 1 else f"{percent} %"


def format_usd(value: Decimal | float) -> str:
    """`$1.23`, `$12,345`: cents only below a hundred dollars."""
    amount = float(value)
    return f"${amount:,.2f}" if abs(amount) < 100 else f"${amount:,.0f}"


def format_unit_usd(value: Decimal | float) -> str:
    """`$0.00042`, `$6.64`, `$12,345`: three digits below a dollar, for prices of small things."""
    amount = float(value)
    return f"${significant(amount)}" if abs(amount) < 1 else format_usd(amount)


def format_apart(value: float, limit: float, unit: str) -> tuple[str, str]:
    """Both as `format_quantity`, with as many digits as tell them apart."""
    shown = format_quantity(value, unit), format_quantity(limit, unit)
    digits = 3
    while shown[0] == shown[1] and value != limit and digits < 12:
        digits += 1
        shown = format_quantity(value, unit, digits), format_quantity(limit, unit, digits)
    return shown


def format_quantity(value: float, unit: str, digits: int = 3) -> str:
    """A value in a base unit, for people. Unknown units print behind the number."""
    formatters: dict[str, Callable[[float], str]] = {
        "B": lambda v: format_bytes(v, digits),
        "B/s": lambda v: format_rate(v, digits),
        "s": lambda v: format_seconds(v, digits),
        "USD/h": lambda v: f"{format_usd(v) if digits == 3 else f'${v:,.{digits}f}'}/h",
        "1/s": lambda v: f"{significant(v, digits + 1)}/s",
        "W": lambda v: (
            f"{significant(v / 1000, digits)} kW" if v >= 1000 else f"{significant(v, digits)} W"
        ),
        "FLOP/s": lambda v: f"{significant(v / 1e12, digits)} TFLOP/s",
        "FLOP": lambda v: f"{significant(v / 1e12, digits)} TFLOP",
    }
    if unit in formatters:
        return formatters[unit](value)
    number = f"{value:,.0f}" if float(value).is_integer() else significant(value, digits + 1)
    return f"{number} {unit}".rstrip() if unit != "1" else number


def plural(number: int, noun: str) -> str:
    """`1 error`, `2 errors`, `1,000 errors`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def format_ranges(numbers: Iterable[int]) -> str:
    """`{0, 1, 2, 5}` → `0-2,5`, as `lscpu` lists CPUs."""
    runs: list[list[int]] = []
    for number in sorted(set(numbers)):
        if runs and runs[-1][1] == number - 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


def parse_ranges(text: str) -> tuple[int, ...]:
    """`0-3,8` → (0, 1, 2, 3, 8), in the order written; none for an empty text. Raises ValueError
    for another text."""
    numbers: list[int] = []
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers.extend(range(int(first), int(last or first) + 1))
    return tuple(numbers)
