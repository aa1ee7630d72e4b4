"""Files, folders, archives and standard input → texts, each with the host that its place names.

A folder or an archive has a subfolder for each host, or its files are of one host. Files given one
by one are of one host. Archives are read in memory and never unpacked: no link is followed, and
what is larger than any collection is refused.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import BinaryIO

from gpuplan.diagnostics import Diagnostic, error, warning
from gpuplan.frozen import record
from gpuplan.inventory.archives import ARCHIVES, Refused, members
from gpuplan.inventory.pasted import plain
from gpuplan.source import SourceDocument

LARGEST_FILE = 64 * 2**20  # `kubectl get nodes -o json` of a thousand nodes takes half of it
MOST_FILES = 20_000
MOST_LINES = 400_000  # of a text that is read line by line; `lspci -vvv` of a host has 10,000
MOST_LINES_IN_ALL = 5_000_000
STDIN = "standard input"
TOO_LARGE = f"it is larger than {LARGEST_FILE >> 20} MiB"
_COLLECTED = re.compile(r"^gpuplan-|(\.tar|\.tgz|\.tar\.gz|\.zip)$")


@record
class Text:
    """A text; `place` is the name of the folder or archive that its host may be called after."""

    place: str
    document: SourceDocument


@dataclass(slots=True)
class _Container:
    """Contents below one given path, by their path in it."""

    path: Path
    contents: list[tuple[PurePosixPath, bytes]] = field(default_factory=list)
    problems: list[Diagnostic] = field(default_factory=list)


def cannot_read(name: str, reason: str, remedy: str = "check the path") -> Diagnostic:
    return error("GP009", f"cannot read {name}: {reason}", help=remedy)


def left_out(name: str, reason: str) -> Diagnostic:
    return warning("GP069", f"{name} is left out: {reason}", help="give the file itself")


def texts(paths: Sequence[Path], stdin: BinaryIO) -> tuple[tuple[Text, ...], list[Diagnostic]]:
    """All texts of `paths`, in an order that does not depend on theirs. `-` is `stdin`."""
    given: set[tuple[str, str, str, str]] = set()
    problems: list[Diagnostic] = []
    lines = 0
    for place, name, shown, content in (f for p in paths for f in _of(p, stdin, problems)):
        text = _decoded(content)
        count = text.count("\n") if text else 0
        if text is None:
            problems.append(left_out(shown, "it is not text"))
        elif count > MOST_LINES and text.lstrip()[:1] not in ("<", "{", "["):
            problems.append(left_out(shown, f"it has more than {MOST_LINES:,} lines"))
        elif lines + count > MOST_LINES_IN_ALL:
            reason = f"the texts before it and it have more than {MOST_LINES_IN_ALL:,} lines"
            problems.append(cannot_read(shown, reason, "import the hosts in several parts"))
            break
        else:
            lines += count
            given.add((name, text, place, shown))
    return tuple(_named(sorted(given))), problems


def _of(
    path: Path, stdin: BinaryIO, problems: list[Diagnostic]
) -> Iterator[tuple[str, str, str, bytes]]:
    """Place, name, path to show and content of each file."""
    if str(path) == "-":
        said = stdin.read(LARGEST_FILE + 1)
        if len(said) > LARGEST_FILE:
            problems.append(left_out(STDIN, TOO_LARGE))
        else:
            yield "", STDIN, STDIN, said
        return
    if path.is_fifo() or (path.is_file() and not path.name.endswith(ARCHIVES)):
        content = _content(path, problems)
        if content is not None:
            yield "", path.name, str(path), content
        return
    for container in _containers(path, problems):
        yield from _grouped(container)
        problems += container.problems


def _containers(path: Path, problems: list[Diagnostic]) -> Iterator[_Container]:
    """The folder itself and the archives in it, or the one archive."""
    container = _Container(path)
    if path.is_dir():
        files = sorted(itertools.islice(_below(path, problems), MOST_FILES + 1))
        if len(files) > MOST_FILES:
            problems.append(cannot_read(str(path), f"it has more than {MOST_FILES:,} files"))
            return
        for file in files:
            inside = PurePosixPath(file.relative_to(path).as_posix())
            if file.is_symlink() or not file.is_file() or inside.name.startswith("."):
                continue
            if file.name.endswith(ARCHIVES):
                yield _archive(file)
            elif (content := _content(file, problems)) is not None:
                container.contents.append((inside, content))
        yield container
    elif path.is_file():
        yield _archive(path)
    else:
        problems.append(cannot_read(str(path), "no such file or folder"))


def _below(folder: Path, problems: list[Diagnostic]) -> Iterator[Path]:
    """Every file below a folder; a folder that cannot be read is a problem."""

    def unread(problem: OSError) -> None:
        reason = (problem.strerror or "unreadable").lower()
        problems.append(cannot_read(str(problem.filename), reason))

    for where, folders, names in os.walk(folder, onerror=unread):
        folders.sort()
        yield from (Path(where) / name for name in sorted(names))


def _archive(path: Path) -> _Container:
    container = _Container(path)
    try:
        for member in members(path, LARGEST_FILE, MOST_FILES):
            if isinstance(member, Refused):
                container.problems.append(left_out(f"{path}: {member.name}", member.reason))
            elif not member.path.name.startswith("."):
                container.contents.append((member.path, member.content))
    except OSError as problem:
        reason = (problem.strerror or "its packed data is damaged").lower()
        container.problems.append(cannot_read(str(path), reason, "collect it again"))
    except ValueError as problem:
        container.problems.append(cannot_read(str(path), str(problem), "collect it again"))
    return container


def _content(path: Path, problems: list[Diagnostic]) -> bytes | None:
    try:
        with path.open("rb") as file:
            content = file.read(LARGEST_FILE + 1)
    except OSError as problem:
        problems.append(cannot_read(str(path), (problem.strerror or "unreadable").lower()))
        return None
    if len(content) > LARGEST_FILE:
        problems.append(left_out(str(path), TOO_LARGE))
        return None
    return content


def _grouped(container: _Container) -> Iterator[tuple[str, str, str, bytes]]:
    """Each file with the first folder that has files or siblings; one around all is no host."""
    stem = _COLLECTED.sub("", _COLLECTED.sub("", container.path.resolve().name))
    skip = _around([p.parts for p, _ in container.contents])
    for path, content in container.contents:
        parts = path.parts[skip:]
        place = parts[0] if len(parts) > 1 else (path.parts[skip - 1] if skip else stem)
        inside = "/".join(parts[1:] if len(parts) > 1 else parts)
        yield place, f"{place}/{inside}", f"{container.path}/{path}", content


def _around(paths: Sequence[tuple[str, ...]]) -> int:
    """How many folders stand around all hosts: those that hold nothing but one folder."""
    depth = 0
    while paths and all(len(p) > depth + 2 for p in paths) and len({p[depth] for p in paths}) == 1:
        depth += 1
    return depth


def _decoded(content: bytes) -> str | None:
    """UTF-8, UTF-16 with a byte order mark (as PowerShell redirects), or None: no text. Bytes that
    are not UTF-8 become U+FFFD: names of PCI devices may hold them."""
    if content.startswith((b"\xff\xfe", b"\xfe\xff")):
        text = content.decode("utf-16", "replace")
    elif b"\0" in content[:8192]:
        return None
    else:
        text = content.decode("utf-8", "replace")
    return plain(text)


def _named(given: Iterable[tuple[str, str, str, str]]) -> Iterator[Text]:
    """Documents with names that differ; the same text under one name is there once."""
    seen: dict[str, set[str]] = {}
    for name, text, place, shown in given:
        before = seen.setdefault(name, set())
        if text in before:
            continue
        label = f"{name} ({len(before) + 1})" if before else name
        before.add(text)
        yield Text(place=place, document=SourceDocument(label, text, shown))
