"""What can be wrong with what tools say together, one constructor a message."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from gpuplan.diagnostics import Diagnostic, Related, Severity, error, note, warning
from gpuplan.frozen import record
from gpuplan.inventory.facts import Value
from gpuplan.inventory.merge.sizes import exact_text
from gpuplan.render.text import shortened
from gpuplan.source import Place
from gpuplan.units import format_ranges

LONGEST = 60


def shown(value: Value) -> str:
    """A value as a message can carry it."""
    if isinstance(value, tuple) and value and all(isinstance(v, int) for v in value):
        text = format_ranges(map(int, value))  # type: ignore[arg-type]
    else:
        text = " ".join(map(str, value)) if isinstance(value, tuple) else str(value)
    return shortened(text, LONGEST)


def differs(fact: str, said: Sequence[tuple[Value, str, Place]]) -> Diagnostic:
    """Tools say different things of one thing; none of it is used."""
    (first, tool, place), *others = said
    value, second = shown(first), shown(others[0][0])
    if value == second:
        value, second = f"one list in {tool}", f"another in {others[0][1]}"
    else:
        value, second = f"{value} ({tool})", f"{second} ({others[0][1]})"
    return Diagnostic(
        rule="GP065",
        severity=Severity.ERROR,
        message=f"{fact}: {value}, but {second}",
        origin=place,
        label="left out of the inventory",
        help="collect both again from one host at one moment, or import the right one alone",
        related=tuple(Related(f"{t} says otherwise", p) for _, t, p in others),
    )


@record
class Gap:
    """`fact` of `host` that nothing says, and fact it is needed for."""

    host: str
    fact: str
    purpose: str
    remedy: str
    at: Place | None
    label: str = ""


def gap(first: Gap, others: int) -> Diagnostic:
    """A gap of one host, and of `others` like it."""
    more = f" and {others} other host{'s' * (others > 1)}" if others else ""
    message = f"nothing says {first.fact} of {first.host}{more}, needed for {first.purpose}"
    return warning("GP066", message, first.at, label=first.label, help=first.remedy)


def gap_messages(gaps: Iterable[Gap]) -> Iterator[Diagnostic]:
    """One message for the same gap of several hosts."""
    alike: dict[tuple[str, str, str], list[Gap]] = {}
    for each in gaps:
        alike.setdefault((each.fact, each.purpose, each.remedy), []).append(each)
    for group in alike.values():
        yield gap(group[0], len({g.host for g in group}) - 1)


def is_guest(host: str, of: str, at: Place) -> Diagnostic:
    message = f"{host} is a virtual machine ({of})"
    return note("GP066", message, at, help="its topology is what its hypervisor shows of the host")


def unknown_gpu(
    product: str, near: Sequence[str], at: Place | None, memory_bytes: Value | None
) -> Diagnostic:
    """`memory_bytes` where the catalogue has the product with another memory."""
    size = "" if memory_bytes is None else f" with {exact_text(float(str(memory_bytes)))}"
    return warning(
        "GP067",
        f"the catalogue has no GPU '{shown(product)}'{size}",
        at,
        label=f"nearest: {', '.join(near)}" if near else "",
        help="it is kept by this name: write an identifier of `gpuplan catalog list gpus` for it",
    )


def not_recognised(name: str, at: Place | None) -> Diagnostic:
    return warning(
        "GP068",
        f"no tool's output is recognised in {name}",
        at,
        help="`gpuplan inventory collect` prints a script that collects what is",
    )


def empty(name: str) -> Diagnostic:
    return warning(
        "GP068",
        f"{name} is empty",
        help="the command wrote nothing there: run it again and look at what it says",
    )


def nothing_read(count: int) -> Diagnostic:
    texts = f"none of {count} texts" if count else "there is no text that"
    message = f"{texts} says anything of a host" if count else "there is nothing to read"
    return error(
        "GP061", message, help="run the script that `gpuplan inventory collect` prints on each host"
    )
