"""A field of anchors as JSON, one line a point: what `sizing.anchors.read` reads."""

from __future__ import annotations

import json
from collections.abc import Sequence

from gpuplan.sizing.anchors import Field


def written(field: Field, source: str) -> str:
    """`source`: what the points are, with a date."""
    features = [a.features for a in field.anchors]
    texts = sorted({n for f in features for n, v in f.items() if isinstance(v, str)})
    numbers = sorted({n for f in features for n, v in f.items() if not isinstance(v, str)})
    words = sorted({str(f[n]) for f in features for n in texts})
    sources = sorted({a.source for a in field.anchors})
    word = {w: n for n, w in enumerate(words)}
    head = {
        "source": source,
        "noise": field.noise,
        "terms": [[t.amplitude, t.same, t.scales] for t in field.terms],
        "reaches": [[r.same, r.low, r.high, r.known] for r in field.reaches],
        "texts": texts,
        "numbers": numbers,
        "words": words,
        "sources": sources,
    }
    points = [
        [
            a.identifier,
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
