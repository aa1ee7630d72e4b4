"""Runs the rules over stacks and applies the waivers. Pure: the same input gives the same
report."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import date
from types import MappingProxyType

from gpuplan.diagnostics import AGAIN, Diagnostic, Severity, error
from gpuplan.errors import Rejected
from gpuplan.findings import Report, RuleInfo, Verdict
from gpuplan.policy.api import PLAN_FILE, Finding, Ledger, Rule, Subject, Waiver, WaiverRule
from gpuplan.policy.blocks import parse
from gpuplan.policy.origins import origin_of
from gpuplan.policy.packs import Pack, Setting
from gpuplan.policy.reading import Stack
from gpuplan.policy.rules import RULES, WAIVER_RULES
from gpuplan.policy.waivers import apply, inline_waivers
from gpuplan.policy.written import written

EVERY: tuple[Rule | WaiverRule, ...] = (*RULES, *WAIVER_RULES)


def not_evaluated(rule: Rule, stack: str, reason: str) -> Diagnostic:
    return error(
        "GP953",
        f"{rule.identifier} cannot judge {stack}: {reason}",
        help=AGAIN,
    )


def check(
    stacks: Sequence[Stack],
    pack: Pack,
    waivers: Sequence[Waiver] = (),
    *,
    as_of: date,
    holders: Mapping[str, str] = MappingProxyType({}),
) -> Report:
    """The report on `stacks`. `as_of` is the day of the check, `holders` are the
    stacks that hold hosts. Raises `Rejected`."""
    names = tuple(s.plan.name for s in stacks)
    known = tuple(rule.identifier for rule in EVERY)
    inline = (w for stack in stacks for w in inline_waivers(stack, known))
    every = (*waivers, *inline)
    verdicts, used = apply(
        every,
        _ordinals(v for stack in stacks for v in judge(stack, pack, holders, as_of)),
        as_of,
        pack["GP903"].thresholds["maximum_days"],
    )
    ledger = Ledger(every, used, names, as_of, {})
    judged = sorted((*verdicts, *_judge_waivers(ledger, pack)), key=_order)
    infos = tuple(_info(rule, pack[rule.identifier]) for rule in EVERY)
    return Report(stacks=names, as_of=as_of, rules=infos, verdicts=tuple(judged))


def judge(stack: Stack, pack: Pack, holders: Mapping[str, str], as_of: date) -> Iterator[Verdict]:
    files = parse(stack.files)
    made = written(stack.files)
    subject = Subject(
        stack.plan, stack.files, {}, *files, written=made, holders=holders, as_of=as_of
    )
    texts = {f.path: f.text for f in stack.files} | {PLAN_FILE: stack.plan_text}
    for rule in RULES:
        setting = pack[rule.identifier]
        if setting.enabled:
            for finding in _findings(rule, replace(subject, thresholds=setting.thresholds)):
                line = finding.line or _line(texts, finding)
                place = replace(
                    finding,
                    file=stack.file(finding.file),
                    line=line,
                    origin=origin_of(stack.plan, finding),
                )
                yield _verdict(rule, setting, stack.plan.name, place)


def _findings(rule: Rule, subject: Subject) -> list[Finding]:
    """Raises `Rejected` where the plan's numbers are impossible: then nobody may say that it
    passed."""
    try:
        return list(rule.check(subject))
    except ArithmeticError as problem:
        raise Rejected([not_evaluated(rule, subject.plan.name, str(problem))]) from problem


def _line(texts: dict[str, str], finding: Finding) -> int | None:
    """The line of a finding in a YAML file, whose rule knows only the path."""
    if not finding.file.endswith((".yaml", ".yml")):
        return None
    from gpuplan.policy.lines import line_of

    return line_of(texts.get(finding.file, ""), finding.path)


def _judge_waivers(ledger: Ledger, pack: Pack) -> Iterator[Verdict]:
    for rule in WAIVER_RULES:
        setting = pack[rule.identifier]
        if setting.enabled:
            for finding in rule.check(replace(ledger, thresholds=setting.thresholds)):
                yield _verdict(rule, setting, "", finding)


def _verdict(rule: Rule | WaiverRule, setting: Setting, stack: str, finding: Finding) -> Verdict:
    level = finding.level if finding.level and not setting.pinned else setting.severity.value
    return Verdict(
        rule=rule.identifier,
        name=rule.name,
        severity=Severity(level),
        stack=stack,
        resource=_clean(finding.resource),
        path=_clean(finding.path),
        file=_clean(finding.file),
        line=finding.line,
        message=_clean(finding.message),
        help=finding.help,
        requested=finding.requested,
        capacity=finding.capacity,
        unit=finding.unit,
        usd_per_hour=finding.usd_per_hour,
        fingerprint=_fingerprint(rule.identifier, stack, finding.resource, finding.path),
        origin=finding.origin,
    )


def _fingerprint(rule: str, stack: str, resource: str, path: str) -> str:
    identity = "\0".join((rule, stack, resource, path))
    return hashlib.sha256(identity.encode("utf-8", "surrogateescape")).hexdigest()


def _clean(text: str) -> str:
    """`text` with U+FFFD for bytes that are not UTF-8, so that every report can be encoded."""
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "replace")


def _ordinals(verdicts: Iterable[Verdict]) -> Iterator[Verdict]:
    """Number findings of one rule on one property, so that each has its own fingerprint."""
    seen: dict[str, int] = {}
    for verdict in verdicts:
        number = seen[verdict.fingerprint] = seen.get(verdict.fingerprint, 0) + 1
        if number > 1:
            path = f"{verdict.path}#{number}"
            mark = _fingerprint(verdict.rule, verdict.stack, verdict.resource, path)
            verdict = replace(verdict, path=path, fingerprint=mark)  # noqa: PLW2901
        yield verdict


def _order(verdict: Verdict) -> tuple[int, float, str, int, str, str, str]:
    """Gravest first, then the dearest, then by place."""
    return (
        verdict.severity.rank,
        -(verdict.usd_per_hour or 0.0),
        verdict.file,
        verdict.line or 0,
        verdict.rule,
        verdict.resource,
        verdict.path,
    )


def _info(rule: Rule | WaiverRule, setting: Setting) -> RuleInfo:
    page = rule.documentation
    return RuleInfo(
        identifier=rule.identifier,
        name=rule.name,
        summary=" ".join(page.partition("\n\n")[0].split()),
        page=page,
        severity=setting.severity,
    )
