"""Kubernetes objects as typed Python: one tree → calls of pulumi_kubernetes' argument classes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from gpuplan.kubernetes.objects import BooleanSetting, FileText, KubernetesObject, SecretValue
from gpuplan.render.commented import Route
from gpuplan.render.python import Call, Commented, Expression, literal

PACKAGE = "k8s"
# Kinds of a cluster's own, which the package has no classes for.
CUSTOM = ("ComputeDomain", "JobSet", "LeaderWorkerSet", "LocalQueue", "NicClusterPolicy")
CUSTOM_CLASS = "apiextensions.CustomResource"
METADATA = "meta.v1.ObjectMetaArgs"
Properties = dict[str, list[str]]


@cache
def _table() -> dict[str, dict[str, Properties]]:
    text = Path(__file__).with_name("types.json").read_text(encoding="utf-8")
    table: dict[str, dict[str, Properties]] = json.loads(text)
    return table


def class_name(item: KubernetesObject) -> str:
    """`core.v1.Namespace`; a patch of an object that is someone else's is `core.v1.NodePatch`."""
    if item.kind in CUSTOM:
        return CUSTOM_CLASS
    group, _, version = item.api_version.rpartition("/")
    module = group.partition(".")[0] or "core"
    return f"{module}.{version}.{item.kind}{'Patch' if item.patch else ''}"


def type_token(item: KubernetesObject) -> str:
    """The resource type in a URN: `kubernetes:core/v1:Namespace`. The API group keeps its whole
    name there."""
    kind = f"{item.kind}{'Patch' if item.patch else ''}"
    version = item.api_version if "/" in item.api_version else f"core/{item.api_version}"
    return f"kubernetes:{version}:{kind}"


def arguments(item: KubernetesObject) -> tuple[tuple[str, Expression], ...]:
    """Keyword arguments of the resource. The class itself knows `apiVersion` and `kind`, but where
    the kind is the cluster's own."""
    if item.kind in CUSTOM:
        return _custom(item)
    tree = {k: v for k, v in item.tree.items() if k not in ("apiVersion", "kind")}
    table = _table()["resources"][class_name(item)]
    return _keywords(tree, table, (), dict(item.comments))


def _custom(item: KubernetesObject) -> tuple[tuple[str, Expression], ...]:
    comments = dict(item.comments)
    return (
        ("api_version", item.api_version),
        ("kind", item.kind),
        ("metadata", value(item.tree["metadata"], METADATA, comments, ("metadata",))),
        ("spec", value(item.tree["spec"], "", comments, ("spec",))),
    )


def value(tree: Any, cls: str, comments: Mapping[Route, str], path: Route = ()) -> Expression:
    """`tree` as an argument of class `cls` (see `generate_types`)."""
    plain = _value(tree, cls, comments, path)
    return Commented(comments[path], plain) if path in comments else plain


def _keywords(
    tree: Mapping[str, Any], table: Properties, path: Route, comments: Mapping[Route, str]
) -> tuple[tuple[str, Expression], ...]:
    return tuple(
        (table[name][0], value(child, table[name][1], comments, (*path, name)))
        for name, child in tree.items()
    )


def _value(tree: Any, cls: str, comments: Mapping[Route, str], path: Route) -> Expression:
    if isinstance(tree, SecretValue):
        return Call("config.require_secret", (tree.key,))
    if isinstance(tree, BooleanSetting):
        return Call("config.require_bool", (tree.key,))
    if isinstance(tree, FileText):
        return file_text(tree.path)
    if isinstance(tree, Mapping):
        return _mapping(tree, cls, comments, path)
    if isinstance(tree, list):
        inner = cls.removeprefix("[]")
        return [value(child, inner, comments, (*path, i)) for i, child in enumerate(tree)]
    scalar: str | int | float | None = tree
    return scalar


def _mapping(
    tree: Mapping[str, Any], cls: str, comments: Mapping[Route, str], path: Route
) -> Expression:
    if cls:
        table = _table()["arguments"][cls]
        return Call(f"{PACKAGE}.{cls}", (), _keywords(tree, table, path, comments))
    return {k: value(v, "", comments, (*path, k)) for k, v in tree.items()}


def file_text(path: str) -> Call:
    """The text of a file of the stack: a program runs in the stack's folder."""
    return Call(f"Path({literal(path)}).read_text", (), (("encoding", "utf-8"),))
