"""Times at which something starts again and again, in cron's five fields."""

from __future__ import annotations

import re
from typing import Annotated

from pydantic import AfterValidator, Field

from gpuplan.plan.costs.recurrence import most_starts

# (what the field is, its smallest and largest number), as scrontab(1) and crontab(5) have them.
FIELDS = (
    ("minute", 0, 59),
    ("hour", 0, 23),
    ("day of the month", 1, 31),
    ("month", 1, 12),
    ("day of the week", 0, 7),
)
_PART = re.compile(r"(?:\*|([0-9]{1,2})(?:-([0-9]{1,2}))?)(?:/([0-9]{1,2}))?")


def _schedule(text: str) -> str:
    """Fields with one space between them. Raises ValueError."""
    fields = text.split(" ")
    if len(fields) != len(FIELDS) or not all(fields):
        raise ValueError(
            f"'{text}' is no five fields with one space between them: minute, hour, day of the"
            " month, month, day of the week"
        )
    for given, (name, low, high) in zip(fields, FIELDS, strict=True):
        for part in given.split(","):
            match = _PART.fullmatch(part)
            numbers = [int(n) for n in (match[1], match[2]) if n] if match else [-1]
            step = int(match[3]) if match and match[3] else 1
            right = numbers == sorted(numbers) and all(low <= n <= high for n in numbers)
            if not right or not 1 <= step <= high:
                raise ValueError(f"'{part}' is no {name} from {low} to {high}")
    if not most_starts(text):
        raise ValueError(f"'{text}' names days that no month has")
    return text


Schedule = Annotated[
    str, AfterValidator(_schedule), Field(description="Five fields as cron has them.")
]
