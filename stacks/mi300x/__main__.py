"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import custom  # noqa: F401 - first: it changes what the others register
import workload

pulumi.export("addresses", workload.addresses)
pulumi.export(
    "workloads",
    {
        "helpdesk": {
            "namespace": "mi300x-support",
            "account": "helpdesk",
            "claims": ["helpdesk-models"],
        },
    },
)
