"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import groups

pulumi.export("cluster", groups.cluster_name)
