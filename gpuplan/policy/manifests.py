"""Finds the manifests that stacks were made from, so that findings can stand at their lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from gpuplan.plan.model import Plan
from gpuplan.source import SourceDocument, Sources


def manifests(plans: Mapping[str, Plan], given: Sequence[Path] = ()) -> Sources:
    """The manifests of stacks: among the files `given`, below the working folder, or beside the
    folder of stacks. `plans` are by the stack's place. What cannot be read, or is of another stack,
    is no manifest of it."""
    sources = Sources()
    for place, plan in plans.items():
        names = {w.origin.document.partition("#")[0] for w in plan.workloads if w.origin}
        for name in sorted(names):
            candidates = (*given, *_candidates(Path(place), name))
            for document in _documents(candidates, name):
                if _is_of(plan, document):
                    sources.add(document)
                    break
    return sources


def _candidates(stack: Path, name: str) -> Iterator[Path]:
    near = (Path(), stack.parent, stack.parent.parent)
    yield from (folder / name for folder in near)
    for folder in (Path(), stack.parent.parent):
        if folder.is_dir():
            inner = (f for f in sorted(folder.iterdir()) if f.is_dir())
            yield from (f / name for f in inner if not f.name.startswith("."))


def _documents(paths: Iterable[Path], name: str) -> Iterator[SourceDocument]:
    from gpuplan.manifest.load import read_text
    from gpuplan.manifest.text import read_yaml

    for path in dict.fromkeys(paths):
        text = read_text(path) if path.is_file() else None
        if isinstance(text, str):
            yield from (d for d, problems in read_yaml(name, text, str(path)) if not problems)


def _is_of(plan: Plan, document: SourceDocument) -> bool:
    """Whether the document is a manifest of the plan whose workloads stand where the plan says."""
    data = document.data
    if not isinstance(data, dict) or data.get("name") != plan.name:
        return False
    works = data.get("workloads")
    names = [w.get("name") for w in works if isinstance(w, dict)] if isinstance(works, list) else []
    own = [w for w in plan.workloads if w.origin and w.origin.document == document.name]
    return bool(own) and [w.name for w in own] == names
