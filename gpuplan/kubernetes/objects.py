"""Kubernetes objects as data: a tree for the API server, and what surrounds it in a program."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Literal

from gpuplan.frozen import frozen
from gpuplan.plan.model import record
from gpuplan.render.commented import Route, strip

Group = Literal["cluster", "pools", "network", "addons", "workload"]


@frozen
class SecretValue:
    """A leaf whose value is a secret of the stack's configuration: never a literal."""

    key: str


@frozen
class BooleanSetting:
    """A leaf that is true or false as the stack's configuration says; true at first."""

    key: str


@frozen
class FileText:
    """A leaf whose value is the text of a file of the stack."""

    path: str
    text: str


@record
class KubernetesObject:
    """`key` is the stable logical name; with `kind` it is the object's identity in the stack.

    `tree` is plain data, except for `SecretValue`, `BooleanSetting` and `FileText` leaves.
    `comments` explain values by path. `patch` says that the object belongs to someone else and only
    these fields are ours.
    `depends_on` and `former` hold identities (`Kind/key`). `skip_await`: whoever applies the object
    must not wait for it to become ready. `timeout_seconds` bounds that wait where it is known, and
    `update_seconds` the wait for an update where that is another.
    `only_if` names the boolean setting of the stack that the object depends on.
    """

    key: str
    api_version: str
    kind: str
    group: Group
    tree: Mapping[str, Any]
    comments: tuple[tuple[Route, str], ...] = ()
    patch: bool = False
    protect: bool = False
    depends_on: tuple[str, ...] = ()
    former: tuple[str, ...] = ()
    retain_on_delete: bool = False
    skip_await: bool = False
    timeout_seconds: int | None = None
    update_seconds: int | None = None
    only_if: str | None = None

    @property
    def identity(self) -> str:
        return f"{self.kind}/{self.key}"

    @property
    def name(self) -> str:
        return str(self.tree["metadata"]["name"])

    @property
    def namespace(self) -> str | None:
        namespace: str | None = self.tree["metadata"].get("namespace")
        return namespace

    def files(self) -> Iterator[FileText]:
        """The files of the stack that the tree takes text from."""
        return (leaf for leaf in _leaves(self.tree) if isinstance(leaf, FileText))

    def settings(self) -> Iterator[SecretValue | BooleanSetting]:
        """What the tree takes from the stack's configuration."""
        return (
            leaf for leaf in _leaves(self.tree) if isinstance(leaf, SecretValue | BooleanSetting)
        )


def build(
    key: str, api_version: str, kind: str, group: Group, body: Mapping[str, Any], **options: Any
) -> KubernetesObject:
    """An object from a tree with `Because` leaves; entries that are None are left out."""
    tree, comments = strip({"apiVersion": api_version, "kind": kind, **body})
    return KubernetesObject(
        key=key,
        api_version=api_version,
        kind=kind,
        group=group,
        tree=tree,
        comments=tuple(comments),
        **options,
    )


def resolve(tree: Any, secrets: Mapping[str, str]) -> Any:
    """A tree as the API server gets it at first: secrets and files put in."""
    if isinstance(tree, SecretValue):
        return secrets[tree.key]
    if isinstance(tree, BooleanSetting):
        return True
    if isinstance(tree, FileText):
        return tree.text
    if isinstance(tree, Mapping):
        return {k: resolve(v, secrets) for k, v in tree.items()}
    if isinstance(tree, Sequence) and not isinstance(tree, str):
        return [resolve(v, secrets) for v in tree]
    return tree


def _leaves(node: Any) -> Iterator[Any]:
    if isinstance(node, str | int | float):  # most of a tree, and quicker than a protocol
        yield node
    elif isinstance(node, Mapping):
        for value in node.values():
            yield from _leaves(value)
    elif isinstance(node, Sequence):
        for value in node:
            yield from _leaves(value)
    else:
        yield node
