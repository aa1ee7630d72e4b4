"""Pulumi programs for AKS: the cluster in `cloud/cluster`, its GPU nodes in `cloud/pools`."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.backends.pulumi import project
from gpuplan.backends.pulumi.clouds.azure import cluster, pools
from gpuplan.backends.pulumi.clouds.azure.readme import sections
from gpuplan.emission import Emission
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import Cloud
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.tree import File, FileTree

CLUSTER, POOLS = "cloud/cluster/", "cloud/pools/"
REQUIREMENTS = (project.PULUMI, project.AZURE)


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
    exports = [Verbatim('pulumi.export("cluster", pools.cluster_name)')]
    main = {"modules": [Verbatim("pools")], "exports": exports}
    yield File(f"{POOLS}__main__.py", render("python", "pulumi/main.py.j2", **main))
    yield File(f"{POOLS}pools.py", pools.program(plan, cloud))
    yield from project.files(
        plan,
        pools.settings(plan),
        REQUIREMENTS,
        pools.resources(cloud),
        part="-pools",
        folder=POOLS,
    )
