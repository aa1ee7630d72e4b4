"""How the cluster's pods reach names, servers and images: `platform.network`."""

from ipaddress import ip_network
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from gpuplan.manifest.base import (
    REGISTRY,
    RULES,
    SERVER,
    ClassName,
    Document,
    Shorthand,
    Text,
    optional,
    required,
)


def _network(text: str) -> str:
    """A network of addresses as Kubernetes takes it: no bits beside its prefix."""
    try:
        network = ip_network(text)
    except ValueError as problem:
        raise ValueError(f"'{text}' is no network of addresses, as 10.20.0.0/16") from problem
    if "/" not in text:
        raise ValueError(f"write {network}, which is this address alone")
    return str(network)


Cidr = Annotated[str, AfterValidator(_network), Field(description="A network of addresses.")]
Port = Annotated[int, Field(ge=1, le=65535)]
Server = Annotated[str, Field(pattern=SERVER, max_length=253, description=RULES[SERVER])]
Registry = Annotated[str, Field(pattern=REGISTRY, max_length=253, description=RULES[REGISTRY])]


class DnsSpec(Document):
    """The cluster's name servers. What is written beside `service` replaces what is known of it."""

    service: Literal["kube-dns", "openshift", "cloud-dns"] | None = optional(
        "kube-dns: in kube-system, with NodeLocal DNSCache. openshift: in openshift-dns, on port "
        "5353. cloud-dns: GKE's, at the metadata server's address. Without it kube-dns.",
        "openshift",
    )
    namespace: ClassName | None = optional("The namespace of its pods.", "dns-system")
    addresses: list[Cidr] | None = optional(
        "Where it answers that is no pod.", ["169.254.20.10/32"]
    )
    ports: Annotated[list[Port], Field(min_length=1)] | None = optional(
        "The ports that its pods listen on.", [53, 5353]
    )


class ProxySpec(Document):
    """What pods go through to servers outside. Its credentials never stand here."""

    http: Server | None = optional("For http://.", "http://proxy.example.org:3128")
    https: Server | None = optional("For https://.", "http://proxy.example.org:3129")
    exceptions: list[Text] = Field(
        [],
        description="Names and addresses that are reached without it, beside the cluster's own.",
        examples=[[".example.org", "10.0.0.0/8"]],
    )
    address: Cidr | None = optional(
        "Where the proxy is. Without it its port is open to all addresses outside.", "10.1.2.3/32"
    )


class EgressSpec(Document):
    """Servers that pods may reach."""

    to: Cidr | None = optional("Their addresses. Without it all outside.", "10.20.0.0/16")
    ports: Annotated[list[Port], Field(min_length=1)] = required("Their TCP ports.", [9000])
    reason: Text | None = optional("What for; it stands beside the rule.", "object storage")


class NetworkSpec(Document):
    """How pods reach names, servers and images, where a cluster is not the usual one."""

    dns: Annotated[DnsSpec, Shorthand("service", "string")] | None = optional(
        "The cluster's name servers, by a name or as a mapping.", "openshift"
    )
    proxy: ProxySpec | None = optional(
        "What pods go through to servers outside.", {"https": "http://proxy.example.org:3128"}
    )
    internet: bool | None = optional(
        "Whether pods may reach port 443 of all addresses outside. Without it yes, and no where "
        "there is a proxy.",
        *[False],
    )
    egress: list[EgressSpec] = Field(
        [],
        description="What pods may reach beside that.",
        examples=[[{"to": "10.20.0.0/16", "ports": [9000], "reason": "object storage"}]],
    )
    hub: Server | None = optional(
        "The server that models and datasets come from, in place of huggingface.co.",
        "https://hub.example.org",
    )
    object_storage: Server | None = optional(
        "The server of s3:// addresses, in place of Amazon's.", "https://s3.example.org:9000"
    )
    images: dict[Registry, Registry] = Field(
        {},
        description="Mirrors of images, by their registry (Docker's is docker.io).",
        examples=[{"docker.io": "registry.example.org/hub", "nvcr.io": "registry.example.org/ngc"}],
    )
    charts: dict[Server, Server] = Field(
        {},
        description="Mirrors of chart repositories.",
        examples=[{"https://helm.ngc.nvidia.com/nvidia": "https://charts.example.org/nvidia"}],
    )
    pull_secrets: list[ClassName] = Field(
        [],
        description="Secrets with credentials of registries, which exist in each namespace.",
        examples=[["registry"]],
    )
