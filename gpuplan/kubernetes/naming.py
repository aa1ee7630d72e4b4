"""Names, labels and quantities as Kubernetes writes them."""

from __future__ import annotations

import hashlib
import json
from typing import Any

from gpuplan.engines.launch import Argument, Indexed
from gpuplan.plan.model import Plan, Workload
from gpuplan.plan.partitions import GPU_RESOURCE
from gpuplan.render.commented import Because
from gpuplan.units import GIB, KIB, MIB, TIB

POOL_LABEL = "gpuplan.dev/pool"
TENANT_LABEL = "gpuplan.dev/tenant"
HOSTNAME_LABEL = "kubernetes.io/hostname"
NAMESPACE_LABEL = "kubernetes.io/metadata.name"  # set by the API server
CLIENT_LABEL = "client.gpuplan.dev"  # prefix of the label that lets another namespace in
GPU_TAINT = GPU_RESOURCE  # the key that GPU operator and node feature discovery tolerate
MANAGER = "gpuplan"
INDEX = "$(JOB_COMPLETION_INDEX)"  # Kubernetes puts the index of a Job's pod here


def namespace_name(plan: Plan, tenant: str) -> str:
    """A namespace per tenant and stack: two stacks of one team do not own each other's objects."""
    return tenant if tenant == plan.name else f"{plan.name}-{tenant}"


def tenant_key(tenant: str) -> str:
    """Of the objects that a tenant has once."""
    return f"tenant-{tenant}"


def physical_name(workload: Workload) -> str:
    """The oldest name. A rename in the manifest keeps objects, addresses and data as they are."""
    return workload.renamed_from[0] if workload.renamed_from else workload.name


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
        "app.kubernetes.io/name": physical_name(workload),
        "app.kubernetes.io/part-of": plan.name,
    }


def priority_name(plan: Plan, workload: Workload) -> str:
    return f"{plan.name}-{priority_key(workload)}"


def priority_key(workload: Workload) -> str:
    return workload.priority + ("-preemptible" if workload.preemptible else "")


def image(workload: Workload) -> str:
    """The pinned image; by digest where one is known."""
    engine = workload.engine
    return f"{engine.image}@{engine.digest}" if engine.digest else engine.image


def quantity(size_bytes: int) -> str:
    """Exact bytes in the largest binary unit that divides them: `160Gi`."""
    for factor, unit in ((TIB, "Ti"), (GIB, "Gi"), (MIB, "Mi"), (KIB, "Ki")):
        if size_bytes >= factor and size_bytes % factor == 0:
            return f"{size_bytes // factor}{unit}"
    return str(size_bytes)


def plain(text: str) -> str:
    """A text that Kubernetes passes on as it is: it expands `$(NAME)` in commands, arguments and
    environment values, and reads `$$` as `$`."""
    return text.replace("$", "$$")


def argument(text: Argument) -> str | Because:
    """An engine's argument as Kubernetes passes it on."""
    match text:
        case Because():
            return Because(argument(text.value), text.reason)
        case Indexed():
            return f"{plain(text.before)}{INDEX}{plain(text.after)}"
    return plain(text)


def fingerprint(content: Any, digits: int = 8) -> str:
    """A short hash for names that must change with their content."""
    text = content if isinstance(content, str) else json.dumps(content, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:digits]
