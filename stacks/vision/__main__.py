"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import custom  # noqa: F401 - first: it changes what the others register
import workload

pulumi.export("addresses", workload.addresses)
pulumi.export(
    "workloads",
    {
        "tags": {"namespace": "vision-uploads", "account": "tags", "claims": ["tags-models"]},
        "search": {"namespace": "vision-uploads", "account": "search", "claims": ["search-models"]},
        "archive": {
            "namespace": "vision-uploads",
            "account": "archive",
            "claims": ["archive-models", "archive-requests", "archive-results"],
        },
        "learn": {
            "namespace": "vision-uploads",
            "account": "learn",
            "claims": ["learn-models", "learn-checkpoints", "learn-dataset"],
        },
    },
)
