"""What Prometheus scrapes, and how series are told apart: `workload`, `replica`, `stack`."""

from __future__ import annotations

from gpuplan.engines.container import listening_port
from gpuplan.monitoring.metrics import ENGINES
from gpuplan.plan.model import Plan, Workload, record
from gpuplan.render.commented import Tree

INTERVAL_SECONDS = 15
ENGINE_JOB, GPU_JOB = "engines", "gpus"


@record
class Target:
    """Where a replica of a workload answers: `host:port`."""

    workload: str
    replica: str
    address: str


def told(workload: Workload) -> bool:
    """Whether its engine has metrics."""
    return workload.engine.name in ENGINES and listening_port(workload) is not None


def configuration(plan: Plan, engines: list[Target], exporter: str, rules: str) -> Tree:
    """Prometheus' own configuration. `exporter` is dcgm-exporter's `host:port`."""
    served = [
        {
            "targets": [t.address],
            "labels": {"stack": plan.name, "workload": t.workload, "replica": t.replica},
        }
        for t in engines
    ]
    jobs = [{"job_name": ENGINE_JOB, "static_configs": served}] if served else []
    gpus = {"targets": [exporter], "labels": {"stack": plan.name}}
    return {
        "global": {
            "scrape_interval": f"{INTERVAL_SECONDS}s",
            "evaluation_interval": f"{INTERVAL_SECONDS}s",
        },
        "rule_files": [rules],
        "scrape_configs": [*jobs, {"job_name": GPU_JOB, "static_configs": [gpus]}],
    }
