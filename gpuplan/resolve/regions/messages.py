"""What is wrong with several regions: GP004 what is needed, GP007 fields that contradict each
other, GP010 too few regions are left, GP014 what nothing is held against."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.diagnostics import Diagnostic, error, note, warning
from gpuplan.plan.outside.regions import Refused
from gpuplan.source import Origin


def no_provider(target: str, at: Origin) -> Diagnostic:
    return error(
        "GP007",
        f"target '{target}' has no regions",
        at,
        help="name a 'provider' beside it, or remove 'regions'",
    )


def said_twice(field: str, at: Origin) -> Diagnostic:
    return error(
        "GP007",
        f"'{field}' is of one region, and 'regions' names several",
        at,
        help=f"move it to the region's entry under 'regions.places', or remove '{field}'",
    )


def same_region(name: str, at: Origin) -> Diagnostic:
    return error("GP007", f"region '{name}' is there twice", at, help="remove one of them")


def no_room_for_count(count: int, places: int, at: Origin) -> Diagnostic:
    return error(
        "GP007",
        f"{count} regions are to be taken of {places}",
        at,
        help="name more under 'places', or take fewer",
    )


def nothing_divided(at: Origin) -> Diagnostic:
    return error(
        "GP007",
        "no service has a load that several regions could divide",
        at,
        help="write 'region' for the one in which the work runs",
    )


def waits_for_home(name: str, before: str, at: Origin) -> Diagnostic:
    return error(
        "GP007",
        f"'{name}' is in every region, and '{before}', which it waits for, in one of them",
        at,
        help="remove 'after', or leave it to a manifest of one region",
    )


def one_region_at_a_time(at: Origin) -> Diagnostic:
    return error(
        "GP007",
        "this question is about one region, and the manifest has several",
        at,
        help="write 'region' in place of 'regions' for it; `gpuplan compile`, `gpuplan compare`"
        " plan several",
    )


def too_few(left_out: Sequence[Refused], count: int, at: Origin) -> Diagnostic:
    reasons = "; ".join(f"{r.target}: {r.why}" for r in left_out)
    return error(
        "GP010",
        f"fewer than {count} regions are left ({reasons})",
        at,
        label="with one alone nothing is left when it is lost" if count == 2 else "",
        help="name other regions, or widen what leaves them out",
    )


def left_out(refused: Sequence[Refused], at: Origin) -> Diagnostic:
    reasons = "; ".join(f"{r.target}: {r.why}" for r in refused)
    return note("GP014", f"regions that are not taken: {reasons}", at)


def unknown_quota(name: str, needed: Sequence[str], at: Origin) -> Diagnostic:
    return warning(
        "GP014",
        f"no plan here counts against a quota '{name}'",
        at,
        help=f"this region's plan needs {', '.join(needed) or 'none that has a name'}",
    )


def stack_left(folder: str, name: str, at: Origin) -> Diagnostic:
    return warning(
        "GP020",
        f"stack {folder} is there, and '{name}' is not in its region any more",
        at,
        help="once the others carry the load, remove it as its README says, then its folder",
    )
