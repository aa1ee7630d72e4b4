"""What the README of a stack on EKS says of its cluster and its nodes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from gpuplan.backends.pulumi.clouds.aws.cluster import ADDONS
from gpuplan.emission import Section
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import Cloud, Quota
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.markdown import code, escape

TEMPLATES = "pulumi/aws"
IMAGE = "/aws/service/eks/optimized-ami/{}/amazon-linux-2023/x86_64/nvidia/recommended"


def sections(plan: Plan, cloud: Cloud) -> Iterator[Section]:
    """The cluster and the nodes come before what runs on them."""
    region = plan.region or ""
    name = cloud.existing or plan.name
    blocks = any(g.capacity == "block" for g in cloud.groups)
    said = {
        "new": cloud.existing is None,
        "cluster": Verbatim(shlex.quote(name)),
        "named": Verbatim(code(name)),
        "stack": Verbatim(shlex.quote(plan.name)),
        "region": Verbatim(shlex.quote(region)),
        "release": Verbatim(cloud.release.version),
        "standard_until": Verbatim(cloud.release.standard_until),
        "extended_until": Verbatim(cloud.release.extended_until),
        "addons": Verbatim(" ".join(ADDONS)),
        "image": Verbatim(f"{IMAGE.format(cloud.release.version)}/release_version"),
        "quotas": [Verbatim(_quota(q)) for q in cloud.quotas],
        "groups": list(map(Verbatim, _groups(cloud))),
        "zones": Verbatim(shlex.quote(_subnets(cloud))),
        "blocks": blocks,
        "scales": cloud.scaling == "autoscaler",
        "karpenter": cloud.scaling == "karpenter",
    }
    for heading in ("Before", "Apply", "Remove"):
        text = render("markdown", f"{TEMPLATES}/{heading.lower()}.md.j2", **said)
        yield Section(heading, text)


def _groups(cloud: Cloud) -> Iterator[str]:
    for group in cloud.groups:
        many = f"{group.count} × {group.node_type}"
        yield f"{code(group.name)}: {escape(many)}, {group.capacity}, in {' or '.join(group.zones)}"


def _subnets(cloud: Cloud) -> str:
    pairs = ", ".join(f'"{zone}": "subnet-…"' for zone in cloud.zones)
    return f"{{{pairs}}}"


def _quota(quota: Quota) -> str:
    amount = f"{quota.amount:,} vCPUs"
    if quota.name is None:
        families = " and ".join(quota.families)
        return (
            f"{amount} of {escape(families)}, {quota.capacity}: no source states the quota's name"
        )
    known = f" ({quota.code})" if quota.code else ""
    return f"{amount} of the quota “{escape(quota.name)}”{known}"
