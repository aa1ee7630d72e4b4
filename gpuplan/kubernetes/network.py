"""Who may talk to whom: nobody, then what each workload needs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from gpuplan.diagnostics import Diagnostic
from gpuplan.engines.container import listening_port
from gpuplan.kubernetes import naming, problems
from gpuplan.kubernetes.objects import KubernetesObject, build
from gpuplan.kubernetes.scene import Scene
from gpuplan.plan.model import Plan
from gpuplan.plan.outside.network import HTTPS, KUBE_DNS, Dns, Network, port_of, registry_of
from gpuplan.render.commented import Because, Tree

# Cloud credentials are served there, and no workload here needs them. Link-local addresses, and the
# addresses of AWS's and of Google's service in IPv6, which are none.
OUTSIDE = {
    "0.0.0.0/0": ["169.254.0.0/16"],
    "::/0": ["fe80::/10", "fd00:ec2::254/128", "fd20:ce::254/128"],
}


def service(
    scene: Scene,
    ports: list[Tree],
    named: Scene | None = None,
    only: Mapping[str, str] | None = None,
    **spec: object,
) -> KubernetesObject:
    """A name for the workload's pods, of a group for the one that listens; that of `named`, where
    it is another's. `only` are labels of those pods that it is for, `spec` says what kind of
    service it is."""
    selector = scene.selector | dict(only or {})
    if scene.grouped:
        selector[naming.ROLE_LABEL] = naming.LEADS
    tree = {**spec, "selector": selector, "ports": ports}
    owner = named or scene
    body = {"metadata": owner.metadata(), "spec": tree}
    return owner.build("v1", "Service", body, skip_await=True)


def policies(plan: Plan, scenes: tuple[Scene, ...]) -> Iterator[KubernetesObject]:
    for tenant in plan.tenants:
        yield _default_deny(plan, tenant.name)
    for scene in scenes:
        yield _workload(scene)


def reach_problems(plan: Plan) -> Iterator[Diagnostic]:
    """Servers and images that the plan names and pods do not reach."""
    network = plan.network
    if network is None:
        return
    ways = {port for rule in network.egress for port in rule.ports}
    for server in filter(None, (network.hub, network.object_storage)):
        if not (network.internet or network.proxy or port_of(server) in ways):
            yield problems.closed_server(server, port_of(server))
    for workload in plan.workloads:
        if network.offline and workload.model:
            weights = "its weights and data" if workload.training else "its weights"
            yield problems.offline(workload, weights)
        registry, _ = registry_of(workload.engine.image)
        mirrors = dict(network.images)
        mirrored = any(workload.engine.image.startswith(f"{m}/") for m in mirrors.values())
        if mirrors and registry not in mirrors and not mirrored:
            yield problems.no_mirror(workload, workload.engine.image, registry)


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
    peers = [own] if scene.workload.joined else []
    ingress = [{"from": peers}] if peers else []
    egress = [*rules(scene.plan).values(), *([{"to": peers}] if peers else [])]
    if (port := listening_port(scene.workload)) is not None:
        ingress.append(clients(scene.namespace, port))
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


def clients(namespace: str, port: int) -> Tree:
    """Who of a tenant, or by its leave, may ask its pods."""
    label = f"{naming.CLIENT_LABEL}/{namespace}"
    reason = f"the tenant's own pods, and namespaces labelled {label}=true"
    sources = [{"podSelector": {}}, {"namespaceSelector": {"matchLabels": {label: "true"}}}]
    return {"from": Because(sources, reason), "ports": [{"protocol": "TCP", "port": port}]}


def rules(plan: Plan) -> dict[str, Tree]:
    """What every workload needs, names and servers outside, by a name for each."""
    network = plan.network or Network()
    egress = {"dns": _dns(network.dns)}
    if network.internet:
        reason = "weights and data over HTTPS, but not the cloud's metadata"
        egress["https"] = _outside(HTTPS, reason)
    if proxy := network.proxy:
        for port in sorted({port_of(s) for s in (proxy.http, proxy.https) if s}):
            reason = "the proxy to all servers outside"
            to = _to(proxy.address, port, reason) if proxy.address else _outside(port, reason)
            egress[f"proxy_{port}"] = to
    for number, rule in enumerate(network.egress):
        for port in rule.ports:
            reason = rule.reason or "as platform.network.egress says"
            to = _to(rule.to, port, reason) if rule.to else _outside(port, reason)
            egress[f"egress_{number}_{port}"] = to
    return egress | {f"servers_{port}": rule for port, rule in _servers(network)}


def _servers(network: Network) -> Iterator[tuple[int, Tree]]:
    """Ports of named servers that nothing else opens. No policy knows hosts by their names."""
    opened = {HTTPS} if network.internet else set()
    if network.internet:
        for server in filter(None, (network.hub, network.object_storage)):
            if (port := port_of(server)) not in opened:
                opened.add(port)
                yield port, _outside(port, f"{server}, wherever it is")


def _dns(dns: Dns | None) -> Tree:
    dns = dns or KUBE_DNS
    peers: list[Tree] = [{"ipBlock": {"cidr": address}} for address in dns.addresses]
    if dns.namespace:
        system = {"matchLabels": {naming.NAMESPACE_LABEL: dns.namespace}}
        peers.insert(0, {"namespaceSelector": system})
    protocols = ("UDP", "TCP")
    ports = [{"protocol": name, "port": port} for port in dns.ports for name in protocols]
    return {"to": peers, "ports": ports}


def _outside(port: int, reason: str) -> Tree:
    blocks = [{"ipBlock": {"cidr": c, "except": inside}} for c, inside in OUTSIDE.items()]
    return {"to": Because(blocks, reason), "ports": [{"protocol": "TCP", "port": port}]}


def _to(address: str, port: int, reason: str) -> Tree:
    block = [{"ipBlock": {"cidr": address}}]
    return {"to": Because(block, reason), "ports": [{"protocol": "TCP", "port": port}]}
