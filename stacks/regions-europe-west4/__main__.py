"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import custom  # noqa: F401 - first: it changes what the others register
import workload

pulumi.export("addresses", workload.addresses)
pulumi.export(
    "workloads",
    {
        "tune": {
            "namespace": "regions-europe-west4-support",
            "account": "tune",
            "claims": ["tune-models", "tune-checkpoints", "tune-dataset"],
        },
        "assistant": {
            "namespace": "regions-europe-west4-support",
            "account": "assistant",
            "claims": [],
        },
    },
)
