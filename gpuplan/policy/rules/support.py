"""Rules about how long a version is looked after."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

from gpuplan.policy.api import Finding, Subject


def support_ends(subject: Subject) -> Iterator[Finding]:
    """The cluster's Kubernetes release soon leaves, or has left, its provider's standard support.

    Why: from that day the control plane costs several times as much, or the provider upgrades it on
    a day that nobody chose, with add-ons and nodes that nobody held against the new release.

    Looks at: the release of a cluster that a cloud manages, and the days that its provider states,
    which are in the plan with their source.

    Threshold: `minimum_days` from the day of the check to the end of standard support. Past that
    day it is an error. Source: AWS announces the day 60 days before at the latest.

    Fix: compile with a newer release in `platform.versions.kubernetes`, with the add-ons' versions
    that go with it; upgrade one minor release at a time.

    Silent: about clusters that no cloud manages, whose support nobody states.
    """
    if subject.plan.cloud is None or subject.as_of is None:
        return
    release = subject.plan.cloud.release
    left = (_day(release.standard_until) - subject.as_of).days
    if left < subject.thresholds["minimum_days"]:
        ends = "ends" if left >= 0 else "ended"
        yield Finding(
            resource="cloud/release",
            path="cloud.release.standard_until",
            message=f"standard support of Kubernetes {release.version} {ends} on"
            f" {release.standard_until} ({release.source})",
            help="name a newer release in platform.versions.kubernetes, and compile again",
            requested=subject.thresholds["minimum_days"],
            capacity=left,
            unit="days",
            level="error" if left < 0 else None,
        )


def _day(text: str) -> date:
    """Raises ArithmeticError for a text that is no day: then nobody may say that it is far off."""
    try:
        return date.fromisoformat(text)
    except ValueError as problem:
        raise ArithmeticError(f"'{text}' is not a day") from problem
