"""Files → manifests: every document of every file, all problems of all documents at once."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path, PurePath
from typing import TypeVar

from pydantic import BaseModel, ValidationError

from gpuplan.diagnostics import Diagnostic, Related, Severity, error, note
from gpuplan.frozen import frozen
from gpuplan.manifest.leaks import conceal
from gpuplan.manifest.text import read_yaml
from gpuplan.manifest.v1 import Manifest
from gpuplan.plan.outside.regions import Regions
from gpuplan.source import Origin, Place, SourceDocument, Sources, Span

M = TypeVar("M", bound=BaseModel)


CHECK_PATH = "check the path"
MOST_PROBLEMS = 100  # of one document that are shown
LARGEST_FILE = 64 * 2**20  # of any document


def unreadable(path: PurePath, reason: str, remedy: str = CHECK_PATH) -> Diagnostic:
    return error("GP009", f"cannot read {path}: {reason}", help=remedy)


def unreadable_at(problem: Diagnostic, origin: Origin) -> Diagnostic:
    """The same, where a document names the file."""
    relative = "paths are relative to the document"
    return replace(
        problem, origin=origin, help=relative if problem.help == CHECK_PATH else problem.help
    )


def not_utf8(path: PurePath, content: bytes, byte: int) -> Diagnostic:
    line = content.count(b"\n", 0, byte) + 1
    reason = f"byte 0x{content[byte]:02x} in line {line} is not UTF-8"
    return unreadable(path, reason, "save the file as UTF-8")


def empty_document(
    name: str, remedy: str = "`gpuplan init` writes a first manifest", start: Place | None = None
) -> Diagnostic:
    return error("GP004", f"{name} holds no document", start, help=remedy)


def several_documents(name: str, second: Origin) -> Diagnostic:
    return error(
        "GP002",
        f"{name} holds more than one document",
        second,
        label="the second starts here",
        help="only the first would be read: use one file for each",
    )


def same_name(name: str, first: Origin, second: Origin) -> Diagnostic:
    return Diagnostic(
        rule="GP007",
        severity=Severity.ERROR,
        message=f"two stacks are called '{name}'",
        origin=second,
        label="each stack is one folder",
        help="give one of them another name",
        related=(Related("first used here", first),),
    )


@frozen
class Loaded:
    """A valid manifest, the name of its document, and the folder its paths are relative to. Of one
    in several regions `regions` are all of them, the manifest is one of theirs, and `kept` are the
    places of its workloads in that of all."""

    manifest: Manifest
    document: str
    folder: Path
    regions: Regions | None = None
    kept: tuple[int, ...] = ()


@dataclass(slots=True)
class Reading:
    """What came of reading: manifests, every text, every problem."""

    manifests: list[Loaded] = field(default_factory=list)
    sources: Sources = field(default_factory=Sources)
    problems: list[Diagnostic] = field(default_factory=list)


def read_text(path: Path) -> str | Diagnostic:
    """The text of a UTF-8 file, or what is wrong with it."""
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as problem:
        return unreadable(path, (problem.strerror or "unreadable").lower())
    except ValueError:
        return unreadable(path, "a path cannot hold the character U+0000")
    if len(content) > LARGEST_FILE:
        remedy = "divide it, or name the right file"
        return unreadable(path, f"it is larger than {LARGEST_FILE >> 20} MiB", remedy)
    try:
        return content.decode("utf-8-sig").replace("\r\n", "\n")
    except UnicodeDecodeError as problem:
        return not_utf8(path, content, problem.start + len(content) - len(problem.object))


def inventory_label(manifest: str, inventory: str) -> str:
    """What the document of an inventory is called that the document `manifest` names: its base
    name, or all that is written, where lines of one would show the other's."""
    own, base = PurePath(manifest.partition("#")[0]).name, PurePath(inventory).name
    return base if base != own else inventory


