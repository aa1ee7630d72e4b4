"""PromQL of a workload, for rules and panels alike."""

from __future__ import annotations

import json

from gpuplan.monitoring.metrics import ENGINES, EngineMetrics
from gpuplan.plan.model import Metric, Plan, Workload

WINDOW = "5m"
QUANTILES = {"p50": 0.5, "p90": 0.9, "p95": 0.95, "p99": 0.99}


def metrics_of(workload: Workload) -> EngineMetrics:
    return ENGINES[workload.engine.name]


def selector(plan: Plan, **labels: str) -> str:
    """`{stack="…",workload="…"}`, quoted as PromQL does."""
    given = {"stack": plan.name} | labels
    return "{" + ",".join(f"{name}={json.dumps(value)}" for name, value in given.items()) + "}"


def timed(workload: Workload, metric: Metric) -> str | None:
    """The histogram that measures what `metric` predicts; None where the engine has none."""
    names = metrics_of(workload)
    return {
        "time_to_first_token": names.ttft,
        "time_per_output_token": names.tpot,
        "request_latency": names.latency,
    }.get(metric.name)


def statistic(histogram: str, which: str | None, series: str) -> str:
    """A quantile of a histogram over `WINDOW`, or its mean."""
    if which in QUANTILES:
        buckets = f"sum by (le) (rate({histogram}_bucket{series}[{WINDOW}]))"
        return f"histogram_quantile({QUANTILES[which]}, {buckets})"
    total, count = (f"sum(rate({histogram}_{part}{series}[{WINDOW}]))" for part in ("sum", "count"))
    return f"{total} / {count}"


def rate(counter: str, series: str) -> str:
    return f"sum(rate({counter}{series}[{WINDOW}]))"
