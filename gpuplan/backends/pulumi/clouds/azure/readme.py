"""What the README of a stack on AKS says of its cluster and its nodes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from gpuplan.backends.pulumi.clouds.azure import pools
from gpuplan.emission import Section
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import Cloud, Quota
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.markdown import code, escape

TEMPLATES = "pulumi/azure"


def sections(plan: Plan, cloud: Cloud) -> Iterator[Section]:
    """The cluster and the nodes come before what runs on them."""
    name = cloud.existing or plan.name
    said = {
        "new": cloud.existing is None,
        "cluster": Verbatim(shlex.quote(name)),
        "named": Verbatim(code(name)),
        "stack": Verbatim(shlex.quote(plan.name)),
        "region": Verbatim(shlex.quote(plan.region or "")),
        "release": Verbatim(cloud.release.version),
        "standard_until": Verbatim(cloud.release.standard_until),
        "extended_until": Verbatim(cloud.release.extended_until),
        "quotas": [Verbatim(_quota(q)) for q in cloud.quotas],
        "groups": [Verbatim(_group(plan, cloud, g)) for g in cloud.groups],
        "scales": cloud.scaling == "autoscaler",
        "reserved": any(g.reservation for g in cloud.groups),
        "together": any(g.together for g in cloud.groups),
    }
    for heading in ("Before", "Apply", "Remove"):
        text = render("markdown", f"{TEMPLATES}/{heading.lower()}.md.j2", **said)
        yield Section(heading, text)


def _group(plan: Plan, cloud: Cloud, group: pools.Group) -> str:
    own = code(pools.pool_name(plan, group))
    where = f"in zone {' or '.join(group.zones)}" if group.zones else "in no zone of its own"
    disk = "its own drive" if pools.ephemeral(plan, group) else "a managed disk"
    many = escape(f"{group.count} × {group.node_type}")
    size = f"{pools.disk_gib(plan, group)} GiB on {disk}"
    return f"{code(group.name)}, the pool {own}: {many}, {group.capacity}, {where}, {size}"


def _quota(quota: Quota) -> str:
    amount = f"{quota.amount:,} vCPUs"
    if quota.name is None:
        families = " and ".join(quota.families)
        return f"{amount} of {escape(families)}: no source states the quota's name"
    return f"{amount} of the quota “{escape(quota.name)}”"
