"""How submissions of MLPerf Training were configured: what their logs leave out.

`data/submissions.json` is made by bench/published/submissions.py from what submitters publish;
where it is not published, the table says what is assumed, or nothing.
"""

from __future__ import annotations

import json
from functools import cache
from importlib.resources import files
from typing import Any

from gpuplan.accuracy.points.points import Case
from gpuplan.plan.model import record


@record
class Submission:
    """GPUs of a replica by what they divide, and the format of the linear layers. `config` is the
    published file; `assumed` says, in words, what it does not."""

    tensor: int
    pipeline: int
    virtual: int
    context: int
    precision: str
    config: str = ""
    assumed: str = ""

    @property
    def replica(self) -> int:
        return self.tensor * self.pipeline * self.context


def submission(case: Case) -> Submission | str:
    """Of a row, by the results that it was read from; else as the row itself says. Or why neither
    does."""
    place = case.row.get("source_repo", ""), case.row.get("source_path", "").rstrip("/")
    if place in _published():
        published = _published()[place]
        return published or f"nobody published how {place[1]} divides a replica"
    divided = [int(case.number(column)) for column in ("tp", "pp", "cp")]
    if min(divided) < 1:
        return "neither the row nor a published configuration tells the parallelism"
    tensor, pipeline, context = divided
    return Submission(
        tensor=tensor,
        pipeline=pipeline,
        virtual=1,
        context=context,
        precision=precision(case.row["precision"]),
    )


def precision(text: str) -> str:
    """What a row calls its precision: submissions compute in 8 bits where they say nothing."""
    if "fp4" in text:
        return "nvfp4"
    return "bf16" if text.startswith("bf16") else "fp8"


@cache
def _published() -> dict[tuple[str, str], Submission | None]:
    """By repository and folder of the results; None where no configuration is published."""
    path = files("gpuplan.accuracy") / "data" / "submissions.json"
    rows = json.loads(path.read_text("utf-8"))["rows"]
    return {(f"mlcommons/training_results_v{r}", folder): _row(row) for r, folder, *row in rows}


def _row(row: list[Any]) -> Submission | None:
    fields = ("tensor", "pipeline", "virtual", "context", "precision", "config", "assumed")
    return Submission(**dict(zip(fields, row, strict=True))) if row else None
