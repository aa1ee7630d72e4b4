"""Property values of a preview: plain JSON-like data, and markers for what is not plain.

A secret's plain value ends here: a `Secret` keeps the shape of what it hides and a digest to
compare by. The wire form is the Pulumi engine's (sdk/go/common/resource/plugin/rpc.go).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

MASK = "[secret]"
UNKNOWN_WIRE = "04da6b54-80e4-46f7-96ec-b56ff0331ba9"
SIGNATURE = "4dabf18193072939515e22adb298388d"
SECRET_SIGNATURE = "1b47061264138c4ac30d75fd1eb44270"  # noqa: S105 - a marker, no password
ASSET_SIGNATURE = "c44067f5952c0a294b673a41bacd8c17"
ARCHIVE_SIGNATURE = "0def7320c3a5731c473e5ecbe6d01bc7"
RESOURCE_SIGNATURE = "5cf8f73096256a8f31e491e813e4eb8e"

Key = str | int
Route = tuple[Key, ...]


@dataclass(frozen=True, slots=True)
class Unknown:
    """A value that only the provider will know."""

    def __str__(self) -> str:
        return "[unknown]"


UNKNOWN = Unknown()


@dataclass(frozen=True, slots=True)
class Secret:
    """A hidden value: `shape` has its keys, with every leaf masked."""

    shape: Any
    digest: str = field(repr=False)

    def __str__(self) -> str:
        return MASK


@dataclass(frozen=True, slots=True)
class Asset:
    """A file, text or remote file. `path` is relative to the program's folder where it lies inside;
    `sha256` is of the content, empty for a remote one."""

    kind: Literal["file", "text", "remote"]
    path: str
    sha256: str

    def __str__(self) -> str:
        return f"{self.kind} asset {self.path}".rstrip()


@dataclass(frozen=True, slots=True)
class Archive:
    """Files given as one value: a folder or packed file, a remote one, or named entries."""

    kind: Literal["file", "entries", "remote"]
    path: str
    sha256: str
    entries: tuple[tuple[str, Any], ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} archive {self.path}".rstrip()


@dataclass(frozen=True, slots=True)
class Reference:
    """A whole resource used as a value."""

    urn: str


def decode(value: Any, folder: Path) -> Any:
    """The wire form of a value as plain data with markers. Asset paths are relative to `folder`."""
    if value == UNKNOWN_WIRE:
        return UNKNOWN
    if isinstance(value, list):
        return [decode(v, folder) for v in value]
    if not isinstance(value, dict):
        return value
    signature = value.get(SIGNATURE)
    if signature in _DECODERS:
        return _DECODERS[signature](value, folder)
    return {k: decode(v, folder) for k, v in sorted(value.items())}


def _secret(value: dict[str, Any], folder: Path) -> Secret:
    inner = decode(value.get("value"), folder)
    text = json.dumps(value.get("value"), sort_keys=True)
    return Secret(transform(inner, _mask_leaf), hashlib.sha256(text.encode()).hexdigest())


def _mask_leaf(leaf: Any) -> Any:
    return leaf if isinstance(leaf, Unknown) or leaf is None else MASK


def _asset(value: dict[str, Any], folder: Path) -> Asset:
    if "text" in value:
        return Asset("text", "", _sha256(str(value["text"]).encode()))
    if "path" in value:
        path = Path(str(value["path"]))
        return Asset("file", _relative(path, folder), _file_digest(folder / path))
    return Asset("remote", str(value.get("uri", "")), "")


def _archive(value: dict[str, Any], folder: Path) -> Archive:
    if "assets" in value:
        entries = tuple((k, decode(v, folder)) for k, v in sorted(value["assets"].items()))
        return Archive("entries", "", "", entries)
    if "path" in value:
        path = Path(str(value["path"]))
        return Archive("file", _relative(path, folder), _file_digest(folder / path))
    return Archive("remote", str(value.get("uri", "")), "")


def _reference(value: dict[str, Any], _folder: Path) -> Reference:
    return Reference(str(value.get("urn", "")))


_DECODERS: dict[object, Callable[[dict[str, Any], Path], Any]] = {
    SECRET_SIGNATURE: _secret,
    ASSET_SIGNATURE: _asset,
    ARCHIVE_SIGNATURE: _archive,
    RESOURCE_SIGNATURE: _reference,
}


def _relative(path: Path, folder: Path) -> str:
    inside = (folder / path).resolve()
    root = folder.resolve()
    return inside.relative_to(root).as_posix() if inside.is_relative_to(root) else path.as_posix()


def _file_digest(path: Path) -> str:
    """SHA-256 of a file, or of a folder's file names and contents in order; empty when absent."""
    if path.is_dir():
        files = sorted(p for p in path.rglob("*") if p.is_file())
        lines = [f"{p.relative_to(path).as_posix()} {_file_digest(p)}\n" for p in files]
        return _sha256("".join(lines).encode())
    return _sha256(path.read_bytes()) if path.is_file() else ""


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def transform(value: Any, leaf: Callable[[Any], Any]) -> Any:
    """`value` with `leaf` applied to everything that is neither a mapping nor a list."""
    if isinstance(value, Mapping):
        return {k: transform(v, leaf) for k, v in value.items()}
    if isinstance(value, list):
        return [transform(v, leaf) for v in value]
    return leaf(value)


