"""Waivers: findings that somebody accepted, for a reason, until a day.

They stand in a file (`policies/waivers.yaml`) or beside the line they are about:

    waivers:
    - rule: GP201
      match: chat/workload/assistant        # a glob over STACK/RESOURCE
      reason: the H100s are paid for until the lease ends
      owner: ml-platform
      expires: 2026-12-31

    # gpuplan: ignore[GP701] until=2026-12-31 the profiler needs it

A waiver that is not complete covers nothing and is itself a finding (GP901, GP902, GP903).
"""

from __future__ import annotations

import io
import re
import tokenize
from collections.abc import Iterable, Iterator
from dataclasses import replace
from datetime import date
from fnmatch import fnmatchcase
from pathlib import Path

from gpuplan.diagnostics import Diagnostic, did_you_mean, error
from gpuplan.errors import Rejected
from gpuplan.findings import Suppression, Verdict
from gpuplan.policy.api import Waiver
from gpuplan.policy.reading import Stack, read_document
from gpuplan.render.tree import File
from gpuplan.source import Origin, SourceDocument, Sources

FIELDS = ("rule", "match", "reason", "owner", "expires")
_DATE = r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
_MARK = re.compile(r"#\s*gpuplan:\s*(.*)")
_INLINE = r"ignore\[([A-Z0-9, ]+)\](?:\s+until=(\S+))?\s*(.*)"
_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\'(?:[^\']|\'\')*\'')
_YAML_COMMENT = re.compile(r"(?:^|(?<=\s))#.*")


def not_waivers(document: str) -> Diagnostic:
    return error(
        "GP950",
        f"{document} is not a list of waivers",
        Origin(document),
        help=f"write 'waivers:' and under it entries of {', '.join(FIELDS)}",
    )


def load_waivers(
    path: Path, known: Iterable[str], sources: Sources | None = None
) -> tuple[Waiver, ...]:
    """The waivers in a file; `known` are the rules there are. Raises `Rejected`."""
    document = read_document(path, sources)
    data = document.data
    entries = data.get("waivers") if isinstance(data, dict) and set(data) == {"waivers"} else None
    if not isinstance(entries, list):
        raise Rejected([not_waivers(document.name)])
    rules = tuple(known)
    return tuple(_entry(document, number, body, rules) for number, body in enumerate(entries))


def _entry(document: SourceDocument, number: int, body: object, known: tuple[str, ...]) -> Waiver:
    span = document.values.get(("waivers", number))
    line = span.line if span else None
    if not isinstance(body, dict):
        problem = f"it must be a mapping of {', '.join(FIELDS)}"
        return Waiver(rule="", file=document.name, line=line, problems=(problem,))
    texts = {f: body[f] for f in FIELDS if isinstance(body.get(f), str) and body[f].strip()}
    problems = [
        f"unknown field '{n}' {did_you_mean(n, FIELDS)}".rstrip() for n in body if n not in FIELDS
    ]
    problems += [f"'{f}' is missing" for f in FIELDS if f not in body]
    problems += [f"'{f}' must be a text" for f in FIELDS if f in body and f not in texts]
    problems += _problems(texts.get("rule"), texts.get("expires"), known)
    return Waiver(
        rule=texts.get("rule", ""),
        match=texts.get("match", ""),
        reason=texts.get("reason", ""),
        owner=texts.get("owner", ""),
        expires=_date(texts.get("expires", "")),
        file=document.name,
        line=line,
        problems=tuple(problems),
    )


def _problems(rule: str | None, expires: str | None, known: tuple[str, ...]) -> Iterator[str]:
    if rule is not None and rule not in known:
        yield f"no rule is called '{rule}' {did_you_mean(rule, known)}".rstrip()
    if expires is not None and _date(expires) is None:
        yield f"'{expires}' is not a date: write YYYY-MM-DD"


