"""YAML for people's eyes: block style, comments above what they explain, texts as blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from gpuplan.frozen import frozen
from gpuplan.render import python, yaml

Tree = dict[str, Any]
Route = tuple[str | int, ...]
Comments = Mapping[Route, str]


@frozen
class Because:
    """A value with the reason for it, while a tree is built."""

    value: Any
    reason: str


class Inline(tuple[Any, ...]):
    """A list of scalars that stands on one line."""

    __slots__ = ()


def strip(tree: Mapping[str, Any]) -> tuple[Tree, list[tuple[Route, str]]]:
    """`tree` without `Because` and without entries that are None, and the reasons by path."""
    comments: list[tuple[Route, str]] = []
    plain: Tree = _strip(tree, (), comments)
    return plain, comments


def _strip(node: Any, path: Route, comments: list[tuple[Route, str]]) -> Any:
    if isinstance(node, Because):
        comments.append((path, node.reason))
        return _strip(node.value, path, comments)
    if isinstance(node, Mapping):
        present = ((k, v) for k, v in node.items() if v is not None)
        return {k: _strip(v, (*path, k), comments) for k, v in present}
    if isinstance(node, Sequence) and not isinstance(node, str):
        return [_strip(v, (*path, i), comments) for i, v in enumerate(node)]
    return node


def dumps(tree: Mapping[str, Any], comments: Comments, title: str = "") -> str:
    """The document; ends with a newline. An empty tree is `{}`."""
    head = [python.comment(title)] if title else []
    body = list(_mapping(tree, (), 0, comments)) if tree else ["{}"]
    return "\n".join([*head, *body]) + "\n"


def _mapping(
    tree: Mapping[str, Any], path: Route, indent: int, comments: Comments
) -> Iterator[str]:
    for name, value in tree.items():
        yield from _note((*path, name), indent, comments)
        yield from _entry(
            f"{' ' * indent}{yaml.key(name)}:", value, (*path, name), indent, comments
        )


def _sequence(items: Sequence[Any], path: Route, indent: int, comments: Comments) -> Iterator[str]:
    for number, value in enumerate(items):
        here = (*path, number)
        yield from _note(here, indent, comments)
        if isinstance(value, Mapping) and value:
            lines = list(_mapping(value, here, indent + 2, comments))
            first = next(i for i, line in enumerate(lines) if not line.lstrip().startswith("#"))
            yield from (line[2:] for line in lines[:first])
            yield f"{' ' * indent}- {lines[first].lstrip()}"
            yield from lines[first + 1 :]
        else:
            yield from _entry(f"{' ' * indent}-", value, here, indent, comments)


def _entry(head: str, value: Any, path: Route, indent: int, comments: Comments) -> Iterator[str]:
    if isinstance(value, Inline):
        yield f"{head} [{', '.join(yaml.scalar(v, flow=True) for v in value)}]"
    elif isinstance(value, Mapping) and value:
        yield head
        yield from _mapping(value, path, indent + 2, comments)
    elif isinstance(value, Sequence) and not isinstance(value, str) and value:
        yield head
        yield from _sequence(value, path, indent + 2, comments)
    elif isinstance(value, str) and _is_block(value):
        pad = " " * (indent + 2)
        yield f"{head} |" if value.endswith("\n") else f"{head} |-"
        yield from (f"{pad}{line}".rstrip() for line in value.removesuffix("\n").split("\n"))
    else:
        yield f"{head} {_short(value)}"


def _is_block(text: str) -> bool:
    """Whether a literal block holds `text` exactly."""
    lines = text.removesuffix("\n").split("\n")
    clean = all(line.isprintable() and line == line.rstrip() for line in lines)
    return len(lines) > 1 and clean and lines[0][:1].strip() != "" and lines[-1] != ""


def _short(value: Any) -> str:
    if isinstance(value, Mapping):
        return "{}"
    return (
        "[]" if isinstance(value, Sequence) and not isinstance(value, str) else yaml.scalar(value)
    )


def _note(path: Route, indent: int, comments: Comments) -> Iterator[str]:
    if path in comments:
        yield python.comment(comments[path], indent)
