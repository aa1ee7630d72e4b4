"""The variables by which programs in containers find proxies, mirrors and object storage."""

from __future__ import annotations

from gpuplan.plan.outside.network import Network

# What is inside a cluster: no proxy knows its names.
INSIDE = ("localhost", "127.0.0.1", "::1", ".svc", ".cluster.local")


def reach(network: Network | None) -> dict[str, str]:
    """Both cases of each proxy variable: curl reads one, others the other. Sources: huggingface_hub
    (HF_ENDPOINT, HF_HUB_OFFLINE), botocore (AWS_ENDPOINT_URL_S3)."""
    if network is None:
        return {}
    values: dict[str, str] = {}
    if network.hub:
        values["HF_ENDPOINT"] = network.hub
    if network.offline:
        values["HF_HUB_OFFLINE"] = "1"
    if network.object_storage:
        values["AWS_ENDPOINT_URL_S3"] = network.object_storage
    if proxy := network.proxy:
        pairs = {"HTTP_PROXY": proxy.http, "HTTPS_PROXY": proxy.https}
        pairs["NO_PROXY"] = ",".join((*INSIDE, *proxy.exceptions))
        for name, value in pairs.items():
            if value:
                values |= {name: value, name.lower(): value}
    return values
