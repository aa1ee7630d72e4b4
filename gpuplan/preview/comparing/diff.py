"""Property differences between two trees of inputs, as a JSON merge patch would have them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from gpuplan.frozen import record
from gpuplan.preview.values import Route, parse_route

MISSING = object()


@record
class Change:
    """One property, at the highest node that differs. `old` or `new` is None where there is none.
    `replaces`: the provider cannot change it in place."""

    route: Route
    kind: Literal["add", "delete", "update"]
    old: Any = None
    new: Any = None
    replaces: bool = False


def changes(old: Any, new: Any, route: Route = ()) -> Iterator[Change]:
    """What turns `old` into `new`; lists are compared element by element."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        for key in sorted({*old, *new}):
            yield from _member(old.get(key, MISSING), new.get(key, MISSING), (*route, key))
    elif isinstance(old, list) and isinstance(new, list):
        for number in range(max(len(old), len(new))):
            before = old[number] if number < len(old) else MISSING
            after = new[number] if number < len(new) else MISSING
            yield from _member(before, after, (*route, number))
    elif not _same(old, new):
        yield Change(route=route, kind="update", old=old, new=new)


def _member(old: Any, new: Any, route: Route) -> Iterator[Change]:
    if old is MISSING or old is None:
        if new is not MISSING and new is not None:
            yield Change(route=route, kind="add", new=new)
    elif new is MISSING or new is None:
        yield Change(route=route, kind="delete", old=old)
    else:
        yield from changes(old, new, route)


def _same(old: Any, new: Any) -> bool:
    return isinstance(old, bool) == isinstance(new, bool) and bool(old == new)


def contains(pattern: Route, route: Route) -> bool:
    """Whether `pattern` names `route` or a node above it; `*` matches any one step."""
    return len(pattern) <= len(route) and all(
        p in ("*", r) for p, r in zip(pattern, route, strict=False)
    )


def touches(pattern: Route, change: Change) -> bool:
    """Whether `change` alters the property `pattern`: at it, above it or below it.

    A deletion above it does not count, as the Kubernetes provider's own matching has it (json path
    into the merge patch: provider/pkg/openapi/match.go, v4.32.0).
    """
    if contains(pattern, change.route):
        return True
    head, rest = pattern[: len(change.route)], pattern[len(change.route) :]
    return contains(head, change.route) and _holds(change.new, rest)


def _holds(value: Any, route: Route) -> bool:
    if not route:
        return True
    if route[0] == "*":
        return isinstance(value, list) and any(_holds(v, route[1:]) for v in value)
    return isinstance(value, Mapping) and route[0] in value and _holds(value[route[0]], route[1:])


def without_ignored(differing: Iterable[Change], ignored: tuple[str, ...]) -> tuple[Change, ...]:
    """`found` less what `ignoreChanges` names; a path that cannot be read ignores nothing."""
    patterns = tuple(_patterns(ignored))
    return tuple(c for c in differing if not any(contains(p, c.route) for p in patterns))


def _patterns(texts: tuple[str, ...]) -> Iterator[Route]:
    for text in texts:
        try:
            yield parse_route(text)
        except ValueError:
            continue
