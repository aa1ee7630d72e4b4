"""The only module that writes stacks, and it writes them whole.

A stack is built in a hidden sibling folder and exchanged with the old one in one system call, so a
reader, or a run that is killed, sees the old stack or the new one and never a mixture. Files that
gpuplan does not own (the user's configuration, a virtual environment) move along untouched. Files
that it owns but somebody edited stop the write: nothing is lost without `force`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from gpuplan.diagnostics import Diagnostic, error
from gpuplan.render.checksums import CHECKSUMS, is_users_entry, parse, sha256
from gpuplan.render.tree import File, FileTree


def edited_by_hand(stack: str, paths: list[str]) -> Diagnostic:
    shown = ", ".join(paths[:5]) + (f" and {len(paths) - 5} more" if len(paths) > 5 else "")
    return error(
        "GP013",
        f"{stack} was edited by hand: {shown}",
        help="move the change into the manifest, or overwrite it with --force",
    )


def not_a_stack(stack: str) -> Diagnostic:
    return error(
        "GP013",
        f"{stack} exists and is not a stack: it has no {CHECKSUMS} that can be read",
        help="choose another output folder, or remove this one",
    )


def not_writable(path: Path, problem: OSError) -> Diagnostic:
    reason = (problem.strerror or str(problem)).lower()
    return error("GP009", f"cannot write {path}: {reason}", help="check the folder and its rights")


def conflicts(target: Path, tree: FileTree) -> tuple[Diagnostic, ...]:
    """What of the user's a write of `tree` to `target` would overwrite; changes nothing."""
    try:
        return _conflicts(target, tree)
    except OSError as problem:
        return (not_writable(target, problem),)


def write_stack(target: Path, tree: FileTree, *, force: bool = False) -> tuple[Diagnostic, ...]:
    """Make `target` hold exactly the files of `tree` and whatever the user added. Where `target` is
    a link it stays one, and the folder it leads to is written.

    Returns what prevented it; then nothing was changed.
    """
    if target.is_symlink():
        target = Path(os.path.realpath(target))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with _locked(target.parent):
            _recover(target)
            problems = () if force else _conflicts(target, tree)
            if not problems and not is_current(target, tree):
                _build(_staging(target), target, tree)
                _exchange(target)
                _recover(target)
            return problems
    except OSError as problem:
        return (not_writable(target, problem),)


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer at a time in `folder`, where the platform has advisory locks."""
    try:
        import fcntl
    except ModuleNotFoundError:
        yield
        return
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _owned(target: Path) -> dict[str, str] | None:
    """Path → digest of the files gpuplan wrote here, or None when this is no stack."""
    record = target / CHECKSUMS
    return parse(record.read_text(encoding="utf-8", errors="replace")) if record.is_file() else None


def _conflicts(target: Path, tree: FileTree) -> tuple[Diagnostic, ...]:
    if not target.exists() or not any(target.iterdir()):
        return ()
    owned = _owned(target)
    if not owned:
        return (not_a_stack(target.name),)
    files = ((target / path, digest) for path, digest in owned.items())
    edited = [
        file.relative_to(target).as_posix()
        for file, digest in files
        if file.is_file() and sha256(file.read_bytes()) != digest
    ]
    edited += [
        file.path
        for file in tree
        if file.path not in owned and file.path != CHECKSUMS and not file.seed
        if (target / file.path).exists() and not _same(target / file.path, file)
    ]
    return (edited_by_hand(target.name, sorted(edited)),) if edited else ()


def differences(target: Path, tree: FileTree) -> list[str]:
    """Paths whose bytes in `target` are not those of `tree`; seeds have to be there, with a hint
    about each setting."""
    files = {f.path: f for f in tree}
    stale = [path for path, file in files.items() if not _same(target / path, file)]
    return sorted({*stale, *(set(_owned(target) or ()) - set(files))})


def _same(path: Path, file: File) -> bool:
    return path.is_file() and path.read_bytes() == _content(path, file)


def _content(existing: Path, file: File) -> bytes:
    """What is to stand in the file: of a seed that is there, the user's bytes, with hints about
    settings that are new."""
    if not (file.seed and existing.is_file()):
        return file.text.encode()
    from gpuplan.render.seeds import refreshed

    own = existing.read_bytes()
    try:
        return refreshed(own.decode("utf-8"), file.text).encode()
    except UnicodeDecodeError:
        return own  # no text of ours, and nobody's to change


def is_current(target: Path, tree: FileTree) -> bool:
    """Whether writing `tree` would change nothing."""
    return target.is_dir() and not differences(target, tree)


def _build(staging: Path, target: Path, tree: FileTree) -> None:
    """The new stack in `staging`, with the user's own files linked in."""
    staging.mkdir()
    staging.chmod(0o755)
    for file in tree:
        path = staging / file.path
        existing = target / file.path
        _make_folders(staging, path.parent)
        path.write_bytes(_content(existing, file))
        path.chmod(0o755 if file.executable else 0o644)
    for name in _user_files(target, tree):
        own, copy = target / name, staging / name
        _make_folders(staging, copy.parent)
        if own.is_symlink():
            copy.symlink_to(own.readlink())
        elif own.is_dir():
            _make_folders(staging, copy)
        else:
            _link(own, copy)


