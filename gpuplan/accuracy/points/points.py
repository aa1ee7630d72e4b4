"""Measured points, read from CSV files, and what they were measured on.

The value of a point is for its score alone: predictions are made from `Case`, which has none.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpuplan.accuracy.points.benchmark_models import benchmark_model
from gpuplan.accuracy.points.denoisers import find_denoiser
from gpuplan.accuracy.points.devices import find_gpu
from gpuplan.accuracy.points.known import ENGINES, PRECISIONS, find_model
from gpuplan.accuracy.points.readings import READING, Reading, reading
from gpuplan.catalog.model import Gpu
from gpuplan.diagnostics import Diagnostic, error
from gpuplan.errors import Rejected
from gpuplan.models.images.networks import VisionNetwork, find_network
from gpuplan.models.model import Denoiser, Model
from gpuplan.plan.model import record

IDENTITY = ("model", "gpu", "engine", "precision", "metric", "value")
LAYOUT = ("n_gpus", "tp", "pp", "cp", "ep", "dp", "sharding", "recompute", "method")
LOAD = ("seq_len", "input_len", "output_len", "batch", "global_batch", "unit", "notes")
COLUMNS = (*IDENTITY, *LAYOUT, *LOAD)


@record
class Case:
    """A setting whose speed or memory can be predicted. `row` has the columns but `value`."""

    metric: str
    model: Model | VisionNetwork | Denoiser
    gpu: Gpu
    engine: str
    precision: str
    row: Mapping[str, str]

    def number(self, column: str, default: float = 0.0) -> float:
        """A column's number. Raises `ValueError`, in words, where it holds something else."""
        text = self.row[column].strip()
        if not text:
            return default
        try:
            return float(text)
        except ValueError:
            raise ValueError(f"'{column}' is no number") from None


@record
class Point:
    """A row of a file: its measured value, and its case or why there is none. Points of one `group`
    are not independent; of `confidence` C they are not used; `source` is where it was published."""

    identifier: str
    metric: str
    value: float
    group: str
    case: Case | Reading | str
    confidence: str = ""
    source: str = ""


def read_points(paths: list[Path]) -> list[Point]:
    """The rows of CSV files, in order. Raises `Rejected` with every row that cannot be read."""
    problems: list[Diagnostic] = []
    points = [p for path in paths for p in _read(path, problems)]
    if problems:
        raise Rejected(problems)
    return points


def _read(path: Path, problems: list[Diagnostic]) -> Iterator[Point]:
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file, restval="")
            missing = [c for c in COLUMNS if c not in (reader.fieldnames or ())]
            if missing:
                problems.append(_no_columns(path, missing))
                return
            for row in reader:
                point = _point(row)
                if point is None:
                    problems.append(_no_number(path, reader.line_num, row["value"]))
                else:
                    yield point
    except (OSError, UnicodeDecodeError, csv.Error) as problem:
        problems.append(error("GP009", f"cannot read {path}: {problem}", help="check the file"))


def _no_columns(path: Path, missing: list[str]) -> Diagnostic:
    listed = ", ".join(missing)
    remedy = f"the columns are {', '.join(COLUMNS)}; others may stand beside them"
    return error("GP004", f"{path} has no columns {listed}", help=remedy)


def _no_number(path: Path, line: int, value: str) -> Diagnostic:
    return error(
        "GP005",
        f"{path}:{line}: 'value' must be a number above 0, not {value!r}",
        help="correct it",
    )


def _point(row: Mapping[str, str]) -> Point | None:
    try:
        value = float(row["value"])
    except ValueError:
        return None
    if not (math.isfinite(value) and value > 0):
        return None
    setting = {k: v or "" for k, v in row.items() if k != "value"}
    return Point(
        identifier=row.get("id", ""),
        metric=row["metric"],
        value=value,
        group=row.get("split_group", ""),
        case=reading(setting) if row["metric"] == READING else _case(setting),
        confidence=row.get("confidence", ""),
        source=_source(row),
    )


def _source(row: Mapping[str, str]) -> str:
    commit = row.get("source_commit", "")[:12]
    parts = (row.get("source_repo"), commit and f"@{commit}", row.get("source_path"))
    return " ".join(part for part in parts if part).replace(" @", "@")


def _case(row: Mapping[str, str]) -> Case | str:
    name = row["model"]
    model = (
        find_model(name, row.get("hf_id", ""))
        or benchmark_model(name)
        or find_network(name)
        or find_denoiser(name)
    )
    if model is None:
        return f"the dimensions of model '{row['model']}' are not known"
    gpu = find_gpu(row["gpu"])
    if isinstance(gpu, str):
        return gpu
    words = row["engine"].split()
    engine = words[0] if words else ""
    return Case(
        metric=row["metric"],
        model=model,
        gpu=gpu,
        engine=ENGINES.get(engine, row["engine"]),
        precision=PRECISIONS.get(row["precision"], row["precision"]),
        row=row,
    )
