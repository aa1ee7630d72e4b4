"""Finds the manifests that stacks were made from, and the inventories that those name, so that
findings can stand at their lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from gpuplan.plan.model import Plan
from gpuplan.source import SourceDocument, Sources


def documents(place: Path, plan: Plan, given: Sequence[Path] = ()) -> Sources:
    """The manifest of the plan whose stack is at `place`, with its inventory: among the files
    `given`, below the working folder, or beside the folder of stacks. What cannot be read, or is of
    another stack, is no manifest of it."""
    sources = Sources()
    names = {w.origin.document.partition("#")[0] for w in plan.workloads if w.origin}
    for name in sorted(names):
        for document in _documents((*given, *_candidates(place, name)), name):
            if _is_of(plan, document):
                sources.add(document)
                _add_inventory(document, plan, sources)
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
    """Whether the document is a manifest of the plan whose workloads stand where the plan says. Of
    several targets, a plan is called NAME-TARGET, of several regions it is one of theirs."""
    data = document.data
    if not isinstance(data, dict) or data.get("name") not in (
        plan.name,
        plan.name.removesuffix(f"-{plan.target}"),
        *((plan.regions.name,) if plan.regions else ()),
    ):
        return False
    works = data.get("workloads")
    names = [w.get("name") for w in works if isinstance(w, dict)] if isinstance(works, list) else []
    own = [w for w in plan.workloads if w.origin and w.origin.document == document.name]
    if plan.regions is not None:
        names = [n for n in names if n in {w.name for w in own}]
    return bool(own) and [w.name for w in own] == names


def _add_inventory(manifest: SourceDocument, plan: Plan, sources: Sources) -> None:
    """The inventory that the manifest names, where it still has the plan's hosts."""
    from gpuplan.manifest.load import inventory_label

    platform = manifest.data.get("platform") if isinstance(manifest.data, dict) else None
    inventory = platform.get("inventory") if isinstance(platform, dict) else None
    if not isinstance(inventory, str):
        return
    label = inventory_label(manifest.name, inventory)
    origins = (*(p.origin for p in plan.node_pools), *(h.origin for h in plan.hosts))
    listed = {o for o in origins if o is not None and o.document == label}
    names = {h.origin: h.name for h in plan.hosts}
    for document in _documents((Path(manifest.path).parent / inventory,), label):
        if all(_at(document, o.path, names.get(o)) for o in listed):
            sources.add(document)


def _at(document: SourceDocument, path: tuple[str | int, ...], name: str | None) -> bool:
    """Whether something stands at `path`; where that is a host's own name, whether it is `name`."""
    value = document.data
    for part in path:
        try:
            value = value[part]  # type: ignore[index]
        except (IndexError, KeyError, TypeError):
            return False
    return value == name if name is not None and isinstance(value, str) else True
