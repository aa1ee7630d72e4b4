"""Pulumi programs for EKS: the cluster in `cloud/cluster`, its GPU nodes in `cloud/pools`."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.pulumi import project
from gpuplan.backends.pulumi.clouds.aws import cluster, karpenter, pools
from gpuplan.backends.pulumi.clouds.aws.nodeconfig import user_data
from gpuplan.backends.pulumi.clouds.aws.readme import sections
from gpuplan.emission import Emission
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import Cloud
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.tree import File, FileTree

CLUSTER, POOLS = "cloud/cluster/", "cloud/pools/"
REQUIREMENTS = (project.PULUMI, project.AWS)


def emit(plan: Plan) -> Emission:
    if plan.cloud is None:
        return Emission()
    files = (*_cluster(plan, plan.cloud), *_pools(plan, plan.cloud))
    return Emission(
        files=FileTree(files),
        diagnostics=tuple(pools.problems(plan, plan.cloud)),
        sections=tuple(sections(plan, plan.cloud)),
    )


def _cluster(plan: Plan, cloud: Cloud) -> Iterator[File]:
    yield from cluster.files(plan, cloud, CLUSTER)
    yield from project.files(
        plan,
        cluster.settings(cloud),
        REQUIREMENTS,
        cluster.resources(cloud),
        part="-cluster",
        folder=CLUSTER,
    )


def _pools(plan: Plan, cloud: Cloud) -> Iterator[File]:
    exports = [Verbatim('pulumi.export("cluster", groups.cluster_name)')]
    main = {"modules": [Verbatim("groups")], "exports": exports}
    yield File(f"{POOLS}__main__.py", render("python", "pulumi/main.py.j2", **main))
    for group in cloud.groups:
        yield File(f"{POOLS}nodes/{group.name}.txt", user_data(group))
    requirements: tuple[str, ...] = REQUIREMENTS
    if cloud.scaling == "karpenter":
        program, settings = karpenter.program(plan, cloud), karpenter.settings(plan)
        resources = karpenter.resources(cloud)
        requirements += (project.KUBERNETES,)
    else:
        program, settings = pools.program(plan, cloud), pools.settings(plan, cloud)
        resources = pools.resources(plan, cloud)
    yield File(f"{POOLS}groups.py", program)
    yield from project.files(plan, settings, requirements, resources, part="-pools", folder=POOLS)
