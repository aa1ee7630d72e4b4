"""What a cloud lets a cluster be, and what it calls things: one record a cloud, in its own module.

Checks and messages that hold for all clouds take their words from here; what only one cloud knows
is a function of its module.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import field
from typing import Literal

from gpuplan.catalog.clouds import CloudFacts
from gpuplan.catalog.market import Instance
from gpuplan.diagnostics import Diagnostic
from gpuplan.frozen import record
from gpuplan.manifest.cluster import CapacityReservationSpec, ClusterSpec, ProvisioningSpec
from gpuplan.manifest.v1 import Platform
from gpuplan.plan.model import NodePool, Workload
from gpuplan.plan.outside.cloud import CapacityKind
from gpuplan.resolve.run import Resolved
from gpuplan.source import Origin


@record
class Asked:
    """A manifest's cluster, and the pools and workloads that are to be on it. `spec` is
    `platform.cluster` of the document at `at`, which is the platform's place."""

    resolved: Resolved
    facts: CloudFacts
    spec: ClusterSpec
    pools: tuple[NodePool, ...]
    workloads: tuple[Workload, ...]
    at: Origin

    @property
    def platform(self) -> Platform:
        return self.resolved.loaded.manifest.platform

    def spanning(self, pool: NodePool) -> tuple[Workload, ...]:
        """Work of the pool whose GPUs talk to those of other nodes."""
        own = (w for w in self.workloads if w.node_pool == pool.name)
        return tuple(w for w in own if w.joined)

    def together(self, pool: NodePool, provider: Provider) -> bool:
        """Whether machines of the pool stand side by side, on the cloud's network for GPUs."""
        fabric = self.resolved.site.fabric
        fast = fabric is not None and fabric.kind in provider.fabrics
        return fast and bool(self.spanning(pool))

    def reserved(self, pool: NodePool) -> CapacityReservationSpec | None:
        return next((r for r in self.spec.reservations if r.node == pool.node_type), None)

    def provisioned(self, pool: NodePool) -> ProvisioningSpec | None:
        return next((p for p in self.spec.provisioning if p.node == pool.node_type), None)


@record
class Form:
    """How something is written: what it must match as a whole, and one that does."""

    pattern: str
    example: str

    def match(self, text: str) -> re.Match[str] | None:
        return re.fullmatch(self.pattern, text)


@record
class Provider:
    """One cloud.

    `zone`: its group `region`, where it has one, is the region that the zone is in.
    `least_zones` a new cluster needs; with `even_zones` a pool of a fixed size has equally many
    machines in each of its zones. `show_zones` and `show_releases` are commands that list what
    no source states, the first with the `{region}` and the machines as `{commas}`, `{spaces}` or
    `{first}`. `fabrics` beside ethernet are kinds of `platform.fabric`. `scaling` are kinds
    of `cluster.scaling`, `reservations` of `cluster.reservations` by how their id is written,
    `provisioning` of `cluster.provisioning`, `local_disks` of that, `drivers` of `cluster.driver`.
    `own_driver`: where the driver's version is chosen, where nodes come with one; their container
    runtime then has the name `runtime_class`, where it is not the operator's, and with `cuts` who
    brings the driver cuts GPUs too. `family` matches the part of an instance type that quotas go
    by; they count `quota_unit`, of spot machines where `quota_kinds` says so, and not at all where
    it says None. `taints` are keys that the cloud puts on nodes of a capacity by itself;
    `network_class` is by which pods claim cards of `fabrics`. `pool_problems` and
    `cluster_problems` are what only this cloud says of a pool, by its machine, and of the cluster.
    """

    name: str
    zone: Form
    cluster_name: Form
    least_zones: int = 1
    even_zones: bool = False
    show_zones: str
    show_releases: str
    fabrics: tuple[str, ...]
    scaling: tuple[str, ...] = ("fixed", "autoscaler")
    reservations: Mapping[str, Form]
    provisioning: tuple[str, ...] = ()
    local_disks: tuple[str, ...] = ("ephemeral",)
    drivers: tuple[str, ...] = ("provider",)
    own_driver: str
    runtime_class: str | None = None
    cuts: bool = False
    family: str
    quota_unit: Literal["vCPUs", "GPUs"] = "vCPUs"
    quota_kinds: Mapping[CapacityKind, Literal["on-demand", "spot"] | None]
    taints: Mapping[CapacityKind, tuple[str, ...]] = field(default_factory=dict)
    network_class: str | None = None
    pool_problems: Callable[[Asked, NodePool, Instance], Iterator[Diagnostic]]
    cluster_problems: Callable[[Asked], Iterator[Diagnostic]] = lambda _: iter(())

    def region_of(self, zone: str) -> str | None:
        """None where zones do not name their region."""
        match = self.zone.match(zone)
        return match.groupdict().get("region") if match else None
