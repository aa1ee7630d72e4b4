"""The cluster of a cloud's target: `platform.cluster`."""

from typing import Annotated, Literal

from pydantic import Field

from gpuplan.manifest.base import Document, Text, optional, required
from gpuplan.manifest.quantities import Seconds

ZONE = r"^([a-z]+(-[a-z]+)+-?[0-9]+-?[a-z]|[1-9])$"
Zone = Annotated[
    str,
    Field(
        pattern=ZONE,
        description="A zone as the provider writes it: us-east-2a, europe-west4-b, 1.",
    ),
]
ClusterName = Annotated[
    str,
    Field(
        pattern=r"^[0-9A-Za-z][A-Za-z0-9_-]{0,99}$",
        description="Letters, digits, '-' and '_', at most 100 characters.",
    ),
]


class CapacityReservationSpec(Document):
    """Machines that were reserved; they are in one zone."""

    node: Text = required("The instance type that it holds.", "p5.48xlarge")
    id: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z0-9._/-]{1,400}$",
            description="As the provider writes it: cr-0123456789abcdef0 of AWS, a name of Google.",
        ),
    ] = required("The reservation, or AWS's Capacity Block.", "cr-0123456789abcdef0")
    kind: Literal["on-demand", "block"] = required(
        "on-demand: held until it is given back. block: AWS's, for a time that is paid up front.",
        "block",
    )
    zone: Zone = required("Where it is.", "us-east-2a")
    placement_group: Annotated[str, Field(pattern=r"^[A-Za-z0-9._-]{1,255}$")] | None = optional(
        "The placement group that it was made with. Without it the machines are in none.",
        "trainers",
    )


class ProvisioningSpec(Document):
    """Machines that come when the provider has some, and go again."""

    node: Text = required("The instance type.", "a3-highgpu-8g")
    kind: Literal["flex-start", "queued"] = required(
        "flex-start: each by itself. queued: all that a ProvisioningRequest asks for at once.",
        "flex-start",
    )
    longest: Seconds = required("How long a machine stays at most.", "3 d")


class ClusterSpec(Document):
    """A cluster that a cloud manages."""

    existing: ClusterName | None = optional(
        "The name of a cluster that is there. Without it the stack makes one.", "shared"
    )
    zones: Annotated[list[Zone], Field(min_length=1)] | None = optional(
        "Where its nodes may be, the first for pools that live in one zone.",
        ["us-east-2a", "us-east-2b"],
    )
    scaling: Literal["fixed", "autoscaler", "karpenter"] | None = optional(
        "fixed, which is the default: as many nodes as the plan has. autoscaler, karpenter: from "
        "none to as many, by cluster-autoscaler or by Karpenter.",
        "autoscaler",
    )
    driver: Literal["provider", "operator"] | None = optional(
        "Who installs the GPU driver and the container toolkit, where there is a choice. provider: "
        "they come with the nodes. operator: NVIDIA's GPU operator, which is the default on AKS "
        "where every machine takes its driver.",
        "operator",
    )
    local_disks: Literal["ephemeral", "block"] | None = optional(
        "What drives of the machines themselves are for. ephemeral, which is the default: images "
        "and scratch. block: left as they are, for whoever mounts them.",
        "block",
    )
    provisioning: list[ProvisioningSpec] = Field(
        [],
        description="Instance types that are waited for.",
        examples=[[{"node": "a3-highgpu-8g", "kind": "flex-start", "longest": "3 d"}]],
    )
    reservations: list[CapacityReservationSpec] = Field(
        [],
        description="Capacity that was reserved.",
        examples=[
            [
                {
                    "node": "p5.48xlarge",
                    "id": "cr-0123456789abcdef0",
                    "kind": "block",
                    "zone": "us-east-2a",
                }
            ]
        ],
    )
