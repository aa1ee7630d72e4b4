"""Write `types.json`: the classes and argument names of the installed pulumi_kubernetes.

    python -m gpuplan.backends.pulumi.generate_types

Only the kinds that gpuplan emits are in it, and what their arguments reach. A property is
`[argument name, class]`: `core.v1.PodSpecArgs`, `[]core.v1.ContainerArgs` for a list of them, empty
for anything else.
"""

from __future__ import annotations

import importlib
import importlib.metadata
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args, get_origin

from gpuplan.backends.pulumi.typed import Properties

TYPES = Path(__file__).with_name("types.json")
KINDS = (
    "apps.v1.Deployment",
    "apps.v1.StatefulSet",
    "batch.v1.CronJob",
    "batch.v1.Job",
    "core.v1.ConfigMap",
    "core.v1.LimitRange",
    "core.v1.Namespace",
    "core.v1.NodePatch",
    "core.v1.PersistentVolumeClaim",
    "core.v1.ResourceQuota",
    "core.v1.Secret",
    "core.v1.Service",
    "core.v1.ServiceAccount",
    "networking.v1.NetworkPolicy",
    "policy.v1.PodDisruptionBudget",
    "resource.v1.ResourceClaimTemplate",
    "scheduling.v1.PriorityClass",
)


def generate() -> str:
    """The table as JSON, one class a line."""
    arguments: dict[str, Properties] = {}
    resources = {kind: _properties(_initial(kind), arguments) for kind in KINDS}
    version = importlib.metadata.version("pulumi-kubernetes")
    lines = [
        "{",
        f' "version": {json.dumps(version)},',
        ' "resources": {',
        *_rows(resources),
        " },",
        ' "arguments": {',
        *_rows(arguments),
        " }",
        "}",
    ]
    return "\n".join(lines) + "\n"


def _rows(table: dict[str, Properties]) -> Iterator[str]:
    last = max(table)
    for name in sorted(table):
        row = json.dumps(table[name], separators=(",", ":"))
        yield f"  {json.dumps(name)}: {row}{'' if name == last else ','}"


def _initial(kind: str) -> type:
    """The class of a resource's arguments: `NamespaceInitArgs` in the resource's own module."""
    name = kind.rpartition(".")[2]
    module = importlib.import_module(f"pulumi_kubernetes.{kind}")
    cls: type = getattr(module, f"{name}InitArgs", None) or getattr(module, f"{name}Args")
    return cls


def _properties(cls: type, arguments: dict[str, Properties]) -> Properties:
    from pulumi import _types

    names: dict[str, str] = {
        wire: python for python, wire in _types.input_type_py_to_pulumi_names(cls).items()
    }
    kinds: dict[str, Any] = _types.input_type_types(cls)
    return {wire: [names[wire], _reference(kinds[wire], arguments)] for wire in sorted(kinds)}


def _reference(kind: Any, arguments: dict[str, Properties]) -> str:
    """How a property's type is written; the classes it reaches are added to `arguments`."""
    if isinstance(kind, type) and kind.__name__.endswith("Args"):
        name = f"{_module(kind)}.{kind.__name__}"
        if name not in arguments:
            arguments[name] = {}
            arguments[name] = _properties(kind, arguments)
        return name
    inner = next(filter(None, (_reference(a, arguments) for a in get_args(kind))), "")
    is_list = getattr(get_origin(kind), "__name__", "") == "Sequence"
    return f"[]{inner}" if inner and is_list else inner


def _module(cls: type) -> str:
    match = re.fullmatch(r"pulumi_kubernetes\.(.+)\._inputs", cls.__module__)
    assert match is not None
    return match[1]


if __name__ == "__main__":
    TYPES.write_text(generate(), encoding="utf-8")
