"""The stack's entry point. Written by gpuplan: change the manifest and compile it again."""

import pulumi

import custom  # noqa: F401 - first: it changes what the others register
import workload

pulumi.export("addresses", workload.addresses)
pulumi.export(
    "workloads",
    {
        "embedder": {"namespace": "search", "account": "embedder", "claims": ["embedder-models"]},
        "reranker": {"namespace": "search", "account": "reranker", "claims": ["reranker-models"]},
        "corpus": {
            "namespace": "search",
            "account": "corpus",
            "claims": ["corpus-models", "corpus-requests", "corpus-results"],
        },
    },
)
