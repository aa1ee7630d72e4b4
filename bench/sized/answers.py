"""What is answered to the settings of bench/sized/settings.py: the plan of each, or why there is
none.

    make sized    # writes tests/sizing/sized.txt anew, and tells what differs

`tests/sizing/test_sized.py` fails where an answer is another one. It says that something changed,
not that it was right before: `make sized` is for a change that is wanted. Constants that are fitted
anew change no answer here: those of the day of the record stand in `tests/sizing/constants.json`,
and one made-up point in the place of all measured ones.
"""

from __future__ import annotations

import dataclasses
import json
import math
import re
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from itertools import zip_longest
from pathlib import Path
from typing import Any
from unittest.mock import patch

from bench.sized.settings import Base, Change, asked, settings
from bench.sized.sites import SITES
from gpuplan.diagnostics import Diagnostic
from gpuplan.errors import Rejected
from gpuplan.sizing.calibration import anchors
from gpuplan.sizing.calibration.anchors import Anchor, Field, Reach, Term
from gpuplan.sizing.calibration.points import Points
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.data import serving, training_speed
from gpuplan.sizing.physics.serving import scopes
from tests.support.sizing_cases import size

FOLDER = Path(__file__).parents[2] / "tests/sizing"
FILE, CONSTANTS = FOLDER / "sized.txt", FOLDER / "constants.json"
FITTED = {"serving": serving, "training_speed": training_speed}
TOLERANCE = 1e-5
NUMBER = re.compile(r"-?\d[\d,]*(?:\.\d+)?(?:e[+-]\d+)?")
EVIDENCE = re.compile(r"[\w.]+ = ")
LEFT_OUT = {
    *("name", "task", "tenant", "model", "engine", "command", "environment", "origin", "source"),
    *("node_pool", "storage_class", "mount_path", "port", "unit", "sense", "basis", "help"),
}


def answer(base: Base, change: Change) -> list[str]:
    """In lines: a plan's figures, or what is said against it."""
    try:
        sized = size(asked(base, change), SITES[base.where])
    except Rejected as rejected:
        return [f"rejected {_said(d)}" for d in rejected.diagnostics]
    if not isinstance(sized, Sized):
        return [f"refused {_said(d)}" for d in sized]
    lines = [*_lines(sized.workload)]
    lines += [f"{d.severity.value} {_said(d)}" for d in sized.diagnostics]
    lines += [f"{e.quantity.partition('.')[2]} = {_text(e.value)}" for e in sized.evidence]
    return lines


def _said(diagnostic: Diagnostic) -> str:
    remedies = "; ".join(
        f"{'.'.join(map(str, c.origin.path[2:]))} = {c.value}"
        for r in diagnostic.remedies
        for c in r
    )
    return " | ".join(
        filter(None, (diagnostic.message, diagnostic.label, diagnostic.help, remedies))
    )


def _lines(workload: Any) -> Iterator[str]:
    plain = []
    for field in dataclasses.fields(workload):
        value = getattr(workload, field.name)
        if field.name in LEFT_OUT or value in (None, (), False):
            continue
        if isinstance(value, tuple):
            yield from (f"{field.name}: {_text(each)}" for each in value)
        elif dataclasses.is_dataclass(value):
            yield f"{field.name}: {_text(value)}"
        else:
            plain.append(f"{field.name} {_text(value)}")
    yield ", ".join(plain)


def _text(value: Any) -> str:
    """Of a record what its fields are, but for those that are empty."""
    if dataclasses.is_dataclass(value):
        known = ((f.name, getattr(value, f.name)) for f in dataclasses.fields(value))
        kept = (v for name, v in known if name not in LEFT_OUT and v not in (None, (), False))
        return " ".join(map(_text, kept))
    if isinstance(value, tuple):
        return f"[{', '.join(map(_text, value))}]"
    if isinstance(value, int | float | Decimal) and not isinstance(value, bool):
        return f"{float(value):.6g}"
    return str(value)


def told(base: Base, change: Change) -> list[str]:
    """What is recorded: of a change the lines that its base has not, and how many it lacks; of the
    evidence what its base has no figure of."""
    lines = answer(base, change)
    if not change:
        return lines
    of_base = _itself(base)
    known = {_figure(line) for line in of_base} - {None}
    gone = sum(line not in lines for line in of_base if _figure(line) is None)
    own = (line for line in lines if line not in of_base)
    return [f"without {gone} of its lines", *(x for x in own if _figure(x) not in known)]


