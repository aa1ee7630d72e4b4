"""What the Docker backend has to say: one constructor a message."""

from __future__ import annotations

from gpuplan.diagnostics import Diagnostic, error, warning
from gpuplan.plan.model import Plan, Workload


def starts_at_once(workload: Workload) -> Diagnostic:
    return warning(
        "GP017",
        f"{workload.name}: it does not wait for {', '.join(workload.after)}, as it starts with the"
        " machine, each time",
        workload.origin,
        help="start it by hand the first time: `docker compose up` after the run has ended",
    )


def several_machines(plan: Plan) -> Diagnostic:
    shapes = ", ".join(pool.shape for pool in plan.node_pools)
    return error(
        "GP016",
        f"the plan has {shapes}, and a Compose project runs on one machine",
        plan.node_pools[-1].origin,
        help="describe a machine with more GPUs, write a stack for each machine, or use the target"
        " kubernetes",
    )
