"""Several regions that carry one load: `platform.regions`."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from gpuplan.manifest.base import Count, Document, Text, optional, required
from gpuplan.manifest.cluster import CapacityReservationSpec, ClusterName, Zone
from gpuplan.manifest.quantities import Seconds


class RegionSpec(Document):
    """A region that may be taken, and what nobody but its user knows of it."""

    region: Text = required("The region, as the provider writes it.", "eu-west-1")
    zones: Annotated[list[Zone], Field(min_length=1)] | None = optional(
        "Where its nodes may be, the first for pools that live in one zone.",
        ["eu-west-1a", "eu-west-1b"],
    )
    existing: ClusterName | None = optional(
        "The name of a cluster that is there. Without it the region's stack makes one.", "shared"
    )
    reservations: list[CapacityReservationSpec] = Field(
        [],
        description="Capacity that was reserved in it.",
        examples=[
            [
                {
                    "node": "p5.48xlarge",
                    "id": "cr-0123456789abcdef0",
                    "kind": "block",
                    "zone": "eu-west-1a",
                }
            ]
        ],
    )
    latency: Seconds | None = optional("How far it is from those who use it.", "18 ms")
    residency: Text | None = optional("Whose law its data is under.", "EU")
    quotas: dict[Text, Count] = Field(
        {},
        description="What the account has been granted, by the name or code that the stack's "
        "README has. Without an entry nothing is held against it.",
        examples=[{"L-DB2E81BA": 96}],
    )


class RegionsSpec(Document):
    """Regions of which any one may be lost: what is left carries the peak."""

    places: Annotated[list[RegionSpec], Field(min_length=2, max_length=12)] = required(
        "Those that may be taken.", [{"region": "eu-west-1"}, {"region": "eu-central-1"}]
    )
    count: Annotated[int, Field(ge=2, le=4)] | None = optional(
        "How many are taken. Without it 2, 3 or 4, as costs least.", 2
    )
    latency: Seconds | None = optional(
        "The most that a region may be away; one that nobody says it of is left out.", "60 ms"
    )
    residency: Annotated[list[Text], Field(min_length=1)] | None = optional(
        "Where data may be; a region that nobody says it of is left out.", ["EU"]
    )
