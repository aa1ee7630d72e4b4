"""What a Slurm cluster has beside its machines: `platform.slurm`."""

from datetime import datetime
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gpuplan.manifest.base import Document, Name, optional, required
from gpuplan.manifest.quantities import Seconds

Host = Annotated[
    str,
    Field(
        pattern=r"^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$",
        description="Lower-case letters, digits, '-' and '.'.",
    ),
]
Folder = Annotated[
    str,
    Field(
        pattern=r"^(/[A-Za-z0-9_-][A-Za-z0-9._-]*)+$",
        max_length=200,
        description="An absolute path of letters, digits, '.', '_' and '-'.",
    ),
]


def _moment(text: str) -> str:
    """A local time to the second. Raises ValueError."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError as problem:
        raise ValueError(f"'{text}' is no time, as 2026-12-01T08:00") from problem
    if moment.tzinfo is not None or "T" not in text:
        raise ValueError(f"'{text}' is no local time of the cluster, as 2026-12-01T08:00")
    return moment.isoformat(timespec="seconds")


Moment = Annotated[
    str, AfterValidator(_moment), Field(description="A day and a time, as 2026-12-01T08:00.")
]


class ReservationSpec(Document):
    """Nodes that are kept for a workload from a time on."""

    workload: Name = required("The workload that they are kept for.", "full-70b")
    start: Moment = required("From when on, in the cluster's own time.", "2026-12-01T08:00")
    duration: Seconds | None = optional(
        "For how long. Without it the time limit of its job.", "12 h"
    )


class SlurmSpec(Document):
    """A Slurm cluster, whose nodes the inventory lists."""

    controller: Host = required("The host of slurmctld.", "slurm-01")
    database: Host | None = optional(
        "The host of slurmdbd and its database. Without it the controller.", "slurm-02"
    )
    storage: Folder = required(
        "The folder that all nodes mount, below which volumes and images lie.", "/lustre/gpuplan"
    )
    containers: Literal["pyxis", "apptainer"] = required("What starts containers in jobs.", "pyxis")
    reservations: list[ReservationSpec] = Field(
        [],
        description="Nodes that are kept for workloads with a deadline; their jobs wait for it.",
        examples=[[{"workload": "full-70b", "start": "2026-12-01T08:00"}]],
    )
