"""A field of anchors as JSON, one line a point: what `sizing.anchors.read` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

from gpuplan.diagnostics import error
from gpuplan.errors import Rejected
from gpuplan.sizing.calibration.anchors import Field


def write_fields(fields: Mapping[str, Field], folder: Path) -> None:
    """A file for each quantity. Raises `Rejected`."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for quantity, field in fields.items():
            (folder / f"{quantity}.json").write_text(written(field), encoding="utf-8")
    except OSError as problem:
        reason = (problem.strerror or "unknown error").lower()
        place = problem.filename or folder
        text = f"cannot write {place}: {reason}"
        raise Rejected([error("GP009", text, help="check the folder")]) from None


def written(field: Field) -> str:
    texts, numbers = list(field.points.names), list(field.points.places)
    groups = {a.group for a in field.anchors}
    words = sorted({word for row in field.points.texts for word in row} | groups)
    sources = sorted({a.source for a in field.anchors})
    word = {w: n for n, w in enumerate(words)}
    head = {
        "source": field.source,
        "unit": field.unit,
        "noise": field.noise,
        "terms": [[t.amplitude, t.same, t.scales] for t in field.terms],
        "reaches": [[r.same, r.low, r.high, r.known, r.by, r.kinds] for r in field.reaches],
        "texts": texts,
        "numbers": numbers,
        "words": words,
        "sources": sources,
    }
    points = [
        [
            a.identifier,
            word[a.group],
            [word[str(a.features[n])] for n in texts],
            [float(f"{float(a.features[n]):.5g}") for n in numbers],
            a.weight,
            a.noise,
            a.measured,
            a.formula,
            sources.index(a.source),
        ]
        for a in field.anchors
    ]
    lines = [f"{json.dumps(name)}:{_text(value)}," for name, value in head.items()]
    return "{" + "\n".join(lines) + '\n"points":[\n' + ",\n".join(map(_text, points)) + "\n]}\n"


def _text(value: Sequence[object] | object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
