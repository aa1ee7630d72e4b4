"""What a Slurm cluster has beside its machines: `platform.slurm`."""

from typing import Annotated, Literal

from pydantic import Field

from gpuplan.manifest.base import Document, optional, required

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
