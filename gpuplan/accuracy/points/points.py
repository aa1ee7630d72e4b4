"""Measured points, read from CSV files, and what they were measured on.

The value of a point is for its score alone: predictions are made from `Case`, which has none.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping
from pathlib import Path

from gpuplan.accuracy.points.aside import aside
from gpuplan.accuracy.points.benchmark_models import benchmark_model
from gpuplan.accuracy.points.denoisers import find_denoiser
from gpuplan.accuracy.points.devices import find_devices
from gpuplan.accuracy.points.divided import divided
from gpuplan.accuracy.points.known import ENGINES, PRECISIONS, find_model
from gpuplan.accuracy.points.readings import READING, DataReading, reading
from gpuplan.catalog.model import Gpu
from gpuplan.diagnostics import Diagnostic, error
from gpuplan.errors import Rejected
from gpuplan.manifest.load import read_text, unreadable
from gpuplan.models.images.networks import VisionNetwork, find_network
from gpuplan.models.model import Denoiser, Model
from gpuplan.plan.model import record
from gpuplan.render.text import shortened

IDENTITY = ("model", "gpu", "engine", "precision", "metric", "value")
LAYOUT = ("n_gpus", "tp", "pp", "cp", "ep", "dp", "sharding", "recompute", "method")
LOAD = ("seq_len", "input_len", "output_len", "batch", "global_batch", "unit", "notes")
COLUMNS = (*IDENTITY, *LAYOUT, *LOAD)
COUNTS = ("n_gpus", "tp", "pp", "cp", "ep", "dp", "seq_len", "global_batch")
MEANS = ("input_len", "output_len", "batch")  # of a trace, and of requests by Little's law
AT_LEAST_ONE = ("n_gpus", "tp", "pp", "cp")
MOST = 1e9  # of any of them: beyond it a typing error
LEAST_VALUE, MOST_VALUE = 1e-9, 1e15  # of what was measured, in any unit


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
    case: Case | DataReading | str
    confidence: str = ""
    source: str = ""

    @property
    def repository(self) -> str:
        """Who measured: the source without its commit and path."""
        return next(iter(self.source.partition("@")[0].split()), "")


def read_points(paths: list[Path]) -> list[Point]:
    """The rows of CSV files, in order. Raises `Rejected` with every row that cannot be read."""
    problems: list[Diagnostic] = []
    points = [p for path in paths for p in _read(path, problems)]
    if problems:
        raise Rejected(problems)
    return points


def _read(path: Path, problems: list[Diagnostic]) -> Iterator[Point]:
    text = read_text(path)
    if isinstance(text, Diagnostic):
        problems.append(text)
        return
    reader = csv.DictReader(io.StringIO(text, newline=""), restval="")
    try:
        missing = [c for c in COLUMNS if c not in (reader.fieldnames or ())]
        if missing:
            problems.append(_no_columns(path, missing))
            return
        for row in reader:
            point = _point(row)
            wrong = [*_wrong(row)]
            problems += (_no_number(path, reader.line_num, *each) for each in wrong)
            if point is None:
                why = ("value", f"a number above 0, up to {MOST_VALUE:.0e}")
                problems.append(_no_number(path, reader.line_num, *why, row["value"]))
            elif not wrong:
                yield point
    except csv.Error as problem:
        fault = f"line {reader.line_num + 1} is no row of CSV ({problem})"
        problems.append(unreadable(path, fault, "correct it here"))


def _no_columns(path: Path, missing: list[str]) -> Diagnostic:
    listed = ", ".join(missing)
    remedy = f"the columns are {', '.join(COLUMNS)}; others may stand beside them"
    return error("GP004", f"{path} has no columns {listed}", help=remedy)


def _no_number(path: Path, line: int, column: str, wanted: str, value: str) -> Diagnostic:
    message = f"{path}:{line}: '{column}' must be {wanted}, not {shortened(value, 40)!r}"
    return error("GP005", message, help="correct it")


def _wrong(row: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Columns with a number that counts nothing: which, what is wanted, and what stands there. A
    text, as the size of an image is, is read by what predicts the metric."""
    for column in (*COUNTS, *MEANS):
        try:
            number = float(row[column] or 1)
        except ValueError:
            continue
        zero = column not in AT_LEAST_ONE and number == 0
        kind = "whole number" if column in COUNTS else "number"
        if not (zero or 1 <= number <= MOST) or (column in COUNTS and number != int(number)):
            yield column, f"a {kind} from 1 to {MOST:,.0f}", row[column]


def _point(row: Mapping[str, str]) -> Point | None:
    try:
        value = float(row["value"])
    except ValueError:
        return None
    if not LEAST_VALUE <= value <= MOST_VALUE:
        return None
    setting = {k: v or "" for k, v in row.items() if k not in ("value", None)}
    return Point(
        identifier=row.get("id", ""),
        metric=row["metric"],
        value=value,
        group=row.get("split_group", ""),
        case=reading(setting) if row["metric"] == READING else _case(divided(setting)),
        confidence="C" if aside(row) else row.get("confidence", ""),
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
    devices = find_devices(row["gpu"])
    if isinstance(devices, str):
        return devices
    words = row["engine"].split()
    engine = words[0] if words else ""
    return Case(
        metric=row["metric"],
        model=model,
        gpu=devices.gpu,
        engine=ENGINES.get(engine, row["engine"]),
        precision=PRECISIONS.get(row["precision"], row["precision"]),
        row=_counted(row, devices.count),
    )


def _counted(row: Mapping[str, str], count: int) -> Mapping[str, str]:
    """Devices for modules of `count`: a model is divided over all of them."""
    if count == 1:
        return row
    counts = {n: str(count * int(float(row[n] or 1))) for n in ("n_gpus", "tp")}
    return {**row, **{n: counts[n] for n in counts if row[n] or n == "n_gpus"}}
