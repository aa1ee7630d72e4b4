"""Constants from measurements, and the data files that hold them: what all fits here share.

A fit is least squares on the logarithms of errors, soft beyond a scale, with each constant held
near its start by a width of its logarithm. Needs numpy and scipy.
"""

from __future__ import annotations

import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeVar

import numpy as np
from scipy.optimize import least_squares

DATE = "2026-11-27"  # on which the public points were collected
ROOT = Path(__file__).parents[2]
GPUPLAN = ROOT / "gpuplan"

Key = TypeVar("Key", bound=Hashable)
Priors = Mapping[Key, tuple[float, float]]  # start, and width of the logarithm


def softened(errors: np.ndarray) -> np.ndarray:
    """Errors whose squares are those of the soft-L1 loss: small ones stay, far ones count by their
    root."""
    return np.sign(errors) * np.sqrt(2 * (np.sqrt(1 + errors * errors) - 1))


def fit(
    priors: Priors[Key],
    errors: Callable[[dict[Key, float]], np.ndarray | Sequence[float]],
    *,
    scale: float,
    weights: np.ndarray | float = 1.0,
    soft: bool = True,
    soft_priors: bool = False,
    starts: Sequence[Mapping[Key, float]] = ({},),
    most: int | None = None,
) -> dict[Key, float]:
    """The constants with the least sum of squares of `errors(constants)` over `scale` and of their
    own way from their starts over their widths. `weights` are of the softened errors; with
    `soft_priors` a constant is let go as an error is. The search begins at each of `starts`, or
    where one says nothing of a constant at its prior's, and evaluates at `most` so many steps; the
    best of what it finds is taken."""
    names = list(priors)
    center = np.log([priors[name][0] for name in names])
    width = np.array([priors[name][1] for name in names])

    def constants(logs: np.ndarray) -> dict[Key, float]:
        return dict(zip(names, np.exp(logs).tolist(), strict=True))

    def residuals(logs: np.ndarray) -> np.ndarray:
        measured, held = np.asarray(errors(constants(logs))) / scale, (logs - center) / width
        measured = weights * (softened(measured) if soft else measured)
        return np.concatenate([measured, softened(held) if soft_priors else held])

    of_priors = constants(center)
    firsts = [np.log([start.get(n, of_priors[n]) for n in names]) for start in starts]
    optima = [least_squares(residuals, first, max_nfev=most) for first in firsts]
    return constants(min(optima, key=lambda one: float(one.cost)).x)


def by_cell(cells: Sequence[Hashable], power: float) -> np.ndarray:
    """A weight for each point: less the more points its cell has."""
    count = Counter(cells)
    return np.array([count[cell] ** -power for cell in cells])


def each_left_out(keys: np.ndarray) -> Iterator[np.ndarray]:
    """For each key, in order: whether a point is of it."""
    for key in sorted(set(keys.tolist())):
        yield keys == key


def summary(errors: np.ndarray | Sequence[float]) -> str:
    """Of the logarithms of predicted over measured."""
    far = np.expm1(np.asarray(errors))
    size = np.abs(far)
    return (
        f"n {len(size):4} MdAPE {np.median(size):6.1%} P90 {np.percentile(size, 90):6.1%} "
        f"bias {np.median(far):+6.1%}"
    )


def rounded(constants: Mapping[Key, float], digits: int = 4) -> dict[Key, float]:
    return {name: float(f"{value:.{digits}g}") for name, value in constants.items()}


def table(
    name: str, values: Mapping[object, object], comments: Mapping[object, str] = {}
) -> Iterator[str]:
    """Lines that assign a table, an entry each, with comments above entries that have one."""
    yield f"{name} = {{"
    for key, value in values.items():
        yield from (f"# {comments[key]}",) if comments.get(key) else ()
        yield f"{_literal(key)}: {_literal(value)},"
    yield "}"


def _literal(value: object) -> str:
    if isinstance(value, Mapping):
        return "\n".join(["{", *(f"{_literal(k)}: {_literal(v)}," for k, v in value.items()), "}"])
    if isinstance(value, tuple):
        return f"({', '.join(map(_literal, value))})"
    return repr(float(f"{value:.4g}")) if isinstance(value, float) else repr(value)


def write(file: str, about: str, lines: Iterable[str]) -> None:
    """A module of data in `gpuplan`, which says what wrote it, in the house's layout."""
    title, _, rest = about.partition("\n")
    by = Path(sys.argv[0]).resolve().relative_to(ROOT).as_posix()
    written = f"{title}, written by {by}."
    head = f'"""{written}\n{rest}"""' if rest else f'"""{written}"""'
    text = "\n".join([head, "", "from __future__ import annotations", "", *lines, ""])
    path = GPUPLAN / file
    path.write_text(text, "utf-8")
    subprocess.run([sys.executable, "-m", "ruff", "format", "--quiet", str(path)], check=True)
