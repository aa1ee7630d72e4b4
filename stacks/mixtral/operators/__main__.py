"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import addons
import cluster

pulumi.export("clusterUid", cluster.cluster_uid)
pulumi.export("charts", {"gpu-operator": "v26.3.3"})