def leaves(value: Any, route: Route = ()) -> Iterator[tuple[Route, Any]]:
    """Every leaf with the way to it; an empty mapping or list is a leaf."""
    if isinstance(value, Mapping) and value:
        for key, child in value.items():
            yield from leaves(child, (*route, key))
    elif isinstance(value, list) and value:
        for number, child in enumerate(value):
            yield from leaves(child, (*route, number))
    else:
        yield route, value


def has_unknown(value: Any) -> bool:
    return any(
        isinstance(leaf, Unknown) or (isinstance(leaf, Secret) and has_unknown(leaf.shape))
        for _, leaf in leaves(value)
    )


def displayed(value: Any) -> Any:
    """`value` as JSON data for people and programs: secrets masked, markers as text."""
    return transform(value, _display_leaf)


def _display_leaf(leaf: Any) -> Any:
    if isinstance(leaf, Archive):
        entries = {name: displayed(entry) for name, entry in leaf.entries}
        return {"archive": leaf.kind, "path": leaf.path, "sha256": leaf.sha256, "entries": entries}
    if isinstance(leaf, Asset):
        return {"asset": leaf.kind, "path": leaf.path, "sha256": leaf.sha256}
    if isinstance(leaf, Reference):
        return {"resource": leaf.urn}
    return str(leaf) if isinstance(leaf, Unknown | Secret) else leaf


def route_text(route: Route) -> str:
    """`("spec", "containers", 0, "a.b")` → `spec.containers[0]["a.b"]`, as Pulumi writes paths."""
    text = ""
    for part in route:
        if isinstance(part, int):
            text += f"[{part}]"
        elif part and not set(part) & set('."[]'):
            text += f".{part}" if text else part
        else:
            escaped = part.replace('"', '\\"')
            text += f'["{escaped}"]'
    return text


def parse_route(text: str) -> Route:
    """The inverse of `route_text`; `*` in brackets stands for any element. Raises ValueError."""
    route: list[Key] = []
    at = 0
    while at < len(text):
        if text.startswith('["', at):
            end = text.find('"]', at + 2)
            while end > 0 and text[end - 1] == "\\":
                end = text.find('"]', end + 1)
            if end < 0:
                raise ValueError(f"not a property path: {text}")
            route.append(text[at + 2 : end].replace('\\"', '"'))
            at = end + 2
        elif text[at] == "[":
            end = text.index("]", at)
            inner = text[at + 1 : end]
            route.append(inner if inner == "*" else int(inner))
            at = end + 1
        else:
            at += text[at] == "."
            end = min(
                (i for i in (text.find(".", at), text.find("[", at)) if i >= 0), default=len(text)
            )
            route.append(text[at:end])
            at = end
    return tuple(route)
