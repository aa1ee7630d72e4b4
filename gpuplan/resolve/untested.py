"""What is said of versions that no source states together, one constructor a message."""

from __future__ import annotations

from collections.abc import Sequence

from gpuplan.catalog.model import ComponentPin, CudaPin
from gpuplan.diagnostics import Diagnostic, error
from gpuplan.plan.model import Engine
from gpuplan.source import Origin

LONGEST = 9  # digits of a part of a version
WAY_THROUGH = '{version: "%s", untested: WHY}'


def numbers(version: str) -> tuple[int, ...]:
    """`v26.3.3` → (26, 3, 3); what is no number ends it."""
    numbers: list[int] = []
    for part in version.removeprefix("v").split("."):
        if not (part.isascii() and part.isdigit() and len(part) <= LONGEST):
            break
        numbers.append(int(part))
    return tuple(numbers)


def nearest_version(version: str, known: Sequence[str]) -> str:
    """The newest of `known` that is not newer, else the oldest."""
    ordered = sorted(known, key=numbers)
    older = [k for k in ordered if numbers(k) <= numbers(version)]
    return (older or ordered[:1])[-1]


def unstated(name: str, version: str, known: Sequence[str], at: Origin) -> Diagnostic:
    return error(
        "GP015",
        f"no source states {name} {version}",
        at,
        label=f"the nearest that is known is {nearest_version(version, known)}",
        help=f"`gpuplan catalog list components` shows all; or write {WAY_THROUGH % version}",
    )


def no_minor(version: str, at: Origin) -> Diagnostic:
    return error(
        "GP005",
        f"'{version}' is no release of Kubernetes",
        at,
        help='write its major and minor number, as "1.34"',
    )


def other_kubernetes(pin: ComponentPin, minor: str, at: Origin) -> Diagnostic:
    oldest, newest = pin.kubernetes_tested
    near = nearest_version(minor, pin.kubernetes_tested)
    return error(
        "GP015",
        f"{pin.name} {pin.version} is not tested with Kubernetes {minor}",
        at,
        label=f"with {oldest} to {newest}; the nearest is {near}",
        help=f"take another release of {pin.name}, or write {WAY_THROUGH % minor}; says"
        f" {pin.tested}",
    )


def old_kubernetes(pin: ComponentPin, minor: str, at: Origin) -> Diagnostic:
    return error(
        "GP015",
        f"{pin.name} {pin.version} is not for Kubernetes {minor}",
        at,
        label=f"from {pin.kubernetes_minimum} on",
        help=f"take another release of {pin.name}, or write {WAY_THROUGH % minor}; says"
        f" {pin.source}",
    )


def other_driver(pin: ComponentPin, driver: str, at: Origin) -> Diagnostic:
    listed = ", ".join(pin.drivers)
    near = f"the nearest is {nearest_version(driver, pin.drivers)}" if pin.drivers else ""
    return error(
        "GP015",
        f"no source states driver {driver} for {pin.name} {pin.version}",
        at,
        label=near,
        help=f"of {listed or 'none'} the sources know; or write {WAY_THROUGH % driver}",
    )


def old_driver(
    engine: Engine, cuda: CudaPin, pin: ComponentPin, driver: str, *, enough: str, at: Origin
) -> Diagnostic:
    """`enough` is the nearest that will do."""
    return error(
        "GP015",
        f"{engine.name} {engine.version} is built on {cuda.name}, which needs driver "
        f"{cuda.driver} or newer: {pin.name} {pin.version} is to install {driver}",
        at,
        label=f"{enough} is the oldest that will do" if enough else "",
        help=f"take that or a newer one, or another engine.image; says {cuda.source}",
    )
