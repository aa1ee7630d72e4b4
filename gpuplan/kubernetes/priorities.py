"""The priority classes that the plan's workloads use."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.kubernetes import naming
from gpuplan.kubernetes.objects import KubernetesObject, build
from gpuplan.plan.model import Plan, Workload
from gpuplan.render.commented import Because

# Below the system's own classes (2,000,000,000) and above the default of 0, with room between.
VALUES = {"low": 1_000, "normal": 10_000, "high": 100_000, "critical": 1_000_000}
PREEMPTIBLE = 500  # less than a workload of the same priority that must not be preempted


def priority_object_key(workload: Workload) -> str:
    return f"priority-{naming.priority_key(workload)}"


def priorities(plan: Plan) -> Iterator[KubernetesObject]:
    used = {naming.priority_key(w): w for w in plan.workloads}
    for key in sorted(used):
        yield _priority(plan, used[key])


def _priority(plan: Plan, workload: Workload) -> KubernetesObject:
    value: object = VALUES[workload.priority]
    if workload.preemptible:
        lower = VALUES[workload.priority] - PREEMPTIBLE
        value = Because(lower, f"gives way to '{workload.priority}' that is not preemptible")
    policy = "Never" if workload.preemptible else "PreemptLowerPriority"
    return build(
        priority_object_key(workload),
        "scheduling.k8s.io/v1",
        "PriorityClass",
        "cluster",
        {
            "metadata": {
                "name": naming.priority_name(plan, workload),
                "labels": {
                    "app.kubernetes.io/managed-by": naming.MANAGER,
                    "app.kubernetes.io/part-of": plan.name,
                },
            },
            # No `globalDefault`: a server stores no false there, and who takes the object over
            # would set it anew, against whoever applied it first.
            "value": value,
            "preemptionPolicy": policy,
            "description": f"Priority '{workload.priority}' of stack {plan.name}",
        },
    )
