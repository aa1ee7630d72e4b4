"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import custom  # noqa: F401 - first: it changes what the others register
import workload

pulumi.export("addresses", workload.addresses)
pulumi.export(
    "workloads",
    {
        "full-8b": {
            "namespace": "finetune-training",
            "account": "full-8b",
            "claims": ["full-8b-models", "full-8b-checkpoints", "full-8b-dataset"],
        },
        "lora-70b": {
            "namespace": "finetune-training",
            "account": "lora-70b",
            "claims": ["lora-70b-models", "lora-70b-checkpoints", "lora-70b-dataset"],
        },
    },
)
