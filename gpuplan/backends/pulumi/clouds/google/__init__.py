"""Pulumi programs for GKE: the cluster in `cloud/cluster`, its GPU nodes in `cloud/pools`."""

from __future__ import annotations

from gpuplan.backends.pulumi import project
from gpuplan.backends.pulumi.clouds import programs
from gpuplan.backends.pulumi.clouds.google import cluster, pools
from gpuplan.backends.pulumi.clouds.google.readme import sections
from gpuplan.backends.pulumi.clouds.programs import CloudProgram
from gpuplan.emission import Emission
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import Cloud
from gpuplan.render.tree import File

REQUIREMENTS = (project.PULUMI, project.GOOGLE)


def emit(plan: Plan) -> Emission:
    cloud = plan.cloud
    if cloud is None:
        return Emission()
    problems = (*cluster.problems(plan, cloud), *pools.problems(plan, cloud))
    parts = (programs.cluster(plan, cloud, cluster, REQUIREMENTS), _pools(plan, cloud))
    return programs.emission(plan, parts, problems, sections(plan, cloud))


def _pools(plan: Plan, cloud: Cloud) -> CloudProgram:
    return CloudProgram(
        part=programs.POOLS,
        files=(File("groups.py", pools.program(plan, cloud)),),
        modules=("groups",),
        exports=(("cluster", "groups.cluster_name"),),
        settings=tuple(pools.settings(plan)),
        requirements=REQUIREMENTS,
        resources=tuple(pools.resources(cloud)),
    )
