"""Who may talk to whom: nobody, then what each workload needs."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.engines.container import listening_port
from gpuplan.kubernetes import naming
from gpuplan.kubernetes.objects import KubernetesObject, build
from gpuplan.kubernetes.scene import Scene
from gpuplan.plan.model import Plan
from gpuplan.render.commented import Because, Tree

# Cloud credentials are served there, and no workload here needs them. Link-local addresses, and the
# addresses of AWS's and of Google's service in IPv6, which are none.
OUTSIDE = {
    "0.0.0.0/0": ["169.254.0.0/16"],
    "::/0": ["fe80::/10", "fd00:ec2::254/128", "fd20:ce::254/128"],
}
NODE_LOCAL_DNS = "169.254.20.10/32"  # where Kubernetes' NodeLocal DNSCache listens


def service(scene: Scene, ports: list[Tree], **spec: object) -> KubernetesObject:
    """A name for the workload's pods; `spec` says what kind of service it is."""
    tree = {**spec, "selector": naming.selector(scene.plan, scene.workload), "ports": ports}
    body = {"metadata": scene.metadata(), "spec": tree}
    return scene.build("v1", "Service", body, skip_await=True)


def policies(plan: Plan, scenes: tuple[Scene, ...]) -> Iterator[KubernetesObject]:
    for tenant in plan.tenants:
        yield _default_deny(plan, tenant.name)
    for scene in scenes:
        yield _workload(scene)


def _default_deny(plan: Plan, tenant: str) -> KubernetesObject:
    metadata = {
        "name": "default-deny",
        "namespace": naming.namespace_name(plan, tenant),
        "labels": {"app.kubernetes.io/managed-by": naming.MANAGER},
    }
    return build(
        naming.tenant_key(tenant),
        "networking.k8s.io/v1",
        "NetworkPolicy",
        "network",
        {
            "metadata": metadata,
            "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
        },
        depends_on=(f"Namespace/{naming.tenant_key(tenant)}",),
    )


def _workload(scene: Scene) -> KubernetesObject:
    own = {"podSelector": {"matchLabels": naming.selector(scene.plan, scene.workload)}}
    peers = [own] if scene.workload.nodes_per_replica > 1 else []
    ingress = [{"from": peers}] if peers else []
    egress: list[Tree] = [_dns(), _downloads(), *([{"to": peers}] if peers else [])]
    if (port := listening_port(scene.workload)) is not None:
        ingress.append(_clients(scene, port))
    return scene.build(
        "networking.k8s.io/v1",
        "NetworkPolicy",
        {
            "metadata": scene.metadata(),
            "spec": {
                **own,
                "policyTypes": ["Ingress", "Egress"],
                "ingress": ingress or None,
                "egress": egress,
            },
        },
        group="network",
    )


def _clients(scene: Scene, port: int) -> Tree:
    label = f"{naming.CLIENT_LABEL}/{scene.namespace}"
    reason = f"the tenant's own pods, and namespaces labelled {label}=true"
    sources = [{"podSelector": {}}, {"namespaceSelector": {"matchLabels": {label: "true"}}}]
    return {"from": Because(sources, reason), "ports": [{"protocol": "TCP", "port": port}]}


def _dns() -> Tree:
    system = {"matchLabels": {naming.NAMESPACE_LABEL: "kube-system"}}
    return {
        "to": [{"namespaceSelector": system}, {"ipBlock": {"cidr": NODE_LOCAL_DNS}}],
        "ports": [{"protocol": "UDP", "port": 53}, {"protocol": "TCP", "port": 53}],
    }


def _downloads() -> Tree:
    blocks = [{"ipBlock": {"cidr": c, "except": inside}} for c, inside in OUTSIDE.items()]
    to = Because(blocks, "weights and data over HTTPS, but not the cloud's metadata")
    return {"to": to, "ports": [{"protocol": "TCP", "port": 443}]}
