"""Values of the chart of NVIDIA's DRA driver, of which only ComputeDomains are used.

Source: deployments/helm/nvidia-dra-driver-gpu/values.yaml of NVIDIA/k8s-dra-driver-gpu at v25.12.0,
and its templates/validation.yaml.
"""

from __future__ import annotations

from gpuplan.backends.helm.mirrors import with_image
from gpuplan.kubernetes import nodes
from gpuplan.plan.model import Plan
from gpuplan.render.commented import Because, Tree
from gpuplan.vendors import vendor_of

REPOSITORY = "nvcr.io/nvidia/k8s-dra-driver-gpu"


def values(plan: Plan) -> Tree:
    """Only keys that differ from the chart's defaults, each with its reason."""
    tolerated = nodes.tolerations([vendor_of(None).taint])
    root = "the GPU operator's driver; / on nodes that come with one"
    plugin = "the device plugin offers the GPUs"
    tree: Tree = {
        "nvidiaDriverRoot": Because("/run/nvidia/driver", root),
        "resources": {"gpus": {"enabled": Because(value=False, reason=plugin)}},
        "kubeletPlugin": {"tolerations": Because(tolerated, "GPU nodes keep other pods away")},
    }
    return with_image(tree, REPOSITORY, plan.network)
