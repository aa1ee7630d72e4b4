"""Names, labels and quantities as Kubernetes writes them."""

from __future__ import annotations

import hashlib
import json
import re
from decimal import Decimal, InvalidOperation
from typing import Any

from gpuplan.engines.launch import Argument, written
from gpuplan.plan.model import Plan, Workload
from gpuplan.render.commented import Because
from gpuplan.units import GIB, KIB, MIB, TIB

POOL_LABEL = "gpuplan.dev/pool"
PARTITION_LABEL = "gpuplan.dev/partition"  # of a node whose GPUs a cloud cuts, all alike
STACK_LABEL = "gpuplan.dev/stack"  # of a node: a second stack that labels it is refused
TENANT_LABEL = "gpuplan.dev/tenant"
INSTANCE_TYPE_LABEL = "node.kubernetes.io/instance-type"  # set by cloud providers
HOSTNAME_LABEL = "kubernetes.io/hostname"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"  # set by the API server
CLIENT_LABEL = "client.gpuplan.dev"  # prefix of the label that lets another namespace in
QUEUE_LABEL = "kueue.x-k8s.io/queue-name"  # of what Kueue admits, whole
MANAGER = "gpuplan"
_QUANTITY = r"(?a)([+-]?[0-9.]+(?:[eE][+-]?[0-9]+)?)(|[numkMGTPE]|[KMGTPE]i)"
_FACTORS = {"n": Decimal("1e-9"), "u": Decimal("1e-6"), "m": Decimal("1e-3"), "": Decimal(1)}
_FACTORS |= {unit: Decimal(1000) ** i for i, unit in enumerate("kMGTPE", start=1)}
_FACTORS |= {f"{unit}i": Decimal(1024) ** i for i, unit in enumerate("KMGTPE", start=1)}
INDEX = "$(JOB_COMPLETION_INDEX)"  # Kubernetes puts the index of a Job's pod here
# LeaderWorkerSet sets these in every container of a group, from v0.6 on.
GROUP_INDEX, LEADER = "$(LWS_WORKER_INDEX)", "$(LWS_LEADER_ADDRESS)"
ROLE_LABEL = "gpuplan.dev/role"
LEADS, FOLLOWS = "leader", "worker"  # the roles of pods in a group; the leader listens


def namespace_name(plan: Plan, tenant: str) -> str:
    """A namespace per tenant and stack: two stacks of one team do not own each other's objects."""
    return tenant if tenant == plan.name else f"{plan.name}-{tenant}"


def tenant_key(tenant: str) -> str:
    """Of the objects that a tenant has once."""
    return f"tenant-{tenant}"


def labels(plan: Plan, workload: Workload) -> dict[str, str]:
    return {
        **selector(plan, workload),
        "app.kubernetes.io/component": workload.task,
        "app.kubernetes.io/managed-by": MANAGER,
        TENANT_LABEL: workload.tenant,
    }


def selector(plan: Plan, workload: Workload) -> dict[str, str]:
    """What selects a workload's pods. Selectors are immutable, so nothing that may change."""
    return {
        "app.kubernetes.io/name": workload.oldest_name,
        "app.kubernetes.io/part-of": plan.name,
    }


def claim(workload: str, volume: str, generation: int | None) -> str:
    """`chat-models`, later `chat-models-2`: a claim that cannot change makes room for another."""
    return f"{workload}-{volume}" + (f"-{generation}" if generation else "")


def job_name(workload: Workload) -> str:
    return workload.oldest_name + (f"-{workload.generation}" if workload.generation else "")


def priority_name(plan: Plan, workload: Workload) -> str:
    return f"{plan.name}-{priority_key(workload)}"


def priority_key(workload: Workload) -> str:
    return workload.priority + ("-preemptible" if workload.preemptible else "")


def quantity(size_bytes: int) -> str:
    """Exact bytes in the largest binary unit that divides them: `160Gi`."""
    for factor, unit in ((TIB, "Ti"), (GIB, "Gi"), (MIB, "Mi"), (KIB, "Ki")):
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes // factor}{unit}"
    return str(size_bytes)


def amount(value: object) -> Decimal | None:
    """A quantity as the API server reads it; None for anything else."""
    plain = isinstance(value, str | int | float) and not isinstance(value, bool)
    match = re.fullmatch(_QUANTITY, str(value)) if plain else None
    if match is None:
        return None
    try:
        return Decimal(match[1]) * _FACTORS[match[2]]
    except InvalidOperation:
        return None


def plain(text: str) -> str:
    """A text that Kubernetes passes on as it is: it expands `$(NAME)` in commands, arguments and
    environment values, and reads `$$` as `$`."""
    return text.replace("$", "$$")


def argument(text: Argument, index: str = INDEX) -> str | Because:
    """An engine's argument as Kubernetes passes it on."""
    return written(text, index, plain, LEADER)


def group_name(name: str) -> str:
    """Of a LeaderWorkerSet, whose controller makes a headless Service of its name: clients have
    another one."""
    return f"{name}-nodes"


def fingerprint(content: Any, digits: int = 8) -> str:
    """A short hash for names that must change with their content."""
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
