"""What a file of anchors must be, before predictions rest on it: people may edit it, or cut it."""

from __future__ import annotations

from typing import Annotated, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from gpuplan.sizing.calibration.anchors import Anchors

Number = Annotated[float, Field(allow_inf_nan=False, ge=-1e12, le=1e12)]
Above = Annotated[float, Field(allow_inf_nan=False, gt=0, le=1e15)]
Index = Annotated[int, Field(ge=0)]


class _Row(NamedTuple):
    """A point, as `gpuplan accuracy --calibrate` writes it."""

    identifier: str
    group: Index
    texts: list[Index]
    numbers: list[Number]
    weight: Number
    noise: Annotated[float, Field(allow_inf_nan=False, ge=0, le=1e12)]
    measured: Above
    formula: Above
    source: Index


class _File(BaseModel):
    model_config = ConfigDict(extra="forbid", strict=True)

    source: str
    unit: str
    noise: Above
    terms: list[tuple[Number, list[str], list[tuple[str, Above]]]]
    reaches: Annotated[
        list[tuple[list[str], Number, Number, bool, str, list[tuple[str, Number, Number]]]],
        Field(min_length=1),
    ]
    texts: list[str]
    numbers: list[str]
    words: list[str]
    sources: list[str]
    points: list[_Row]


def fault(text: str, quantity: str) -> str:
    """What is wrong with a file of anchors of `quantity`; empty where nothing is."""
    try:
        file = _File.model_validate_json(text)
    except ValidationError as problem:
        first = problem.errors()[0]
        place = ".".join(str(part) for part in first["loc"]) or "the file"
        return f"{place}: {first['msg'].partition(':')[0].lower()}"
    try:
        known = Anchors()(quantity).points
    except FileNotFoundError:
        return f"'{quantity}' is no quantity that is corrected"
    return next(iter(_faults(file, {*known.names}, {*known.places})), "")


def _faults(file: _File, names: set[str], places: set[str]) -> list[str]:
    used = {n for _, same, _ in file.terms for n in same}
    used |= {n for reach in file.reaches for n in (*reach[0], *([reach[4]] if reach[4] else ()))}
    scaled = {n for _, _, scales in file.terms for n, _ in scales}
    foreign = ({*file.texts} - names) | ({*file.numbers} - places)
    lacking = (used - {*file.texts}) | (scaled - {*file.numbers})
    faults = [f"no setting has '{name}'" for name in sorted(foreign)]
    faults += [f"'{name}' stands in a term, and no point has it" for name in sorted(lacking)]
    if file.reaches[-1][0]:
        faults.append("reaches: the last one shares nothing")
    for number, row in enumerate(file.points):
        widths = len(row.texts) == len(file.texts) and len(row.numbers) == len(file.numbers)
        words = max([row.group, *row.texts]) < len(file.words)
        if not (widths and words and row.source < len(file.sources)):
            faults.append(f"points.{number}: it has not as many values as are named")
    return faults
