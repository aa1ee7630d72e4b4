"""A namespace for each tenant, with what its pods may take and do."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.kubernetes import naming
from gpuplan.kubernetes.objects import KubernetesObject, build
from gpuplan.kubernetes.scene import Scene
from gpuplan.plan.model import Plan, Tenant
from gpuplan.plan.partitions import GPU_RESOURCE
from gpuplan.render.commented import Because, Tree

PRIVILEGED = "RDMA needs the capability IPC_LOCK, which no other level admits"


def tenants(plan: Plan, scenes: tuple[Scene, ...]) -> Iterator[KubernetesObject]:
    for tenant in plan.tenants:
        own = tuple(s for s in scenes if s.workload.tenant == tenant.name)
        yield _namespace(plan, tenant, own)
        yield _quota(plan, tenant, own)


def _namespace(plan: Plan, tenant: Tenant, scenes: tuple[Scene, ...]) -> KubernetesObject:
    rdma = any(s.rdma_resource for s in scenes)
    # With the namespace its claims would go. A tenant without workloads is there for old claims.
    claims = any(c.tenant == tenant.name for c in plan.retained_claims)
    kept = claims or not scenes or any(s.workload.volumes for s in scenes)
    enforce = "pod-security.kubernetes.io/enforce"
    labels: Tree = {
        "app.kubernetes.io/managed-by": naming.MANAGER,
        "app.kubernetes.io/part-of": plan.name,
        naming.TENANT_LABEL: tenant.name,
        enforce: Because("privileged", PRIVILEGED) if rdma else "baseline",
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
    """What the plan gives the tenant, and no more: a pod that was not planned stays pending."""
    hard: Tree = {}
    if tenant.gpu_quota:
        hard[f"requests.{GPU_RESOURCE}"] = str(tenant.gpu_quota)
    for resource, count in tenant.partition_quota:
        hard[f"requests.{resource}"] = str(count)
    hard["requests.storage"] = naming.quantity(tenant.storage_quota_bytes)
    cpus = sum(
        s.pods * s.workload.resources.cpu_cores * (s.pool.threads_per_core or 1) for s in scenes
    )
    memory = sum(s.pods * s.workload.resources.memory_bytes for s in scenes)
    hard["requests.cpu"] = Because(str(cpus), "the sum over the tenant's pods")
    hard["requests.memory"] = naming.quantity(memory)
    metadata = {
        "name": "gpuplan",
        "namespace": naming.namespace_name(plan, tenant.name),
        "labels": {"app.kubernetes.io/managed-by": naming.MANAGER},
    }
    return build(
        naming.tenant_key(tenant.name),
        "v1",
        "ResourceQuota",
        "cluster",
        {"metadata": metadata, "spec": {"hard": hard}},
        depends_on=(f"Namespace/{naming.tenant_key(tenant.name)}",),
    )
