"""What the README of a stack on AKS says beside that of any cloud."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.pulumi.clouds import readme
from gpuplan.backends.pulumi.clouds.azure import pools
from gpuplan.emission import Section
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import Cloud, Group
from gpuplan.render.environments import Verbatim
from gpuplan.render.markdown import code


def sections(plan: Plan, cloud: Cloud) -> Iterator[Section]:
    own = {
        "pools": [Verbatim(_pool(plan, g)) for g in cloud.groups],
        "reserved": any(g.reservation for g in cloud.groups),
    }
    yield from readme.sections(plan, cloud, "pulumi/azure", own)


def _pool(plan: Plan, group: Group) -> str:
    disk = "a drive of the machine" if pools.ephemeral(plan, group) else "a managed disk"
    name = code(pools.pool_name(plan, group))
    return (
        f"{code(group.name)} is the pool {name}, with {pools.disk_gib(plan, group)} GiB on {disk}"
    )
