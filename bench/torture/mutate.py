"""Changed texts: bytes cut, doubled, swapped and spliced, and values of a document exchanged.

The same random numbers give the same text. Structure is found by marks alone (quotes, colons,
commas, indentation), so that one mutator serves YAML, JSON, CSV, XML and the outputs of tools.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

LARGEST = 64 * 2**10  # bytes of a changed text
TOKENS = tuple(
    token.encode()
    for token in (
        *("null", "~", "true", "-1", "0", "1e400", "-0.0", ".nan", ".inf", "9" * 25, "9" * 5_000),
        *(
            "0x10",
            "1_000",
            "1e-320",
            "5e-07",
            "2026-02-30",
            "''",
            '""',
            "{}",
            "[]",
            "[[]]",
            "{a: 1}",
        ),
        *(
            "*a",
            "&a ",
            "&a [*a]",
            "<<: *a",
            "!!python/object:os.system ",
            "--- ",
            "...",
            "# ",
            "? ",
        ),
        *("\n", "\r\n", "\t", " ", ":", ": ", ",", "-", "- ", "\0", "\ufeff", "\u2028", "\ud7ff"),
        *("é", "漢", "𝔊", "\x1b[31m", "%s", "{{ x }}", "$(X)", "${X}", "`", "../..", "/etc/passwd"),
        *(
            "GiB",
            " TiB",
            "s",
            " %",
            "$1/hour",
            "1e9 GiB",
            "[" * 3_000,
            "a: " * 500,
            "GPU 0: " * 300,
        ),
        *("hf_" + "a" * 34, '"\\ud800"', "<!ENTITY a 'b'>", "]]>", "<a>" * 300),
    )
)
_VALUE = re.compile(rb"(?<=[:=,>\[{ ])[^:=,<>\[\]{}\n]+")
Change = Callable[[bytes, random.Random], bytes]


def _place(text: bytes, chance: random.Random) -> int:
    return chance.randint(0, len(text))


def _span(text: bytes, chance: random.Random) -> tuple[int, int]:
    start = _place(text, chance)
    return start, min(len(text), start + int(chance.expovariate(1 / 8)) + 1)


def _cut(text: bytes, chance: random.Random) -> bytes:
    start, end = _span(text, chance)
    return text[:start] + text[end:]


def _early(text: bytes, chance: random.Random) -> bytes:
    return text[: _place(text, chance)]


def _again(text: bytes, chance: random.Random) -> bytes:
    start, end = _span(text, chance)
    return text[:end] + text[start:end] * chance.choice((1, 2, 50)) + text[end:]


def _byte(text: bytes, chance: random.Random) -> bytes:
    start = _place(text, chance)
    return text[:start] + bytes([chance.randrange(256)]) + text[start + 1 :]


def _token(text: bytes, chance: random.Random) -> bytes:
    start = _place(text, chance)
    return text[:start] + chance.choice(TOKENS) + text[start:]


def _value(text: bytes, chance: random.Random) -> bytes:
    """Another value for a value: one of the tokens, or of the text."""
    values = list(_VALUE.finditer(text))
    if not values:
        return _token(text, chance)
    old, other = chance.choice(values), chance.choice(values)[0]
    new = chance.choice((chance.choice(TOKENS), other, b""))
    return text[: old.start()] + new + text[old.end() :]


def _number(text: bytes, chance: random.Random) -> bytes:
    numbers = list(re.finditer(rb"\d+", text))
    if not numbers:
        return _token(text, chance)
    old = chance.choice(numbers)
    new = chance.choice((b"0", b"-1", b"1", b"65536", b"999999999999", b"1.5", b"1e309", b"NaN"))
    return text[: old.start()] + new + text[old.end() :]


def _line(text: bytes, chance: random.Random) -> bytes:
    """A line left out, doubled, moved, or further in."""
    lines = text.split(b"\n")
    number = chance.randrange(len(lines))
    line = lines.pop(number)
    how = chance.randrange(4)
    if how:
        where = (number, chance.randint(0, len(lines)), number)[how - 1]
        lines[where:where] = [[line, line], [line], [b"  " + line]][how - 1]
    return b"\n".join(lines)


CHANGES: Sequence[Change] = (_cut, _early, _again, _byte, _token, _value, _value, _number, _line)


def mutated(text: bytes, others: Sequence[bytes], chance: random.Random) -> bytes:
    """`text` after one change or a few; sometimes with the end of another."""
    if others and chance.random() < 0.1:
        other = chance.choice(others)
        text = text[: _place(text, chance)] + other[_place(other, chance) :]
    for _ in range(chance.choice((1, 1, 1, 2, 3, 6))):
        text = chance.choice(CHANGES)(text, chance)[:LARGEST]
    return text
