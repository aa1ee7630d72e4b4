"""What the README of a stack on EKS says beside that of any cloud."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from gpuplan.backends.pulumi.clouds import readme
from gpuplan.backends.pulumi.clouds.aws.cluster import ADDONS
from gpuplan.emission import Section
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import Addons, Cloud, NodeImage
from gpuplan.render.environments import Verbatim

IMAGE = "/aws/service/eks/optimized-ami/{}/amazon-linux-2023/x86_64/nvidia/recommended"


def sections(plan: Plan, cloud: Cloud) -> Iterator[Section]:
    known = cloud.release
    own = {
        "addons": Verbatim(" ".join(ADDONS)),
        "addons_known": bool(known.addons and not cloud.existing),
        "addons_source": _cited(known.addons),
        "image_known": Verbatim(known.image.release if known.image else ""),
        "image_driver": Verbatim(known.image.driver if known.image else ""),
        "image_source": _cited(known.image),
        "image": Verbatim(f"{IMAGE.format(cloud.release.version)}/release_version"),
        "zones": Verbatim(shlex.quote(_subnets(cloud))),
        "blocks": any(g.capacity == "block" for g in cloud.groups),
        "karpenter": cloud.scaling == "karpenter",
    }
    yield from readme.sections(plan, cloud, "pulumi/aws", own)


def _cited(fact: Addons | NodeImage | None) -> Verbatim:
    return Verbatim(fact.source.removeprefix("catalog: ") if fact else "")


def _subnets(cloud: Cloud) -> str:
    pairs = ", ".join(f'"{zone}": "subnet-…"' for zone in cloud.zones)
    return f"{{{pairs}}}"
