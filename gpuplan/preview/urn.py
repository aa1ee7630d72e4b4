"""Names of resources, as the Pulumi engine builds them.

`urn:pulumi:STACK::PROJECT::TYPE::NAME`, where TYPE is the parent's type, `$` and the resource's
own, except below the stack itself. Source: pulumi sdk/go/common/resource/urn/urn.go (3.259).
"""

from __future__ import annotations

PREFIX = "urn:pulumi:"
STACK_TYPE = "pulumi:pulumi:Stack"
PROVIDER_TYPE = "pulumi:providers:"
STACK_REFERENCE_TYPE = "pulumi:pulumi:StackReference"


def make(stack: str, project: str, parent_type: str, own_type: str, name: str) -> str:
    """`parent_type` is the qualified type of the parent, empty for none."""
    nested = parent_type not in ("", STACK_TYPE)
    qualified = f"{parent_type}${own_type}" if nested else own_type
    return f"{PREFIX}{stack}::{project}::{qualified}::{name}"


def _part(urn: str, number: int) -> str:
    parts = urn.removeprefix(PREFIX).split("::", 3)
    return parts[number] if len(parts) == 4 else ""


def stack_of(urn: str) -> str:
    return _part(urn, 0)


def project_of(urn: str) -> str:
    return _part(urn, 1)


def qualified_type(urn: str) -> str:
    """The type with those of its parents: `my:Component$kubernetes:core/v1:Service`."""
    return _part(urn, 2)


def type_of(urn: str) -> str:
    return qualified_type(urn).rpartition("$")[2]


def name_of(urn: str) -> str:
    return _part(urn, 3)


def short(urn: str) -> str:
    """`TYPE::NAME`: what tells resources of one stack apart."""
    return f"{qualified_type(urn)}::{name_of(urn)}" if urn.startswith(PREFIX) else urn


def package_of(type_token: str) -> str:
    """`kubernetes:core/v1:Service` → `kubernetes`; `pulumi:providers:kubernetes` → `kubernetes`."""
    if type_token.startswith(PROVIDER_TYPE):
        return type_token.removeprefix(PROVIDER_TYPE)
    return type_token.partition(":")[0]


def inherited_alias(child_type: str, child_name: str, parent_name: str, parent_alias: str) -> str:
    """What a child was called when its parent was called `parent_alias`; a child named after its
    parent followed the parent's name. Source: step_generator.go, inheritedChildAlias (3.259)."""
    name = child_name
    if child_name.startswith(parent_name):
        name = name_of(parent_alias) + child_name.removeprefix(parent_name)
    stack, project = stack_of(parent_alias), project_of(parent_alias)
    return make(stack, project, qualified_type(parent_alias), child_type, name)
