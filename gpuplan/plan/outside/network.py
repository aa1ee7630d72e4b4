"""How pods reach names, servers and images, where a cluster is not the usual one."""

from __future__ import annotations

from gpuplan.frozen import record

HTTPS, HTTP = 443, 80


@record
class Dns:
    """Name servers: the pods of `namespace`, None for none, and `addresses` that are no pods."""

    namespace: str | None
    addresses: tuple[str, ...]
    ports: tuple[int, ...]


# Kubernetes' own, and where its NodeLocal DNSCache listens (kubernetes/dns).
NODE_LOCAL = "169.254.20.10/32"
KUBE_DNS = Dns(namespace="kube-system", addresses=(NODE_LOCAL,), ports=(53,))


@record
class Proxy:
    """`address` is None where nobody says where the proxy is."""

    http: str | None
    https: str | None
    exceptions: tuple[str, ...]
    address: str | None


@record
class Egress:
    """TCP ports that pods may reach; `to` None stands for all addresses outside."""

    to: str | None
    ports: tuple[int, ...]
    reason: str | None


@record
class Network:
    """`internet`: port 443 of all addresses outside is open. `images` are pairs of a registry and
    its mirror. None and () are as everywhere."""

    dns: Dns | None = None
    proxy: Proxy | None = None
    internet: bool = True
    egress: tuple[Egress, ...] = ()
    hub: str | None = None
    object_storage: str | None = None
    images: tuple[tuple[str, str], ...] = ()
    pull_secrets: tuple[str, ...] = ()

    @property
    def offline(self) -> bool:
        """Whether no server can be reached from which weights or data could come."""
        return not (self.internet or self.proxy or self.egress)


def port_of(server: str) -> int:
    """The TCP port of an http:// or https:// address."""
    scheme, _, rest = server.partition("://")
    port = rest.partition("/")[0].rpartition(":")[2]
    return int(port) if port.isdigit() else HTTPS if scheme == "https" else HTTP


def registry_of(image: str) -> tuple[str, str]:
    """(registry, the rest): `vllm/vllm-openai:v1` is of docker.io, as container engines have it."""
    first, slash, rest = image.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        return first, rest
    return "docker.io", image if slash else f"library/{image}"


def mirrored(image: str, network: Network | None) -> str:
    """The image at its registry's mirror, where it has one."""
    registry, rest = registry_of(image)
    mirror = dict(network.images).get(registry) if network else None
    return f"{mirror}/{rest}" if mirror else image
