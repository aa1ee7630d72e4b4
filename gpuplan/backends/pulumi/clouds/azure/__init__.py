"""Pulumi programs for AKS: the cluster in `cloud/cluster`, its GPU nodes in `cloud/pools`."""

from __future__ import annotations

from gpuplan.backends.pulumi import project
from gpuplan.backends.pulumi.clouds import programs
from gpuplan.backends.pulumi.clouds.azure import cluster, pools
from gpuplan.backends.pulumi.clouds.azure.readme import sections
from gpuplan.backends.pulumi.clouds.programs import CloudProgram
from gpuplan.emission import Emission
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import Cloud
from gpuplan.render.tree import File

REQUIREMENTS = (project.PULUMI, project.AZURE)


def emit(plan: Plan) -> Emission:
    cloud = plan.cloud
    if cloud is None:
        return Emission()
    parts = (programs.cluster(plan, cloud, cluster, REQUIREMENTS), _pools(plan, cloud))
    return programs.emission(plan, parts, pools.problems(plan, cloud), sections(plan, cloud))


def _pools(plan: Plan, cloud: Cloud) -> CloudProgram:
    return CloudProgram(
        part=programs.POOLS,
        files=(File("pools.py", pools.program(plan, cloud)),),
        modules=("pools",),
        exports=(("cluster", "pools.cluster_name"),),
        settings=(programs.cluster_stack(plan),),
        requirements=REQUIREMENTS,
        resources=tuple(pools.resources(cloud)),
    )
