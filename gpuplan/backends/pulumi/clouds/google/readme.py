"""What the README of a stack on GKE says beside that of any cloud."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.pulumi.clouds import readme
from gpuplan.emission import Section
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import Cloud


def sections(plan: Plan, cloud: Cloud) -> Iterator[Section]:
    own = {
        "claims": any(g.network_cards for g in cloud.groups),
        "queued": any(g.capacity == "queued" for g in cloud.groups),
        "flex": any(g.capacity == "flex-start" for g in cloud.groups),
        "block": any(g.nvme == "block" and g.nvme_drives for g in cloud.groups),
    }
    yield from readme.sections(plan, cloud, "pulumi/google", own)
