"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import custom  # noqa: F401 - first: it changes what the others register
import workload

pulumi.export("addresses", workload.addresses)
pulumi.export(
    "workloads",
    {"reader": {"namespace": "nvl72-legal", "account": "reader", "claims": ["reader-models"]}},
)
