"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import custom  # noqa: F401 - first: it changes what the others register
import workload

pulumi.export("addresses", workload.addresses)
pulumi.export(
    "workloads",
    {
        "full-70b": {
            "namespace": "tune-70b-training",
            "account": "full-70b",
            "claims": ["full-70b-models", "full-70b-checkpoints", "full-70b-dataset"],
        },
    },
)