def _link(own: Path, copy: Path) -> None:
    try:
        os.link(own, copy)
    except OSError:
        shutil.copy2(own, copy)


def _make_folders(root: Path, folder: Path) -> None:
    for part in reversed([folder, *folder.parents]):
        if part.is_relative_to(root) and not part.exists():
            part.mkdir()
            part.chmod(0o755)


def _user_files(target: Path, tree: FileTree) -> Iterator[str]:
    """Files, links and empty folders of the old stack that gpuplan never wrote; folders that are
    the user's by name move whole, afterwards."""
    if not target.exists():
        return
    owned = {*(_owned(target) or {}), CHECKSUMS, *(f.path for f in tree)}
    for where, names, files in os.walk(target):
        folder = Path(where)
        if folder == target:
            names[:] = [n for n in names if not is_users_entry(n)]
        own = [*files, *(n for n in names if (folder / n).is_symlink())]
        if not files and not names and folder != target:
            yield folder.relative_to(target).as_posix()
        paths = ((folder / f).relative_to(target).as_posix() for f in own)
        yield from sorted(p for p in paths if p not in owned)


def _recover(target: Path) -> None:
    """Finish what a killed run left: a complete stack takes its place, the user's folders move to
    it, the rest is dropped."""
    for left in (_staging(target), _previous(target)):
        if left.is_symlink() or left.is_file():
            left.unlink()  # none of ours: what it leads to is left alone
        if not left.exists():
            continue
        if not target.exists() and _complete(left):
            left.rename(target)
            continue
        for entry in sorted(left.iterdir()):
            if (
                is_users_entry(entry.name)
                and entry.is_dir()
                and target.is_dir()
                and not (target / entry.name).exists()
            ):
                entry.rename(target / entry.name)
        shutil.rmtree(left)


def _complete(folder: Path) -> bool:
    owned = _owned(folder)
    files = ((folder / path, digest) for path, digest in (owned or {}).items())
    return bool(owned) and all(f.is_file() and sha256(f.read_bytes()) == d for f, d in files)


def _staging(target: Path) -> Path:
    return target.with_name(f".{target.name}.staging")


def _previous(target: Path) -> Path:
    return target.with_name(f".{target.name}.previous")


def _exchange(target: Path) -> None:
    """Put the new stack at `target`, in one step where the platform can, and the old one beside."""
    staging, previous = _staging(target), _previous(target)
    if target.exists() and not _swap(staging, target):
        target.rename(previous)
    if not target.exists():
        staging.rename(target)


def _swap(first: Path, second: Path) -> bool:
    """Exchange two paths atomically (Linux, macOS); False where that cannot be done."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True) if sys.platform != "win32" else None
    one, two = os.fsencode(first), os.fsencode(second)
    if sys.platform == "linux" and hasattr(libc, "renameat2"):
        here, exchange = -100, 2
        return bool(libc.renameat2(here, one, here, two, exchange) == 0)  # type: ignore[union-attr]
    if sys.platform == "darwin" and hasattr(libc, "renamex_np"):
        return bool(libc.renamex_np(one, two, 2) == 0)  # type: ignore[union-attr]
    return False
