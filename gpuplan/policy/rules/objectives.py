"""Rules about objectives."""

from __future__ import annotations

from collections.abc import Iterator

from gpuplan.plan.times import in_words, limit_name, limit_path
from gpuplan.policy.api import Finding, Subject
from gpuplan.units import format_apart


def accepted_miss(subject: Subject) -> Iterator[Finding]:
    """An objective is missed, and its manifest accepts that.

    Why: who reads a plan takes a stated objective for a kept one. One that was given up stays
    visible for as long as it is missed.

    Looks at: the predicted figures of each workload, their limits, and `overrides.accepted_misses`.

    Threshold: missed with the wanted confidence (`slo.confidence`).

    Fix: another limit under `slo`, or more or faster GPUs and no accepted miss.

    Silent: where an objective is met, and of objectives that may not be missed: `gpuplan compile`
    refuses a plan that misses one.
    """
    for workload in subject.plan.workloads:
        for metric in workload.metrics:
            if not metric.accepted_miss or metric.limit is None:
                continue
            value, limit = format_apart(metric.estimate.value, metric.limit, metric.unit)
            missed = f"{in_words(metric.name)} {value} of {limit}"
            yield Finding(
                resource=f"workload/{workload.name}",
                path=f"workloads[{workload.name}].metrics[{metric.name}]",
                message=f"{workload.name}: accepted miss: {missed}",
                help=f"change slo.{limit_name(metric.name)}, or accept it no longer",
                requested=metric.estimate.value,
                capacity=metric.limit,
                unit=metric.unit,
                origin=workload.origin and workload.origin.child("slo", *limit_path(metric.name)),
            )
