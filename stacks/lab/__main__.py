"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import pools
import workload

pulumi.export("addresses", workload.addresses)
pulumi.export("pools", {"h100-sxm-80gb": pools.h100_sxm_80gb_nodes})
