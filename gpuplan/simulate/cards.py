"""Network cards that pods claim of a node, on paper: what a driver of Kubernetes' dynamic resource
allocation publishes. Source: Kubernetes 1.34, resource.k8s.io/v1."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.model import Plan
from gpuplan.simulate.kube import Object

API = "resource.k8s.io/v1"
DRIVER = "dra.net"  # google/dranet, which GKE runs


def device_class(plan: Plan) -> Iterator[Object]:
    """The class that the plan's pods name. The cloud's own may select by more than the driver."""
    if plan.cloud is None or plan.cloud.network_class is None:
        return
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    yield Object(
        {
            "apiVersion": API,
            "kind": "DeviceClass",
            "metadata": {"name": plan.cloud.network_class},
            "spec": {"selectors": selectors},
        }
    )


def cards_of(plan: Plan, pool: str, node: str) -> Iterator[Object]:
    """The cards of a node of the pool."""
    claimed = plan.cloud if plan.cloud and plan.cloud.network_class else None
    cards = claimed.cards_of(pool) if claimed else None
    if cards is None:
        return
    spec = {
        "driver": DRIVER,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": f"card-{number}"} for number in range(cards.devices)],
    }
    yield Object(
        {
            "apiVersion": API,
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-cards"},
            "spec": spec,
        }
    )
