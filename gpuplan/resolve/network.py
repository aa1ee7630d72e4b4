"""`platform.network` → how pods reach names, servers and images."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.diagnostics import Diagnostic, error
from gpuplan.manifest.network import DnsSpec, NetworkSpec
from gpuplan.manifest.v1 import Platform
from gpuplan.plan.outside.network import KUBE_DNS, NODE_LOCAL, Dns, Egress, Network, Proxy
from gpuplan.source import Origin
from gpuplan.targets import TARGETS

# GKE's Cloud DNS is asked at the metadata server's address, which no selector of pods matches
# (docs.cloud.google.com, Cloud DNS for GKE; tektoncd/operator#4000). OpenShift's DNS pods listen on
# 5353 behind a Service on 53, and a policy sees the pods' port (docs.redhat.com, DNS Operator).
METADATA = "169.254.169.254/32"
KNOWN = {
    "kube-dns": KUBE_DNS,
    "openshift": Dns(namespace="openshift-dns", addresses=(), ports=(5353,)),
    "cloud-dns": Dns(namespace="kube-system", addresses=(METADATA, NODE_LOCAL), ports=(53,)),
}


def network(platform: Platform) -> Network | None:
    """None where the manifest says nothing of it, or its target has no pods."""
    spec = platform.network
    if spec is None or TARGETS[platform.target].guests_on_hosts:
        return None
    return Network(
        dns=_dns(spec.dns) if spec.dns else None,
        proxy=_proxy(spec),
        internet=spec.internet if spec.internet is not None else spec.proxy is None,
        egress=tuple(Egress(to=e.to, ports=tuple(e.ports), reason=e.reason) for e in spec.egress),
        hub=spec.hub,
        object_storage=spec.object_storage,
        images=tuple(sorted(spec.images.items())),
        pull_secrets=tuple(spec.pull_secrets),
    )


def _dns(spec: DnsSpec) -> Dns:
    known = KNOWN[spec.service or "kube-dns"]
    return Dns(
        namespace=spec.namespace or known.namespace,
        addresses=known.addresses if spec.addresses is None else tuple(spec.addresses),
        ports=tuple(spec.ports or known.ports),
    )


def _proxy(spec: NetworkSpec) -> Proxy | None:
    proxy = spec.proxy
    if proxy is None:
        return None
    exceptions = tuple(proxy.exceptions)
    return Proxy(http=proxy.http, https=proxy.https, exceptions=exceptions, address=proxy.address)


def network_problems(platform: Platform, at: Origin) -> Iterator[Diagnostic]:
    """What is written of the network and means nothing."""
    spec = platform.network
    if spec and spec.proxy and not (spec.proxy.http or spec.proxy.https):
        yield error(
            "GP004",
            "the proxy has no address",
            at.child("network", "proxy"),
            help="write 'http', 'https' or both: http://proxy.example.org:3128",
        )


def chart_repository(platform: Platform, repository: str) -> str:
    """Where a chart is taken from: the repository's mirror, where the manifest has one."""
    mirrors = platform.network.charts if platform.network else {}
    return mirrors.get(repository, repository)