def read_document(
    path: Path, name: str, sources: Sources, remedy: str, at: Origin | None = None
) -> tuple[SourceDocument | None, list[Diagnostic]]:
    """The one YAML document of a file, called `name` in `sources` and in messages, and what is
    wrong with it; None where it is not to be read on. `remedy` is for a file that holds none;
    `at` is where another document names the file."""
    text = read_text(path)
    if isinstance(text, Diagnostic):
        return None, [text if at is None else unreadable_at(text, at)]
    documents = list(read_yaml(name, text, str(path)))
    for document, _ in documents or [(SourceDocument(name, text, str(path)), [])]:
        sources.add(document)
    problems = [p for _, wrong in documents for p in wrong]
    if not documents:
        return None, [empty_document(name, remedy, Place(name, Span(1, 1, 1, 2)))]
    if len(documents) > 1:
        problems.append(several_documents(name, Origin(documents[1][0].name)))
    document, wrong = documents[0]
    return None if wrong else document, problems


def unlisted(document: str, count: int) -> Diagnostic:
    return note("GP075", f"{document} has {count:,} more problems", help="correct the first ones")


def validate(
    model: type[M], document: SourceDocument, most: int = MOST_PROBLEMS
) -> tuple[M | None, tuple[Diagnostic, ...]]:
    """`document` as `model`, or the problems it has, `most` at most with how many more there are.
    Secrets are taken out of it."""
    leaks = conceal(document)
    try:
        valid = model.model_validate(document.data)
    except ValidationError as problem:
        from gpuplan.manifest.explainers import explain_errors

        explained = explain_errors(problem, document.name, document.data, model)
        more = problem.error_count() - most
        rest = (unlisted(document.name, more),) if more > 0 else ()
        return None, (*leaks, *islice(explained, most), *rest)
    return (None, tuple(leaks)) if leaks else (valid, ())


def load_manifests(paths: Sequence[Path]) -> Reading:
    """Read all documents of all files; names of documents are the files' base names."""
    reading = Reading()
    for path, name in zip(paths, document_names(paths), strict=True):
        text = read_text(path)
        if isinstance(text, Diagnostic):
            reading.problems.append(text)
            continue
        _load_text(reading, path, name, text)
    reading.problems.extend(_same_names(reading.manifests))
    return reading


def load_text(text: str, path: str) -> Reading:
    """Read the documents of one text that stands, or will stand, at `path`."""
    reading = Reading()
    _load_text(reading, Path(path), Path(path).name, text)
    return reading


def document_names(paths: Sequence[PurePath]) -> list[str]:
    """Base names; where two are equal, with as many parents as tell them apart. Bytes that are no
    UTF-8 become U+FFFD: names go into stacks."""
    paths = [PurePath(os.fsencode(p).decode("utf-8", "replace")) for p in paths]
    names = [p.name for p in paths]
    depth = 1
    while len(set(names)) < len({*paths}) and depth < max(len(p.parts) for p in paths):
        depth += 1
        names = ["/".join(p.parts[-depth:]) for p in paths]
    return names


def _load_text(reading: Reading, path: Path, name: str, text: str) -> None:
    any_document = False
    for document, problems in read_yaml(name, text, str(path)):
        any_document = True
        reading.sources.add(document)
        reading.problems.extend(problems)
        if problems:
            continue
        manifest, wrong = validate(Manifest, document)
        reading.problems.extend(wrong)
        if manifest is not None:
            reading.manifests.append(Loaded(manifest, document.name, path.parent))
    if not any_document:
        reading.sources.add(SourceDocument(name, text, str(path)))
        reading.problems.append(empty_document(name, start=Place(name, Span(1, 1, 1, 2))))


def _same_names(manifests: Iterable[Loaded]) -> list[Diagnostic]:
    first: dict[str, Origin] = {}
    problems = []
    for loaded in manifests:
        name, origin = loaded.manifest.name, Origin(loaded.document, ("name",))
        if name in first:
            problems.append(same_name(name, first[name], origin))
        first.setdefault(name, origin)
    return problems
