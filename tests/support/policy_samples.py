"""Plans, stacks and short ways to change them, for tests of policies."""

from __future__ import annotations

from dataclasses import replace
from datetime import date
from decimal import Decimal
from pathlib import Path
from typing import Any

from gpuplan.findings import Report
from gpuplan.plan import serialize
from gpuplan.plan.model import Alternative, Plan
from gpuplan.policy.api import Waiver
from gpuplan.policy.engine import check
from gpuplan.policy.packs import Pack, builtin_pack
from gpuplan.policy.reading import Stack
from gpuplan.render.checksums import CHECKSUMS, checksums
from gpuplan.render.tree import File, FileTree

TODAY = date(2026, 11, 1)
PROGRAM = """\
import pulumi_kubernetes as k8s

k8s.helm.v3.Release("gpu-operator", chart="gpu-operator", version="v26.3.3")
k8s.apps.v1.Deployment(
    "assistant",
    spec=k8s.apps.v1.DeploymentSpecArgs(
        containers=[
            k8s.core.v1.ContainerArgs(
                name="vllm",
                image="vllm/vllm-openai:v0.11.0",
                security_context=k8s.core.v1.SecurityContextArgs(privileged=False),
            )
        ]
    ),
)
"""
MANIFEST = """\
kind: Deployment
metadata:
  name: assistant
spec:
  template:
    spec:
      containers:
      - name: vllm
        image: vllm/vllm-openai:v0.11.0
        securityContext:
          privileged: false
"""


def with_workload(plan: Plan, **changes: Any) -> Plan:
    return replace(plan, workloads=(replace(plan.workloads[0], **changes), *plan.workloads[1:]))


def with_memory(plan: Plan, **changes: Any) -> Plan:
    return with_workload(plan, memory=replace(plan.workloads[0].memory, **changes))


def with_pool(plan: Plan, **changes: Any) -> Plan:
    return replace(plan, node_pools=(replace(plan.node_pools[0], **changes), *plan.node_pools[1:]))


def with_cost(plan: Plan, **changes: Any) -> Plan:
    return replace(plan, cost=replace(plan.cost, **changes))


def with_machine(plan: Plan, **changes: Any) -> Plan:
    machine = replace(plan.virtual_machines[0], **changes)
    return replace(plan, virtual_machines=(machine, *plan.virtual_machines[1:]))


def with_cell(plan: Plan, **changes: Any) -> Plan:
    cell = replace(plan.virtual_machines[0].cells[0], **changes)
    return with_machine(plan, cells=(cell, *plan.virtual_machines[0].cells[1:]))


def alternative(usd: str | None, **changes: Any) -> Alternative:
    values: dict[str, Any] = {
        "gpu": "l40s",
        "gpu_count": 4,
        "tensor_parallel_size": 2,
        "replicas": 2,
        "usd_per_hour": None if usd is None else Decimal(usd),
        "gate": "override",
    }
    return Alternative(**(values | changes))


def stack(plan: Plan, **files: str) -> Stack:
    """A stack in memory with a right `checksums.txt`; only a plan when no file is given."""
    text = serialize.dump(plan)
    tree = FileTree()
    if files:
        own = (File("plan.yaml", text), File("evidence.yaml", serialize.dump_evidence(plan)))
        tree = FileTree((*own, *(File(k, v) for k, v in files.items())))
        tree = FileTree.merge((tree, FileTree((File(CHECKSUMS, checksums(tree)),))))
    return Stack(place=f"stacks/{plan.name}", plan=plan, plan_text=text, files=tree)


def judge(
    *stacks: Stack | Plan, waivers: tuple[Waiver, ...] = (), pack: Pack | None = None
) -> Report:
    read = [s if isinstance(s, Stack) else stack(s) for s in stacks]
    return check(read, pack or builtin_pack(), waivers, as_of=TODAY)


def rules(report: Report) -> set[str]:
    return {v.rule for v in report.active}


def fired(*stacks: Stack | Plan) -> list[tuple[str, str, str]]:
    """(rule, severity, resource) of all findings."""
    return [(v.rule, v.severity.value, v.resource) for v in judge(*stacks)]


def write(folder: Path, plan: Plan, **files: str) -> Path:
    """The stack of `plan` with `files`, written below `folder`."""
    made = stack(plan, **{"README.md": "# chat\n", **files})
    root = folder / plan.name
    for file in made.files:
        (root / file.path).parent.mkdir(parents=True, exist_ok=True)
        (root / file.path).write_text(file.text, encoding="utf-8")
    return root
