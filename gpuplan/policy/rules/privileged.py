"""Privileged containers."""

from __future__ import annotations

import re
from collections.abc import Iterator

from gpuplan.policy.api import EXPANDED, Block, Entry, Finding, Subject

_IN_TEXT = re.compile(
    r"""--(?:privileged|fakeroot|keep-privs|allow-setuid|add-caps)\b(?!=false)|\bprivileged["']?\s*:\s*["']?(?:true|yes|on)\b""",
    re.IGNORECASE,
)
_NO = (None, False, "false", "no", "off", "n")
_YES = (True, "true", "yes", "on", "y")
_OPAQUE = ("SecurityContext", "Container")


def privileged(subject: Subject) -> Iterator[Finding]:
    """A container runs privileged.

    Why: a privileged container owns the node: it sees every device, every other tenant's memory and
    the kubelet's credentials. GPUs do not need it; the device plugin hands them out.

    Looks at: the generated Python programs (parsed, never run), YAML and JSON: every setting called
    `privileged`, as keyword, key, attribute or item, and texts that hold manifests or
    `--privileged`. A value that only a run decides (`bool(1)`, a function, `**options` of a
    security context) counts as privileged, since nobody can review it; so does a file that cannot
    be parsed. Of scripts and units: the options of `srun`, `apptainer`, `podman`, `docker` and
    `enroot` that give root's rights.

    Threshold: none. Source: Kubernetes Pod Security Standards, level `baseline`; `apptainer exec
    --help` for `--fakeroot`, `--keep-privs`, `--allow-setuid` and `--add-caps`.

    Fix: remove it; ask for the one capability or device that is needed. `gpuplan preview` shows
    what a program really registers.

    Silent: about pods that a chart renders: those are the chart's own (drivers and device plugins
    need it), pinned by its version.
    """
    for problem in subject.unreadable:
        yield Finding(
            resource=f"file/{problem.file}",
            path="privileged",
            message=f"{problem.file} cannot be read ({problem.reason}), so privileged containers "
            "cannot be ruled out",
            help="compile the stack again, or repair the file",
            file=problem.file,
            line=problem.line,
        )
    for block in subject.blocks:
        for entry in block.entries:
            fault = _judge(block, entry)
            if fault:
                yield _finding(block, entry, fault)


def _judge(block: Block, entry: Entry) -> str | None:
    """What is wrong with the entry, or None."""
    if block.kind == "text":
        match = isinstance(entry.value, str) and _IN_TEXT.search(entry.value)
        return f"holds '{match[0]}'" if match else None
    if entry.key == EXPANDED and not entry.known and any(k in block.kind for k in _OPAQUE):
        return f"takes '**{entry.value}', which may set 'privileged' and only a run decides"
    if entry.key != "privileged":
        return None
    value = entry.value.casefold() if isinstance(entry.value, str) else entry.value
    if not entry.known:
        return f"has 'privileged' set to '{entry.value}', which only a run decides"
    if value in _YES:
        return "runs privileged"
    return (
        None if value in _NO else f"has 'privileged' set to '{value}', which is neither yes nor no"
    )


def _finding(block: Block, entry: Entry, fault: str) -> Finding:
    resource = block.resource or f"file/{block.file}"
    path = block.path if block.kind == "text" else f"{block.path}.{entry.key}".lstrip(".")
    return Finding(
        resource=resource,
        path=path,
        message=f"{resource} {fault}",
        help="remove it, or ask for the one capability that is needed",
        file=block.file,
        line=entry.line,
    )
