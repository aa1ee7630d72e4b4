"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import pools

pulumi.export("cluster", pools.cluster_name)
