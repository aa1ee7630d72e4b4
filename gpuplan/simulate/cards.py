"""What pods claim of a node beside resources, on paper: what drivers of Kubernetes' dynamic
resource allocation publish of network cards and of channels between GPUs. Sources: Kubernetes 1.34,
resource.k8s.io/v1; NVIDIA/k8s-dra-driver-gpu v25.12.0,
templates/compute-domain-workload-claim-template.tmpl.yaml."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuplan.plan.model import Plan
from gpuplan.simulate.kube import Object

API = "resource.k8s.io/v1"
DRIVER = "dra.net"  # google/dranet, which GKE runs
DOMAIN = "ComputeDomain"
CHANNELS = "compute-domain.nvidia.com"
CHANNEL_CLASS = "compute-domain-default-channel.nvidia.com"


def device_class(plan: Plan) -> Iterator[Object]:
    """The classes that the plan's pods name. The drivers' own may select by more."""
    if any(w.one_domain for w in plan.workloads):
        yield _class(CHANNEL_CLASS, CHANNELS)
    if plan.cloud is None or plan.cloud.network_class is None:
        return
    yield _class(plan.cloud.network_class, DRIVER)


def _class(name: str, driver: str) -> Object:
    selectors = [{"cel": {"expression": f'device.driver == "{driver}"'}}]
    return Object(
        {
            "apiVersion": API,
            "kind": "DeviceClass",
            "metadata": {"name": name},
            "spec": {"selectors": selectors},
        }
    )


def cards_of(plan: Plan, pool: str, node: str) -> Iterator[Object]:
    """The cards of a node of the pool, and the one channel that a node has for a pod."""
    if any(w.one_domain and w.node_pool == pool for w in plan.workloads):
        yield _slice(node, "channels", CHANNELS, ["channel-0"])
    claimed = plan.cloud if plan.cloud and plan.cloud.network_class else None
    cards = claimed.cards_of(pool) if claimed else None
    if cards is not None:
        yield _slice(node, "cards", DRIVER, [f"card-{number}" for number in range(cards.devices)])


def _slice(node: str, suffix: str, driver: str, devices: Iterable[str]) -> Object:
    spec = {
        "driver": driver,
        "nodeName": node,
        "pool": {"name": node, "generation": 1, "resourceSliceCount": 1},
        "devices": [{"name": name} for name in devices],
    }
    return Object(
        {
            "apiVersion": API,
            "kind": "ResourceSlice",
            "metadata": {"name": f"{node}-{suffix}"},
            "spec": spec,
        }
    )


def channels(objects: Iterable[Object]) -> list[Object]:
    """The template of claims that the driver makes of each ComputeDomain."""
    return [_template(o) for o in objects if o.tree["kind"] == DOMAIN]


def _template(domain: Object) -> Object:
    own, spec = domain.tree["metadata"], domain.tree["spec"]
    request = {"name": "channel", "exactly": {"deviceClassName": CHANNEL_CLASS}}
    metadata = {
        "name": spec["channel"]["resourceClaimTemplate"]["name"],
        "namespace": own["namespace"],
    }
    return Object(
        {
            "apiVersion": API,
            "kind": "ResourceClaimTemplate",
            "metadata": metadata,
            "spec": {"spec": {"devices": {"requests": [request]}}},
        }
    )
