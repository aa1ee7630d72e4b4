"""The edge of policies: reads stacks, packs and waivers from disk. No link is ever followed."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from pathlib import Path

from gpuplan.diagnostics import Diagnostic, error
from gpuplan.errors import Rejected
from gpuplan.plan import serialize
from gpuplan.plan.model import Plan, record
from gpuplan.policy.api import EVIDENCE_FILE, PLAN_FILE
from gpuplan.render.checksums import CHECKSUMS, is_users, is_users_entry
from gpuplan.render.tree import File, FileTree
from gpuplan.resources import policy_root
from gpuplan.source import SourceDocument, Sources


def unreadable(path: Path, reason: str) -> Diagnostic:
    return error("GP009", f"cannot read {path.as_posix()}: {reason}", help="check the path")


def no_stack(path: Path) -> Diagnostic:
    return error(
        "GP951",
        f"{path.as_posix()} holds no stack: no {PLAN_FILE} in it or in a folder of it",
        help="`gpuplan compile MANIFEST -o DIR` writes stacks into DIR",
    )


def several_documents(path: Path) -> Diagnostic:
    return error(
        "GP950",
        f"{path.as_posix()} holds more than one document",
        help="only the first would be read: use one file for each",
    )


@record
class Stack:
    """A stack as read. `place` is its folder as the person named it, or the plan file itself when
    that is all there is (`files` is empty then)."""

    place: str
    plan: Plan
    plan_text: str
    files: FileTree

    def file(self, name: str) -> str:
        """The path of the stack's file `name`, as the person would write it."""
        if not self.files.files:
            return self.place
        return name if self.place == "." else f"{self.place}/{name}"


def read_stacks(path: Path) -> tuple[Stack, ...]:
    """The stack in the folder `path`, the stacks in its folders, or the plan file `path`. Raises
    `Rejected`."""
    try:
        if path.is_file():
            beside = path.with_name(EVIDENCE_FILE)
            evidence = _content(beside) if beside.is_file() else None
            return (_stack(path.as_posix(), _decode(path.read_bytes()), FileTree(), evidence),)
        folders = [path] if _is_stack(path) else _children(path)
        if not folders:
            raise Rejected([no_stack(path)])
        return tuple(_read_stack(f) for f in folders)
    except OSError as problem:
        where = Path(problem.filename) if isinstance(problem.filename, str) else path
        raise Rejected([unreadable(where, (problem.strerror or "unreadable").lower())]) from problem


def read_side(path: Path) -> tuple[Stack, ...]:
    """The stacks at `path`; none for `/dev/null` or an empty folder. Raises `Rejected`."""
    if path == Path("/dev/null"):
        return ()
    try:
        nothing = path.is_dir() and not any(path.iterdir())
    except OSError as problem:
        raise Rejected([unreadable(path, (problem.strerror or "unreadable").lower())]) from problem
    return () if nothing else read_stacks(path)


def default_waivers() -> Path | None:
    """The waivers of the repository in whose root the command runs."""
    path = Path("policies/waivers.yaml")
    return path if path.is_file() else None


def _children(path: Path) -> list[Path]:
    return sorted(
        child
        for child in path.iterdir()
        if not child.name.startswith(".") and child.is_dir() and _is_stack(child)
    )


def _is_stack(folder: Path) -> bool:
    """Whether the folder is, or was, a stack: one without its plan must not pass unseen."""
    return (folder / PLAN_FILE).is_file() or (folder / CHECKSUMS).is_file()


def _read_stack(folder: Path) -> Stack:
    tree = FileTree(tuple(_files(folder)))
    texts = {f.path: f.text for f in tree if f.path in (PLAN_FILE, EVIDENCE_FILE)}
    text = texts.get(PLAN_FILE)
    if text is None:
        raise Rejected([unreadable(folder / PLAN_FILE, "no such file or directory")])
    return _stack(folder.as_posix(), text, tree, texts.get(EVIDENCE_FILE))


def _stack(place: str, text: str, files: FileTree, evidence: str | None) -> Stack:
    document = f"{place}/{PLAN_FILE}" if files.files else place
    plan = serialize.load(text, document, evidence)
    return Stack(place=place, plan=plan, plan_text=text, files=files)


def _files(folder: Path) -> Iterator[File]:
    for where, folders, names in os.walk(folder, onerror=_raise):
        here = Path(where)
        links = [n for n in folders if (here / n).is_symlink()]
        skipped = is_users_entry if here == folder else "__pycache__".__eq__
        folders[:] = [n for n in folders if n not in links and not skipped(n)]
        for name in (*names, *links):
            path = (here / name).relative_to(folder).as_posix()
            yield File(path, _content(here / name), seed=is_users(path))


def _raise(problem: OSError) -> None:
    raise problem


def _content(path: Path) -> str:
    """What a version control system would store: of a link its target, of a file its bytes."""
    mode = path.lstat().st_mode
    if stat.S_ISLNK(mode):
        return str(path.readlink())
    return _decode(path.read_bytes()) if stat.S_ISREG(mode) else ""


def _decode(content: bytes) -> str:
    """Text from which `File` consumers get the same bytes back (surrogates stand for stray
    ones)."""
    return content.decode("utf-8", "surrogateescape")


def read_builtin() -> str:
    """The text of the pack that comes with gpuplan."""
    return (policy_root() / "builtin.yaml").read_text(encoding="utf-8")


def read_document(path: Path, sources: Sources | None = None) -> SourceDocument:
    """The one YAML document that a person wrote at `path`, with spans; it is added to `sources`.
    Raises `Rejected`."""
    from gpuplan.manifest.load import read_text
    from gpuplan.manifest.text import read_yaml

    name = path.as_posix()
    text = read_text(path)
    if isinstance(text, Diagnostic):
        raise Rejected([text])
    documents = list(read_yaml(name, text))
    for document, _ in documents:
        if sources is not None:
            sources.add(document)
    problems = [p for _, wrong in documents for p in wrong]
    if len(documents) > 1:
        problems.append(several_documents(path))
    if problems:
        raise Rejected(problems)
    return documents[0][0] if documents else SourceDocument(name, text)
