"""One jinja environment a syntax. What a template prints is quoted for that syntax, always.

Templates are dumb: they loop, test a boolean and print. A value that is already text of the syntax
(made by a printer, never by joining strings from outside) is passed as `Verbatim`.
"""

from __future__ import annotations

import contextlib
import hashlib
import marshal
import os
import shlex
import stat
import sys
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any, Literal

import jinja2
from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined, Undefined
from jinja2.bccache import Bucket

from gpuplan.render import markdown, python, xml, yaml
from gpuplan.resources import template_root

Syntax = Literal["python", "xml", "conf", "shell", "yaml", "markdown", "text"]


class Verbatim(str):
    """Text of the target syntax, printed as it is."""

    __slots__ = ()


def _conf(value: Any) -> str:
    """A value of an ini or `key=value` file: one line without comment signs, else a ValueError,
    because these files have no common quoting."""
    text = _plain(value)
    if not text.isprintable() or text != text.strip() or any(c in text for c in "#;\"'\\"):
        raise ValueError(f"a configuration file cannot hold {text!r}")
    return text


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise TypeError(f"a template cannot print {type(value).__name__}")
    return str(value)


QUOTES: dict[Syntax, Callable[[Any], str]] = {
    "python": python.literal,
    "xml": lambda value: xml.quote(_plain(value)),
    "conf": _conf,
    "shell": lambda value: shlex.quote(_plain(value)),
    "yaml": lambda value: yaml.scalar(value, flow=True),
    "markdown": lambda value: markdown.escape(_plain(value)),
    "text": _plain,
}


def _finalize(quote: Callable[[Any], str]) -> Callable[[Any], str]:
    def finalize(value: Any) -> str:
        if isinstance(value, Undefined):
            return str(value)  # StrictUndefined raises here; quoting it first would hide it
        return value if isinstance(value, Verbatim) else quote(value)

    return finalize


class _SoftCache(BytecodeCache):
    """Compiled templates in the user's cache folder. A folder out of reach costs only time. What is
    loaded is run, so it is the user's own, which nobody else may write, and whole: each file starts
    with the digest of what follows it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def load_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            path = self.folder / bucket.key
            if _own(self.folder.stat()) and _own(path.lstat()):
                digest, _, code = path.read_bytes().partition(b"\n")
                if digest == _digest(bucket, code):
                    bucket.code = marshal.loads(code)  # noqa: S302 - our own, and whole

    def dump_bytecode(self, bucket: Bucket) -> None:
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if not _own(self.folder.stat()):
                return
            code = marshal.dumps(bucket.code)
            handle, name = tempfile.mkstemp(dir=self.folder)
            with os.fdopen(handle, "wb") as file:
                file.write(_digest(bucket, code) + b"\n" + code)
            Path(name).replace(self.folder / bucket.key)


def _own(entry: os.stat_result) -> bool:
    """Whether a file or folder is the user's, and no link, and nobody else may write it."""
    user = getattr(os, "getuid", lambda: entry.st_uid)()
    closed = sys.platform == "win32" or not entry.st_mode & 0o022
    return entry.st_uid == user and closed and not stat.S_ISLNK(entry.st_mode)


def _digest(bucket: Bucket, code: bytes) -> bytes:
    """Of the code, the template it was made of, and the Python that reads it."""
    made_of = f"{sys.implementation.cache_tag} {bucket.checksum} ".encode()
    return hashlib.sha256(made_of + code).hexdigest().encode()


def _bytecode_cache(syntax: Syntax) -> BytecodeCache | None:
    """Constants are quoted at compile time, so each syntax and each jinja has a folder."""
    base = Path(os.environ.get("XDG_CACHE_HOME", ""))
    try:
        root = base if base.is_absolute() else Path.home() / ".cache"
    except RuntimeError:  # a user without a home folder
        return None
    return _SoftCache(root / "gpuplan" / "templates" / f"{jinja2.__version__}-{syntax}")


@cache
def environment(syntax: Syntax) -> Environment:
    """The environment of one syntax, over all templates."""
    return Environment(  # noqa: S701 - `finalize` quotes for the syntax, HTML or not
        loader=FileSystemLoader(template_root()),
        undefined=StrictUndefined,
        finalize=_finalize(QUOTES[syntax]),
        bytecode_cache=_bytecode_cache(syntax),
        auto_reload=False,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )


def render(syntax: Syntax, template: str, **values: object) -> str:
    """The text of `template` (a path below the template root) with `values`."""
    return environment(syntax).get_template(template).render(values)
