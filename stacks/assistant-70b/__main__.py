"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import custom  # noqa: F401 - first: it changes what the others register
import pools
import workload

pulumi.export("addresses", workload.addresses)
pulumi.export(
    "workloads",
    {
        "assistant": {
            "namespace": "assistant-70b-platform",
            "account": "assistant",
            "claims": ["assistant-models"],
        },
    },
)
pulumi.export("pools", {"h100-sxm-80gb": pools.h100_sxm_80gb_nodes})
