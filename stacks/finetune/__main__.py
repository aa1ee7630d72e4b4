"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import workload

pulumi.export("addresses", workload.addresses)
