"""What the README of a stack in a cloud says of its cluster and its nodes."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Mapping

from gpuplan.emission import Section
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import Cloud, Quota
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.markdown import code, escape


def sections(
    plan: Plan, cloud: Cloud, templates: str, own: Mapping[str, object]
) -> Iterator[Section]:
    """The cluster and the nodes come before what runs on them. `templates` is the folder with
    `before`, `apply` and `remove`, and `own` what only this cloud's say."""
    name = cloud.existing or plan.name
    said = {
        "new": cloud.existing is None,
        "cluster": Verbatim(shlex.quote(name)),
        "named": Verbatim(code(name)),
        "stack": Verbatim(shlex.quote(plan.name)),
        "region": Verbatim(shlex.quote(plan.region or "")),
        "release": Verbatim(cloud.release.version),
        "standard_until": Verbatim(cloud.release.standard_until),
        "extended_until": Verbatim(cloud.release.extended_until or ""),
        "quotas": [Verbatim(_quota(q)) for q in cloud.quotas],
        "groups": list(map(Verbatim, _groups(cloud))),
        "scales": cloud.scaling == "autoscaler",
        **own,
    }
    for heading in ("Before", "Apply", "Remove"):
        text = render("markdown", f"{templates}/{heading.lower()}.md.j2", **said)
        yield Section(heading, text)


def _groups(cloud: Cloud) -> Iterator[str]:
    for group in cloud.groups:
        many = f"{group.count} × {group.node_type}"
        yield f"{code(group.name)}: {escape(many)}, {group.capacity}, in {' or '.join(group.zones)}"


def _quota(quota: Quota) -> str:
    amount = f"{quota.amount:,} {quota.unit}"
    if quota.name is None:
        families = " and ".join(quota.families)
        return (
            f"{amount} of {escape(families)}, {quota.capacity}: no source states the quota's name"
        )
    known = f" ({quota.code})" if quota.code else ""
    return f"{amount} of the quota “{escape(quota.name)}”{known}"
