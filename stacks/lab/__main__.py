"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import custom  # noqa: F401 - first: it changes what the others register
import pools
import workload

pulumi.export("addresses", workload.addresses)
pulumi.export(
    "workloads",
    {
        "desks": {"namespace": "lab-research", "account": "desks", "claims": []},
        "benches": {"namespace": "lab-research", "account": "benches", "claims": []},
        "stations": {"namespace": "lab-research", "account": "stations", "claims": []},
        "assistant": {
            "namespace": "lab-research",
            "account": "assistant",
            "claims": ["assistant-models"],
        },
    },
)
pulumi.export("pools", {"h100-sxm-80gb": pools.h100_sxm_80gb_nodes})
