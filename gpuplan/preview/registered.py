"""What a previewed program registered: frozen records, in the order of the program."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from gpuplan.frozen import record
from gpuplan.preview.urn import PROVIDER_TYPE, STACK_TYPE


@record
class Provider:
    """Who manages a resource. `urn` is None for a default provider, which no program names."""

    package: str
    version: str
    name: str
    urn: str | None = None

    def __str__(self) -> str:
        return " ".join(p for p in (self.package, self.version, f"({self.name})") if p)


@record
class Registered:
    """One resource. `inputs` are plain data with the markers of `values`; `dependencies`,
    `property_dependencies` and `aliases` are URNs, sorted; `position` is `FILE:LINE` in the stack,
    empty when unknown. A `remote` component is expanded by its provider, so its children are not
    here. `delete_before_replace` is None where the program leaves it to the provider."""

    urn: str
    type: str
    name: str
    parent: str | None
    custom: bool
    remote: bool = False
    protect: bool = False
    dependencies: tuple[str, ...] = ()
    property_dependencies: tuple[tuple[str, tuple[str, ...]], ...] = ()
    provider: Provider | None = None
    version: str = ""
    aliases: tuple[str, ...] = ()
    ignore_changes: tuple[str, ...] = ()
    replace_on_changes: tuple[str, ...] = ()
    replace_with: tuple[str, ...] = ()
    retain_on_delete: bool = False
    delete_before_replace: bool | None = None
    import_id: str = ""
    inputs: Mapping[str, Any]
    position: str = ""

    @property
    def is_stack(self) -> bool:
        return self.type == STACK_TYPE

    @property
    def is_provider(self) -> bool:
        return self.type.startswith(PROVIDER_TYPE)


@record
class LogMessage:
    """What the program said. `urn` is the resource it spoke of, empty for none."""

    severity: Literal["info", "warning", "error"]
    text: str
    urn: str = ""


@record
class Preview:
    """All a program would create. `placeholders` names the configuration that had no value here:
    secrets and the cluster, for which `[secret]` and `[context]` stood in."""

    project: str
    stack: str
    resources: tuple[Registered, ...]
    outputs: Mapping[str, Any]
    placeholders: tuple[str, ...] = ()
    messages: tuple[LogMessage, ...] = ()
