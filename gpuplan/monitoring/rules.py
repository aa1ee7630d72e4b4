"""Alerts: objectives that are missed, engines that do not answer, GPUs with faults."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.engines import durations
from gpuplan.monitoring import metrics, queries
from gpuplan.monitoring.scrape import ENGINE_JOB, GPU_JOB, INTERVAL_SECONDS, told
from gpuplan.plan.model import Plan, Workload
from gpuplan.render.commented import Tree

HOLDS = "10m"  # for so long before anybody is told


def rules(plan: Plan) -> Tree:
    """A file of Prometheus' rules."""
    groups = [
        {"name": f"{plan.name}-{w.name}", "rules": [*_of(plan, w)]}
        for w in plan.workloads
        if told(w)
    ]
    return {"groups": [*groups, {"name": f"{plan.name}-gpus", "rules": [*_gpus(plan)]}]}


def _of(plan: Plan, workload: Workload) -> Iterator[Tree]:
    series, names = queries.selector(plan, workload=workload.name), queries.metrics_of(workload)
    up = queries.selector(plan, workload=workload.name, job=ENGINE_JOB)
    seconds = durations.startup_seconds(plan, workload) + 2 * INTERVAL_SECONDS
    yield _alert(
        "EngineDown",
        f"up{up} == 0",
        "{{ $labels.workload }} {{ $labels.replica }} does not answer",
        holds=f"{seconds}s",
    )
    for metric in workload.metrics:
        histogram = queries.timed(workload, metric)
        if histogram and metric.limit is not None and metric.sense == "at_most":
            which = metric.statistic
            what = f"{which or 'mean'} {metric.name.replace('_', ' ')}"
            yield _alert(
                "ObjectiveMissed",
                f"{queries.statistic(histogram, which, series)} > {metric.limit!r}",
                f"{workload.name}: {what} is {{{{ $value | humanizeDuration }}}},"
                f" over its objective of {metric.limit!r} s",
                objective=metric.name,
            )
    if workload.serving:
        batch = workload.serving.max_num_seqs * workload.replicas
        yield _alert(
            "QueueLong",
            f"sum({names.waiting}{series}) > {batch}",
            f"{workload.name}: {{{{ $value }}}} requests wait, more than the {batch} that run at"
            " once",
        )
    yield _alert(
        "CacheFull",
        f"max({names.cache}{series}) > 0.95",
        f"{workload.name}: the KV cache is nearly full, and requests are put off",
    )


def _gpus(plan: Plan) -> Iterator[Tree]:
    stack, up = queries.selector(plan), queries.selector(plan, job=GPU_JOB)
    yield _alert("ExporterDown", f"up{up} == 0", "nothing is known of the GPUs")
    yield _alert(
        "GpuFault",
        f"changes({metrics.FAULT}{stack}[{HOLDS}]) > 0",
        "GPU {{ $labels.gpu }} reports an XID error",
        holds="0s",
    )
    yield _alert(
        "GpuMemoryFailing",
        f"{metrics.REMAP_FAILED}{stack} > 0",
        "GPU {{ $labels.gpu }} has no rows left to remap: have it replaced",
        holds="0s",
    )


def _alert(name: str, expr: str, summary: str, *, holds: str = HOLDS, **labels: str) -> Tree:
    return {
        "alert": name,
        "expr": expr,
        "for": holds,
        "labels": {"severity": "warning", **labels},
        "annotations": {"summary": summary},
    }
