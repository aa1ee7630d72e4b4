"""Rows of a storage benchmark: accelerators that read the data of a training workload."""

from __future__ import annotations

import re
from collections.abc import Mapping

from gpuplan.plan.model import record

READING = "train_io_MiB_per_s_per_accelerator"


@record
class DataReading:
    """`accelerators` that each read the data of a training `workload`; `row` has the columns but
    `value`."""

    metric: str
    workload: str
    accelerator: str
    accelerators: float
    row: Mapping[str, str]


def reading(row: Mapping[str, str]) -> DataReading | str:
    """A row's setting, or what is wrong with it."""
    names = re.findall(r"[a-z]+\d+x?", row["gpu"].lower())
    try:
        count = float(row["n_gpus"] or 1)
    except ValueError:
        return "'n_gpus' is no number"
    return DataReading(
        metric=row["metric"],
        workload=row["model"],
        accelerator=names[0] if names else "",
        accelerators=count,
        row=row,
    )
