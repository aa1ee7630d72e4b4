"""What NVIDIA's network operator brings to nodes: the driver of their InfiniBand adapters, and a
device plugin that offers each of them to pods.

Sources: Azure/aks-rdma-infiniband 700dabb, configs/nicclusterpolicy; Mellanox/network-operator
85afd6d (v26.4.1), hack/release.yaml, api/v1alpha1.
"""

from __future__ import annotations

import json

from gpuplan.kubernetes import naming, nodes
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.network import mirrored
from gpuplan.render.commented import Because, Tree

API_VERSION, KIND, NAME = "mellanox.com/v1alpha1", "NicClusterPolicy", "nic-cluster-policy"
REGISTRY = "nvcr.io/nvidia/mellanox"
# The images of a release of the operator: of the driver, of the device plugin.
IMAGES = {"26.4.1": ("doca3.4.1-26.04-1.1.0.0-1", "network-operator-v26.4.1")}
VENDOR = "15b3"  # of PCI: Mellanox
BLACKLIST = "/host/etc/modprobe.d/blacklist-ofed-modules.conf"


def known(version: str) -> bool:
    return version.removeprefix("v") in IMAGES


def policy(plan: Plan, version: str) -> Tree:
    """The one policy of the cluster, for nodes of the plan whose pods talk over InfiniBand."""
    driver, plugin = IMAGES[version.removeprefix("v")]
    repository = mirrored(REGISTRY, plan.network)
    secrets = list(plan.network.pull_secrets) if plan.network else []
    pulled: Tree = {"imagePullSecrets": secrets} if secrets else {}
    spec: Tree = {
        "nodeAffinity": Because(_affinity(plan), "adapters of other nodes carry their Ethernet"),
        "tolerations": _tolerations(plan),
        "ofedDriver": {
            "image": "doca-driver",
            "repository": repository,
            "version": driver,
            **pulled,
            "env": Because(
                [{"name": "OFED_BLACKLIST_MODULES_FILE", "value": BLACKLIST}],
                "without it modules of the system come first (Mellanox/doca-driver-build #52)",
            ),
            "upgradePolicy": {
                "autoUpgrade": Because(value=False, reason="an upgrade ends what runs on a node")
            },
        },
        "sriovDevicePlugin": {
            "image": "sriov-network-device-plugin",
            "repository": repository,
            "version": plugin,
            **pulled,
            "config": Because(_plugin(plan), "a device of the resource for each adapter"),
        },
    }
    return {"metadata": {"name": NAME}, "spec": spec}


def _affinity(plan: Plan) -> Tree:
    groups = plan.cloud.groups if plan.cloud else ()
    pools = list(dict.fromkeys(g.pool for g in groups if g.network_cards))
    own = {"key": naming.STACK_LABEL, "operator": "In", "values": [plan.name]}
    named = {"key": naming.POOL_LABEL, "operator": "In", "values": pools}
    terms = [{"matchExpressions": [own, named]}]
    return {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}


def _tolerations(plan: Plan) -> list[Tree]:
    keys = dict.fromkeys(key for pool in plan.node_pools for key in nodes.taints(plan, pool))
    return nodes.tolerations(keys)


def _plugin(plan: Plan) -> str:
    """The plugin's configuration, for adapters of the vendor whose link is InfiniBand."""
    resource = plan.fabric.resource if plan.fabric else None
    prefix, _, name = (resource or "").partition("/")
    selectors = {"vendors": [VENDOR], "linkTypes": ["infiniband"], "isRdma": True}
    entry = {"resourcePrefix": prefix, "resourceName": name, "selectors": selectors}
    return json.dumps({"resourceList": [entry]})
