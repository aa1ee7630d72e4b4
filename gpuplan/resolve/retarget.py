"""Manifests for other targets than they name."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from gpuplan.diagnostics import Diagnostic
from gpuplan.manifest.base import NAME_LENGTH
from gpuplan.manifest.load import Loaded
from gpuplan.resolve.messages import long_stack_name
from gpuplan.source import Origin


def retargeted(
    manifests: Iterable[Loaded], targets: Sequence[str]
) -> tuple[list[Loaded], list[Diagnostic]]:
    """Each manifest for each of `targets`, and the names that cannot be; as they are where none is
    given. Of several targets a stack is called NAME-TARGET: no target has a '-', so none meets
    another's."""
    if not targets:
        return list(manifests), []
    made = [_for(loaded, t, several=len(targets) > 1) for loaded in manifests for t in targets]
    if len(targets) == 1:
        return made, []
    problems = [
        long_stack_name(loaded.manifest.name, NAME_LENGTH, Origin(loaded.document, ("name",)))
        for loaded in made
        if len(loaded.manifest.name) > NAME_LENGTH
    ]
    return made, problems


def _for(loaded: Loaded, target: str, *, several: bool) -> Loaded:
    manifest = loaded.manifest
    platform = manifest.platform.model_copy(update={"target": target})
    name = f"{manifest.name}-{target}" if several else manifest.name
    return replace(
        loaded, manifest=manifest.model_copy(update={"platform": platform, "name": name})
    )


def of_targets(
    problems: Iterable[tuple[str, Diagnostic]], targets: int, what: str = "target"
) -> Iterator[Diagnostic]:
    """Each problem once, with its targets, or `what` else has it, where others of as many do not
    have it."""
    having: defaultdict[Diagnostic, set[str]] = defaultdict(set)
    for target, problem in problems:
        having[problem].add(target)
    for problem, those in having.items():
        where = "" if len(those) >= targets else f" ({what} {', '.join(sorted(those))})"
        yield replace(problem, message=problem.message + where)
