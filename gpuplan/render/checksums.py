"""`checksums.txt`: the closed world of a stack, in the format of `sha256sum`.

Every generated file stands in it, so that an extra file and a changed file are both found. What
belongs to the user is exempt: see `is_users`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Mapping

from gpuplan.render.tree import FileTree

CHECKSUMS = "checksums.txt"
_USER_FOLDERS = frozenset(("venv", "env", "__pycache__", "node_modules"))
_PROGRAM = re.compile(r"^(cloud/[a-z]+|operators)/")  # of a stack with several
_USER_FILE = re.compile(r"((cloud/[a-z]+|operators)/)?Pulumi\.[^/]+\.yaml|custom\.py")
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


def sha256(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


def is_users_entry(name: str) -> bool:
    """Whether what lies at `name` at the top of a stack is the user's, and all below it: a virtual
    environment, a cache, anything hidden (`.git`, `.env`, `.pulumi`)."""
    return name in _USER_FOLDERS or name.startswith(".")


def is_users(path: str) -> bool:
    """Whether `path` (relative, with `/`) is the user's by its name: the configuration of a Pulumi
    environment, own additions, a cache, or below an entry that is the user's."""
    parts = _PROGRAM.sub("", path, count=1).split("/")
    return (
        is_users_entry(parts[0]) or "__pycache__" in parts[:-1] or bool(_USER_FILE.fullmatch(path))
    )


def checksums(tree: FileTree) -> str:
    """The text of `checksums.txt` for the generated files of `tree`, in path order."""
    files = (f for f in tree if not f.seed and f.path != CHECKSUMS)
    return "".join(f"{sha256(f.text.encode())}  {f.path}\n" for f in files)


def parse(text: str) -> dict[str, str]:
    """Path → digest. A line of another form, or of a path that leads out of the stack, names
    nothing, so its file counts as extra."""
    return {m[2]: m[1] for m in _entries(text) if m}


def strange_lines(text: str) -> list[int]:
    """Numbers, from 1, of the lines that name no file of a stack, or one that stands before."""
    seen: set[str] = set()
    strange = []
    for number, entry in enumerate(_entries(text), 1):
        if entry is None or entry[2] in seen:
            strange.append(number)
        else:
            seen.add(entry[2])
    return strange


def _entries(text: str) -> Iterator[re.Match[str] | None]:
    """Of each line its digest and its path; None where it names no file of a stack."""
    for line in text.splitlines():
        entry = _LINE.fullmatch(line)
        yield entry if entry and _inside(entry[2]) else None


def _inside(path: str) -> bool:
    """Whether a path is one below the stack's folder, on every system."""
    leads_out = any(part in ("", ".", "..") for part in path.split("/"))
    return not leads_out and "\\" not in path and "\0" not in path and path[1:2] != ":"


def compare(text: str, files: Mapping[str, str]) -> tuple[list[str], list[str], list[str]]:
    """(changed, missing, extra) paths of `files` (path → digest) against a `checksums.txt`."""
    expected = parse(text)
    changed = [p for p, digest in expected.items() if files.get(p, digest) != digest]
    missing = [p for p in expected if p not in files]
    extra = [p for p in files if p not in expected and p != CHECKSUMS and not is_users(p)]
    return sorted(changed), sorted(missing), sorted(extra)