def _figure(line: str) -> str | None:
    """The name that a line of evidence begins with; None of another line."""
    named = EVIDENCE.match(line)
    return named and named[0]


_ITSELF: dict[int, list[str]] = {}


def _itself(base: Base) -> list[str]:
    if id(base) not in _ITSELF:
        _ITSELF[id(base)] = answer(base, {})
    return _ITSELF[id(base)]


def differences(now: list[str], then: list[str]) -> list[str]:
    """The lines that differ by more than rounding."""
    pairs = zip_longest(now, then, fillvalue="")
    return [f"{a or 'nothing'}, not {b or 'nothing'}" for a, b in pairs if not _alike(a, b)]


def _alike(one: str, other: str) -> bool:
    if one == other or NUMBER.sub("", one) != NUMBER.sub("", other):
        return one == other
    pairs = zip(NUMBER.findall(one), NUMBER.findall(other), strict=True)
    numbers = ((float(a.replace(",", "")), float(b.replace(",", ""))) for a, b in pairs)
    return all(math.isclose(a, b, rel_tol=TOLERANCE) for a, b in numbers)


def recorded() -> dict[str, list[str]]:
    """What the file says, by setting."""
    parts = FILE.read_text("utf-8").split("\n# ")[1:]
    return {name: lines for name, *lines in (part.rstrip("\n").split("\n") for part in parts)}


# --- what is fitted ------------------------------------------------------------------------------


@contextmanager
def fixed() -> Iterator[None]:
    """Constants of the day of the record, and one made-up point for all that were measured."""
    then = json.loads(CONSTANTS.read_text("utf-8"))
    with ExitStack() as stack:
        for module, values in then.items():
            for name, value in values.items():
                now = getattr(FITTED[module], name)
                if isinstance(now, dict):
                    stack.enter_context(patch.dict(now, _kept(now, value)))
                else:
                    stack.enter_context(patch.object(FITTED[module], name, value))
        stack.enter_context(patch.object(anchors, "_bundled", lambda _: MADE_UP))
        stack.callback(scopes.engine_constants.cache_clear)
        scopes.engine_constants.cache_clear()
        yield


def _kept(now: Any, then: Any) -> Any:
    """What stood then, and what has come since."""
    if not isinstance(now, dict):
        return then
    return {name: _kept(value, then.get(name, value)) for name, value in now.items()}


def _field() -> Field:
    """A tenth more than the formulas say, whatever is asked, and how sure that is."""
    point = Points(
        names=("cell",), places=(), texts=[("made up",)], numbers=[()], weights=[1.0], noises=[0.01]
    )

    def made(_: int) -> Anchor:
        return Anchor(
            identifier="made up",
            group="made up",
            features={},
            weight=1.0,
            noise=0.01,
            measured=1.1,
            formula=1.0,
            source="made up",
        )

    terms, reaches = (
        (Term(amplitude=0.31, same=()),),
        (Reach(same=(), low=-1.5, high=1.8, known=True),),
    )
    return Field(terms, 0.1, reaches, point, made, source="made-up points", unit="")


MADE_UP = _field()


def main() -> int:
    if "--constants" in sys.argv:
        then = {
            module: {
                name: value
                for name, value in vars(of).items()
                if name.isupper() and isinstance(value, float | dict)
            }
            for module, of in FITTED.items()
        }
        CONSTANTS.write_text(json.dumps(then, indent=1) + "\n", encoding="utf-8")
    before = recorded() if FILE.exists() else {}
    with fixed():
        now = {name: told(base, change) for name, base, change in settings()}
    changed = 0
    for name, lines in now.items():
        if different := differences(lines, before.get(name, [])):
            changed += 1
            print(f"{name}:", *different[:5], sep="\n  ")
    print(f"{changed} of {len(now)} settings are answered in another way")
    parts = [f"\n# {name}\n" + "\n".join(lines) + "\n" for name, lines in now.items()]
    FILE.write_text(
        "Answers to the settings of bench/sized/settings.py.\n" + "".join(parts), "utf-8"
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
