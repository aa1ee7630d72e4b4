"""Pulumi programs for EKS: the cluster in `cloud/cluster`, its GPU nodes in `cloud/pools`."""

from __future__ import annotations

from gpuplan.backends.pulumi import project
from gpuplan.backends.pulumi.clouds import programs
from gpuplan.backends.pulumi.clouds.aws import cluster, karpenter, pools
from gpuplan.backends.pulumi.clouds.aws.nodeconfig import user_data
from gpuplan.backends.pulumi.clouds.aws.readme import sections
from gpuplan.backends.pulumi.clouds.programs import CloudProgram
from gpuplan.emission import Emission
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.cloud import Cloud
from gpuplan.render.tree import File

REQUIREMENTS = (project.PULUMI, project.AWS)


def emit(plan: Plan) -> Emission:
    cloud = plan.cloud
    if cloud is None:
        return Emission()
    parts = (programs.cluster(plan, cloud, cluster, REQUIREMENTS), _pools(plan, cloud))
    return programs.emission(plan, parts, pools.problems(plan, cloud), sections(plan, cloud))


def _pools(plan: Plan, cloud: Cloud) -> CloudProgram:
    scaled = cloud.scaling == "karpenter"
    text = karpenter.program(plan, cloud) if scaled else pools.program(plan, cloud)
    nodes = (File(f"nodes/{group.name}.txt", user_data(group)) for group in cloud.groups)
    return CloudProgram(
        part=programs.POOLS,
        files=(File("groups.py", text), *nodes),
        modules=("groups",),
        exports=(("cluster", "groups.cluster_name"),),
        settings=tuple(karpenter.settings(plan, cloud) if scaled else pools.settings(plan, cloud)),
        requirements=(*REQUIREMENTS, project.KUBERNETES) if scaled else REQUIREMENTS,
        resources=tuple(karpenter.resources(cloud) if scaled else pools.resources(plan, cloud)),
    )
