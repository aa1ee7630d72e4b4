"""A namespace for each tenant, with what its pods may take and do, and what admits them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from gpuplan.kubernetes import naming
from gpuplan.kubernetes.objects import KubernetesObject, build
from gpuplan.kubernetes.pods import resources
from gpuplan.kubernetes.routed import CPUS, MEMORY_BYTES, ROUTERS
from gpuplan.kubernetes.scene import Scene
from gpuplan.plan.model import Plan, Tenant
from gpuplan.plan.partitions import GPU_RESOURCE
from gpuplan.render.commented import Because, Tree
from gpuplan.units import GIB, format_bytes

# What pods that nobody planned may ask for together, and what one of them does that says nothing: a
# quota refuses such a pod.
OTHERS_CPUS = 8
OTHERS_MEMORY_BYTES = 32 * GIB
UNSAID = {"cpu": "500m", "memory": naming.quantity(GIB)}
QUEUES = "kueue.x-k8s.io/v1beta2"  # of what admits all pods of a run or a replica at once
PRIVILEGED = "RDMA needs the capability IPC_LOCK, which no other level admits"


def tenants(plan: Plan, scenes: tuple[Scene, ...]) -> Iterator[KubernetesObject]:
    for tenant in plan.tenants:
        own = tuple(s for s in scenes if s.workload.tenant == tenant.name)
        yield _namespace(plan, tenant, own)
        yield _quota(plan, tenant, own)
        yield _defaults(plan, tenant)


def _namespace(plan: Plan, tenant: Tenant, scenes: tuple[Scene, ...]) -> KubernetesObject:
    reasons = [PRIVILEGED for s in scenes if s.pins_memory]
    reasons += [s.pool.maker.reason for s in scenes if s.pool.maker.reason]
    # With the namespace its claims would go. A tenant without workloads is there for old claims.
    claims = any(c.tenant == tenant.name for c in plan.retained_claims)
    kept = claims or not scenes or any(s.workload.volumes for s in scenes)
    enforce = "pod-security.kubernetes.io/enforce"
    labels: Tree = {
        "app.kubernetes.io/managed-by": naming.MANAGER,
        "app.kubernetes.io/part-of": plan.name,
        naming.TENANT_LABEL: tenant.name,
        enforce: Because("privileged", reasons[0]) if reasons else "baseline",
    }
    metadata = {"name": naming.namespace_name(plan, tenant.name), "labels": labels}
    return build(
        naming.tenant_key(tenant.name),
        "v1",
        "Namespace",
        "cluster",
        {"metadata": metadata},
        protect=kept,
        retain_on_delete=kept,
    )


def _quota(plan: Plan, tenant: Tenant, scenes: tuple[Scene, ...]) -> KubernetesObject:
    """What the plan gives the tenant, and no GPU more; of the rest some for pods without any."""
    hard: Tree = {}
    alike = plan.plugin_on_nodes  # parts and whole GPUs
    gpus = _whole_gpus(scenes)
    if alike and tenant.partition_quota:
        gpus[GPU_RESOURCE] += sum(n for _, n in tenant.partition_quota)
    for resource, count in sorted(gpus.items()):
        hard[f"requests.{resource}"] = str(count)
    for resource, count in () if alike else tenant.partition_quota:
        hard[f"requests.{resource}"] = str(count)
    hard["requests.storage"] = naming.quantity(tenant.storage_quota_bytes)
    cpus = sum(
        s.pods * s.workload.resources.cpu_cores * (s.pool.threads_per_core or 1) for s in scenes
    )
    memory = sum(s.pods * s.workload.resources.host_memory_bytes for s in scenes)
    routers = ROUTERS * sum(s.split for s in scenes)
    cpus, memory = cpus + routers * CPUS, memory + routers * MEMORY_BYTES
    others = f"{OTHERS_CPUS} more and {format_bytes(OTHERS_MEMORY_BYTES)} for those without GPUs"
    hard["requests.cpu"] = Because(
        str(cpus + OTHERS_CPUS), f"the sum over the tenant's pods, {others}"
    )
    hard["requests.memory"] = naming.quantity(memory + OTHERS_MEMORY_BYTES)
    return _limit(plan, tenant, "ResourceQuota", {"hard": hard})


def _whole_gpus(scenes: tuple[Scene, ...]) -> Counter[str]:
    """What the tenant's pods ask for at once, by each vendor's name of it."""
    counts: Counter[str] = Counter()
    for scene in (s for s in scenes if s.workload.partition is None):
        counts[scene.gpu_resource] += scene.workload.devices
    return counts


def _defaults(plan: Plan, tenant: Tenant) -> KubernetesObject:
    reason = "of a pod that says nothing, which the quota would refuse"
    limits = {"type": "Container", "defaultRequest": Because(UNSAID, reason)}
    return _limit(plan, tenant, "LimitRange", {"limits": [limits]})


def _limit(plan: Plan, tenant: Tenant, kind: str, spec: Tree) -> KubernetesObject:
    metadata = {
        "name": "gpuplan",
        "namespace": naming.namespace_name(plan, tenant.name),
        "labels": {"app.kubernetes.io/managed-by": naming.MANAGER},
    }
    return build(
        naming.tenant_key(tenant.name),
        "v1",
        kind,
        "cluster",
        {"metadata": metadata, "spec": spec},
        depends_on=(f"Namespace/{naming.tenant_key(tenant.name)}",),
    )


def queues(plan: Plan, scenes: tuple[Scene, ...]) -> Iterator[KubernetesObject]:
    """One for each tenant who has such work, called like the cluster's: it cannot change which that
    is."""
    for tenant in dict.fromkeys(s.workload.tenant for s in scenes if s.queued):
        key = naming.tenant_key(tenant)
        metadata = {
            "name": plan.queue,
            "namespace": naming.namespace_name(plan, tenant),
            "labels": {"app.kubernetes.io/managed-by": naming.MANAGER},
        }
        yield build(
            key,
            QUEUES,
            "LocalQueue",
            "cluster",
            {"metadata": metadata, "spec": {"clusterQueue": plan.queue}},
            depends_on=(f"Namespace/{key}",),
        )


def covered(scenes: tuple[Scene, ...]) -> tuple[str, ...]:
    """What pods ask of it: a resource that a queue does not cover is never admitted."""
    asked = {name for s in scenes if s.queued for name, n in _limits(s).items() if n is not None}
    return tuple(sorted(asked))


def _limits(scene: Scene) -> dict[str, object]:
    limits: dict[str, object] = resources(scene)["limits"]
    return limits