def _date(text: str) -> date | None:
    if not re.fullmatch(_DATE, text):
        return None
    try:
        return date.fromisoformat(text)
    except ValueError:
        return None


def inline_waivers(stack: Stack, known: Iterable[str]) -> Iterator[Waiver]:
    """Waivers in comments of the stack's programs and YAML files."""
    rules = tuple(known)
    for file in stack.files:
        for line, comment in _comments(file):
            mark = _MARK.fullmatch(comment.strip())
            if mark:
                yield from _inline(mark[1], stack.file(file.path), line, rules)


def _comments(file: File) -> list[tuple[int, str]]:
    """(line, text) of comments. Text inside a string is data, whatever it looks like."""
    if not _MARK.search(file.text):
        return []
    if file.path.endswith(".py"):
        return _program_comments(file.text)
    if not file.path.endswith((".yaml", ".yml", "requirements.txt")):
        return []
    numbered = enumerate(file.text.split("\n"), start=1)
    rows = ((number, row) for number, row in numbered if "gpuplan:" in row)
    comments = ((number, _YAML_COMMENT.search(_QUOTED.sub("", row))) for number, row in rows)
    return [(number, match[0]) for number, match in comments if match]


def _program_comments(text: str) -> list[tuple[int, str]]:
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    except (tokenize.TokenError, SyntaxError):
        return []  # GP701 reports a program that cannot be parsed
    return [(t.start[0], t.string) for t in tokens if t.type == tokenize.COMMENT]


def _inline(text: str, file: str, line: int, known: tuple[str, ...]) -> Iterator[Waiver]:
    match = re.fullmatch(_INLINE, text)
    if not match:
        problem = "write 'ignore[RULE] until=YYYY-MM-DD REASON'"
        yield Waiver(rule="", file=file, line=line, inline=True, problems=(problem,))
        return
    names, until, reason = match[1], match[2], match[3].strip()
    problems = [] if until else ["'until=YYYY-MM-DD' is missing"]
    problems += [] if reason else ["a reason is missing"]
    for rule in (n.strip() for n in names.split(",")):
        yield Waiver(
            rule=rule,
            reason=reason,
            expires=_date(until or ""),
            file=file,
            line=line,
            inline=True,
            problems=(*problems, *_problems(rule, until, known)),
        )


def apply(
    waivers: tuple[Waiver, ...], verdicts: Iterable[Verdict], as_of: date, longest_days: int
) -> tuple[tuple[Verdict, ...], frozenset[Waiver]]:
    """The verdicts, the waived ones marked, and the waivers that cover one (or did, and
    expired)."""
    used: set[Waiver] = set()
    marked = []
    for verdict in verdicts:
        matching = [w for w in waivers if not w.problems and _covers(w, verdict)]
        used.update(matching)
        valid = (w for w in matching if _is_granted(w, as_of, longest_days))
        waiver = next(valid, None)
        marked.append(replace(verdict, suppression=_suppression(waiver)) if waiver else verdict)
    return tuple(marked), frozenset(used)


def _is_granted(waiver: Waiver, as_of: date, longest_days: int) -> bool:
    """Whether the waiver, which is complete, has not expired, and is not granted for too long."""
    assert waiver.expires is not None
    return 0 <= (waiver.expires - as_of).days <= longest_days


def _covers(waiver: Waiver, verdict: Verdict) -> bool:
    if waiver.rule != verdict.rule:
        return False
    if waiver.inline:
        assert waiver.line is not None
        return waiver.file == verdict.file and verdict.line in (waiver.line, waiver.line + 1)
    return fnmatchcase(f"{verdict.stack}/{verdict.resource}", waiver.match)


def _suppression(waiver: Waiver) -> Suppression:
    assert waiver.expires is not None
    return Suppression(
        reason=waiver.reason,
        owner=waiver.owner,
        expires=waiver.expires,
        place=f"{waiver.file}:{waiver.line}" if waiver.line else waiver.file,
        inline=waiver.inline,
    )
