"""Values of AWS's device plugin for EFA."""

from __future__ import annotations

from gpuplan.backends.helm.mirrors import with_image
from gpuplan.kubernetes import nodes
from gpuplan.plan.model import Plan
from gpuplan.render.commented import Because, Tree
from gpuplan.vendors import vendor_of

# The chart's own default. Source: aws/eks-charts bfe91c4, stable/aws-efa-k8s-device-plugin.
REPOSITORY = "602401143452.dkr.ecr.us-west-2.amazonaws.com/eks/aws-efa-k8s-device-plugin"


def values(plan: Plan) -> Tree:
    """It runs where the instance type has EFA, and those nodes have the taint of GPUs."""
    tolerated = nodes.tolerations([vendor_of(None).taint])
    tree: Tree = {"tolerations": Because(tolerated, "GPU nodes keep other pods away")}
    return with_image(tree, REPOSITORY, plan.network)
