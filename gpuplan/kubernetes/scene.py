"""A workload with all that its objects are made from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from gpuplan.kubernetes import naming
from gpuplan.kubernetes.objects import Group, KubernetesObject, build
from gpuplan.plan.model import NodePool, Plan, Workload, by_name, record
from gpuplan.render.commented import Tree


@record
class Scene:
    """`name` is the name of the objects, `key` the manifest's; they differ after a rename. `role`:
    that of its pods, where prompts and answers have pods of their own; it ends both names."""

    plan: Plan
    workload: Workload
    pool: NodePool
    namespace: str
    name: str
    role: Literal["prefill", "decode", "router"] | None = None

    @property
    def key(self) -> str:
        return self.workload.name + self.ending

    @property
    def called(self) -> str:
        """What its controller and its Service are called."""
        return self.name + self.ending

    @property
    def ending(self) -> str:
        return f"-{self.role}" if self.role else ""

    @property
    def selector(self) -> dict[str, str]:
        """What selects its pods."""
        role = {naming.ROLE_LABEL: self.role} if self.role else {}
        return naming.selector(self.plan, self.workload) | role

    @property
    def split(self) -> bool:
        """Whether its pods hand caches to one another."""
        return self.workload.disaggregation is not None

    @property
    def pods(self) -> int:
        """Pods at work at once; a notebook's replica is one user's."""
        return self.workload.members

    @property
    def grouped(self) -> bool:
        """Whether each replica of a service is a group of pods, one a node."""
        return self.workload.task == "inference" and self.workload.nodes_per_replica > 1

    @property
    def restarts_whole(self) -> bool:
        """Whether a JobSet makes all pods of a run over nodes anew where one fails. What recurs is
        a CronJob, which makes Jobs."""
        return self.workload.gang and self.plan.jobs == "jobset"

    @property
    def queued(self) -> bool:
        """Whether a queue of the cluster admits the pods of a replica, or of a run, at once."""
        return self.plan.queue is not None and self.workload.nodes_per_replica > 1

    @property
    def gpu_resource(self) -> str:
        partition = self.workload.partition
        if partition is None or self.plan.plugin_on_nodes:
            return self.pool.maker.resource
        return by_name(self.pool.partitions, partition).resource

    @property
    def needs_rdma(self) -> bool:
        """Whether the plan counts on network devices that the pods must be given."""
        fabric = self.plan.fabric
        joined = self.workload.joined
        return joined and fabric is not None and fabric.kind != "ethernet"

    @property
    def rdma_resource(self) -> str | None:
        """The network device that a pod gets, where its GPUs talk to other nodes' GPUs."""
        fabric = self.plan.fabric
        return fabric.resource if fabric is not None and self.needs_rdma else None

    @property
    def rdma_class(self) -> str | None:
        """By which a pod claims network cards, where no resource counts them."""
        cloud = self.plan.cloud
        claimed = self.needs_rdma and self.rdma_resource is None
        return cloud.network_class if cloud is not None and claimed else None

    @property
    def pins_memory(self) -> bool:
        """Whether its network devices read and write the memory of its pods."""
        return bool(self.rdma_resource or self.rdma_class)

    def metadata(self, name: str | None = None) -> Tree:
        labels = naming.labels(self.plan, self.workload) | self.selector
        return {"name": name or self.called, "namespace": self.namespace, "labels": labels}

    def described(self) -> Tree:
        """Metadata with what the manifest says of the workload."""
        text = self.workload.description
        annotations = {"kubernetes.io/description": text} if text else None
        metadata = self.metadata()
        if self.queued:
            metadata["labels"] = {**metadata["labels"], naming.QUEUE_LABEL: self.plan.queue}
        return {**metadata, "annotations": annotations}

    def build(
        self,
        api_version: str,
        kind: str,
        body: Mapping[str, Any],
        group: Group = "workload",
        **options: Any,
    ) -> KubernetesObject:
        """The workload's object of a kind. It comes after the namespace, or what `depends_on`
        names."""
        options.setdefault("depends_on", (self.of_tenant("Namespace"),))
        former = self.former_keys(kind)
        return build(self.key, api_version, kind, group, body, former=former, **options)

    def of_tenant(self, kind: str) -> str:
        """The identity of an object that the tenant has once."""
        return f"{kind}/{naming.tenant_key(self.workload.tenant)}"

    def former_keys(self, kind: str, suffix: str = "") -> tuple[str, ...]:
        """Identities that an object had under the workload's earlier names."""
        ending = self.ending + suffix
        return tuple(f"{kind}/{old}{ending}" for old in self.workload.renamed_from)


def scene_of(plan: Plan, workload: Workload) -> Scene:
    return Scene(
        plan=plan,
        workload=workload,
        pool=by_name(plan.node_pools, workload.node_pool),
        namespace=naming.namespace_name(plan, workload.tenant),
        name=workload.oldest_name,
    )
