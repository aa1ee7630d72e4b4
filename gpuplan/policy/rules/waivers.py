"""Rules about waivers themselves. They run last and cannot be waived."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase

from gpuplan.policy.api import Finding, Ledger, Waiver


def _describe(waiver: Waiver) -> str:
    rule = waiver.rule or "unknown rule"
    return f"the waiver of {rule}" + (f" for {waiver.match}" if waiver.match else "")


def _finding(waiver: Waiver, message: str, remedy: str) -> Finding:
    return Finding(
        resource=f"waiver/{waiver.rule}/{waiver.match}"
        if waiver.match
        else f"waiver/{waiver.rule}",
        path=waiver.file,
        message=message,
        help=remedy,
        file=waiver.file,
        line=waiver.line,
    )


def expired(ledger: Ledger) -> Iterator[Finding]:
    """A waiver has expired.

    Why: an exception that nobody renews is a rule that nobody follows.

    Looks at: the last day of every waiver against the day of the check (`--as-of`).

    Threshold: the day itself still counts; the next day the finding it covered is back, beside
    this.

    Fix: remove the cause, or renew the waiver with a new reason.

    Silent: for a waiver that is not complete (GP903).
    """
    for waiver in ledger.waivers:
        if not waiver.problems and waiver.expires is not None and waiver.expires < ledger.as_of:
            yield _finding(
                waiver,
                f"{_describe(waiver)} expired on {waiver.expires}",
                "remove the cause, or renew the waiver with a reason that holds today",
            )


def stale(ledger: Ledger) -> Iterator[Finding]:
    """A waiver matches no finding.

    Why: it waits for a finding that somebody else will cause, and hides it.

    Looks at: every complete waiver, expired or not, against all findings of the check.

    Threshold: none.

    Fix: remove the waiver, or correct its `match`.

    Silent: for a waiver of a stack that is not part of this check; for one that is not complete
    (GP903).
    """
    for waiver in ledger.waivers:
        if not waiver.problems and waiver not in ledger.used and _is_here(waiver, ledger):
            yield _finding(
                waiver, f"{_describe(waiver)} matches no finding", "remove it, or correct its match"
            )


def _is_here(waiver: Waiver, ledger: Ledger) -> bool:
    stack = waiver.match.partition("/")[0]
    return waiver.inline or any(fnmatchcase(name, stack) for name in ledger.stacks)


def incomplete(ledger: Ledger) -> Iterator[Finding]:
    """A waiver is not complete, or granted for too long. It covers nothing.

    Why: an exception without a reason, an owner and an end is a hole, not a decision.

    Looks at: the fields of every waiver: rule, match, reason, owner and expiry; an inline waiver
    needs rule, reason and expiry.

    Threshold: at most `maximum_days` from the day of the check to the expiry.

    Fix: complete it; for a longer time, renew it.

    Silent: never.
    """
    longest = ledger.thresholds["maximum_days"]
    for waiver in ledger.waivers:
        problems = list(waiver.problems)
        if waiver.expires is not None and (waiver.expires - ledger.as_of).days > longest:
            problems.append(f"it lasts until {waiver.expires}, more than {longest} days from now")
        if problems:
            yield _finding(
                waiver,
                f"{_describe(waiver)} covers nothing: {'; '.join(problems)}",
                "a waiver has rule, match, reason, owner and expires",
            )
