"""Lines and words of a tool's output with their places, and the values that tools write."""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from dataclasses import dataclass

from gpuplan.frozen import record
from gpuplan.source import Place, SourceDocument, Span

_SIZE = re.compile(r"([0-9]{1,15}(?:\.[0-9]{1,6})?) ?(?:([KMGTPE])(?:i?B)?|kB|k|B|[Bb]ytes)?")
_SCALE = {name: 1024**power for power, name in enumerate("KMGTPE", 1)}
_RANGE = re.compile(r"([0-9]{1,6})(?:-([0-9]{1,6})(?::([0-9]{1,6})(?:/([0-9]{1,6}))?)?)?")
_PCI = re.compile(
    r"(?:0x)?(?:([0-9A-Fa-f]{4,8}):)?([0-9A-Fa-f]{2}):([0-9A-Fa-f]{2})\.([0-7])", re.ASCII
)
_PCI_ID = re.compile(r"(?:0x)?([0-9A-Fa-f]{4})10[Dd][Ee]", re.ASCII)
_WATTS = re.compile(r"([0-9]{1,6}(?:\.[0-9]{1,4})?) ?W?")
_ABSENT = re.compile(
    r"\[?(?:n/a|not supported|not applicable|none|not specified|"
    r"requested functionality has been deprecated|deprecated|-)?\]?",
    re.IGNORECASE,
)

ADDRESS = r"[0-9A-Fa-f]{4,8}:[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"  # of a PCI function
SHORT_ADDRESS = r"(?:[0-9A-Fa-f]{4,8}:)?[0-9A-Fa-f]{2}:[0-9A-Fa-f]{2}\.[0-7]"  # in domain 0
CPU_VENDORS = {"GenuineIntel": "intel", "AuthenticAMD": "amd"}
NARROWEST = 40  # columns of a terminal
LONGEST = 2_000  # characters of a line that a terminal wrapped
MOST_CPUS = 65_536  # more than any kernel is built for: a typing error


@record
class Word:
    """A part of a document, as it is to be read, and where it stands."""

    text: str
    place: Place


@dataclass(frozen=True, slots=True)
class Line:
    """A line and its number, from 1. Of one that a terminal wrapped, `shown` characters stand in
    the row of that number."""

    document: str
    number: int
    text: str
    shown: int = sys.maxsize

    def word(self, start: int = 0, end: int | None = None) -> Word:
        """The characters `start` to `end`, without the blanks around them."""
        end = len(self.text) if end is None else min(end, len(self.text))
        start = min(start, end)
        part = self.text[start:end]
        start += len(part) - len(part.lstrip())
        stop = max(start, start + len(part.strip()))
        ends = (min(start, self.shown) + 1, min(stop, self.shown) + 1)
        span = Span(self.number, ends[0], self.number, ends[1])
        return Word(text=part.strip(), place=Place(self.document, span))

    def words(self, pattern: str = r"\S+") -> tuple[Word, ...]:
        return tuple(self.word(m.start(), m.end()) for m in re.finditer(pattern, self.text))

    def group(self, match: re.Match[str], group: int | str) -> Word:
        """A group of a match on this line's text."""
        return self.word(match.start(group), match.end(group))


def lines_of(document: SourceDocument) -> tuple[Line, ...]:
    rows = document.text.split("\n")
    return tuple(Line(document.name, number, text) for number, text in enumerate(rows, start=1))


def unwrapped(lines: Sequence[Line], begins: re.Pattern[str]) -> tuple[Line, ...]:
    """Lines that a terminal broke at its width are one again. `begins` is how a line of the tool
    begins; a row that does not, below one of full width, is the rest of that."""
    width = max((len(line.text) for line in lines), default=0)
    joined: list[Line] = []
    broken = False
    for line in lines:
        if broken and line.text.strip() and not begins.match(line.text):
            above = joined.pop()
            shown = min(above.shown, len(above.text))
            joined.append(Line(line.document, above.number, above.text + line.text, shown))
        else:
            joined.append(line)
        broken = len(line.text) == width >= NARROWEST and len(joined[-1].text) < LONGEST
    return tuple(joined)


def size_bytes(text: str) -> int | None:
    """`81559 MiB`, `1024K`, `131072 kB`, `192705 MB`, `512` → bytes: the tools read here count
    1024 in all their units, however they write them. None: not a size."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        return None
    scale = 1024 if match[0].endswith(("kB", "k")) else _SCALE.get(match[2] or "", 1)
    value = float(match[1]) * scale if "." in match[1] else int(match[1]) * scale
    return round(value)


def cpu_list(text: str) -> tuple[int, ...] | None:
    """`0-3,8`, `0-62:2` (each second), `0-15:2/4` (two of each four), `0 8 16`, or nothing →
    ascending numbers. None: not a list of numbers, one named twice, or too many."""
    numbers: list[int] = []
    for part in re.split(r"[,\s]+", text.strip(" \t,")):
        if not part:
            continue
        match = _RANGE.fullmatch(part)
        if not match:
            return None
        numbers += _expand(*(int(g) if g else None for g in match.groups()))
    whole = sorted(set(numbers))
    fits = len(whole) == len(numbers) and (not whole or whole[-1] < MOST_CPUS)
    return tuple(whole) if fits else None


def _expand(
    first: int | None, last: int | None, step: int | None, group: int | None
) -> tuple[int, ...]:
    """The numbers of one range; out of any bounds where it is none."""
    first = first or 0
    last = first if last is None else last
    if max(first, last) >= MOST_CPUS or last < first or step == 0 or group == 0:
        return (MOST_CPUS,)
    if group:
        return tuple(i for i in range(first, last + 1) if (i - first) % group < (step or 1))
    return tuple(range(first, last + 1, step or 1))


def pci_address(text: str, domain: int | None = 0) -> str | None:
    """`00000000:1B:00.0`, `0000:1b:00.0`, `1b:00.0` → `0000:1b:00.0`. None: not an address (nor
    one without a domain, where `domain` is None)."""
    match = _PCI.fullmatch(text.strip())
    if not match or (match[1] is None and domain is None) or int(match[3], 16) > 31:
        return None
    number = int(match[1], 16) if match[1] else domain
    return f"{number:04x}:{match[2]}:{match[3]}.{match[4]}".lower()


def pci_id(text: str) -> str | None:
    """`0x233010DE` (device, then vendor, as nvidia-smi writes it) → `10de:2330`."""
    match = _PCI_ID.fullmatch(text.strip())
    return f"10de:{match[1]}".lower() if match and int(match[1], 16) else None


def whole(text: str) -> int | None:
    """`128` → 128."""
    text = text.strip()
    return int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else None


def watts(text: str) -> float | None:
    match = _WATTS.fullmatch(text)
    return float(match[1]) if match else None


def absent(text: str) -> bool:
    """True of `N/A`, `[Not Supported]`, `None`, `-` and nothing: there is no value."""
    return _ABSENT.fullmatch(text.strip()) is not None
