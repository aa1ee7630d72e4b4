"""What a provider does with a changed property: update in place, or replace.

Known for Kubernetes and pulumi-command; for other packages `is_known` is false and only what the
program itself says (`replaceOnChanges`) counts.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gpuplan.kubernetes.naming import amount
from gpuplan.kubernetes.update import immutable
from gpuplan.preview import urn as urns
from gpuplan.preview.comparing import force_new
from gpuplan.preview.comparing.diff import Change, touches
from gpuplan.preview.registered import Registered
from gpuplan.preview.values import Route, Unknown, parse_route

KNOWN_PACKAGES = frozenset({"kubernetes", "command", "pulumi"})
STATEFUL = frozenset(
    {
        "kubernetes:core/v1:Namespace",  # deletes everything in it
        "kubernetes:core/v1:PersistentVolume",
        "kubernetes:core/v1:PersistentVolumeClaim",
        "kubernetes:apiextensions.k8s.io/v1:CustomResourceDefinition",  # deletes its objects
    }
)
_STATEFUL_NAMES = frozenset({"VirtualMachine", "Vm", "VmLegacy", "Domain", "DataVolume"})


def is_known(resource: Registered) -> bool:
    """Whether the provider's rules for replacement are known here."""
    return not resource.custom or urns.package_of(resource.type) in KNOWN_PACKAGES


def outputs_stay_known(resource: Registered) -> bool:
    """Whether an update's outputs are known before it runs: the Kubernetes provider asks the API
    server for them, others leave them unknown."""
    return not resource.custom or urns.package_of(resource.type) == "kubernetes"


def is_stateful(resource: Registered) -> bool:
    """Whether deleting it destroys what cannot be made again."""
    return resource.protect or is_stateful_type(resource.type)


def is_stateful_type(resource_type: str) -> bool:
    """A volume, a machine, or something whose deletion takes such along."""
    return resource_type in STATEFUL or resource_type.rpartition(":")[2] in _STATEFUL_NAMES


def is_patch(resource: Registered) -> bool:
    """A `…Patch` resource: fields set on an object that somebody else owns."""
    kind = resource.inputs.get("kind")
    return kind is not None and resource.type.rpartition(":")[2] == f"{kind}Patch"


def force_new_routes(resource: Registered, provider_inputs: Mapping[str, Any]) -> tuple[Route, ...]:
    """The properties of `resource` that no update can change."""
    texts: tuple[str, ...] = ()
    package = urns.package_of(resource.type)
    if package == "command":
        texts = force_new.COMMAND
    elif resource.type.startswith("kubernetes:helm.sh/"):
        texts = force_new.HELM_RELEASE
    elif is_patch(resource):
        texts = force_new.IDENTITY
    elif package == "kubernetes" and "kind" in resource.inputs:
        texts = (*force_new.IDENTITY, *_kubernetes(resource.inputs, provider_inputs))
    return tuple(parse_route(t) for t in (*texts, *resource.replace_on_changes))


def _kubernetes(inputs: Mapping[str, Any], provider_inputs: Mapping[str, Any]) -> tuple[str, ...]:
    kind = str(inputs["kind"])
    group = str(inputs.get("apiVersion", "")).rpartition("/")[0]
    if group == "" and kind in force_new.HELD_DATA:
        mutable = str(provider_inputs.get(f"enable{kind}Mutable", "false")) == "true"
        if inputs.get("immutable") is True or not mutable:
            return force_new.HELD_DATA[kind]
    return force_new.KUBERNETES.get((group, kind), ())


def refused(old: Registered, new: Registered) -> tuple[str, ...]:
    """The properties of an update in place that the API server would refuse."""
    if urns.package_of(new.type) != "kubernetes" or is_patch(new):
        return ()
    return immutable.refused(old.inputs, new.inputs)


def forces(routes: tuple[Route, ...], change: Change) -> bool:
    """Whether `change` needs a replacement; so does losing all metadata, which unnames it."""
    lost = change.kind == "delete" or isinstance(change.new, Unknown)
    unnamed = change.route == ("metadata",) and lost
    return unnamed or any(touches(r, change) for r in routes)


def deletes_first(old: Registered, new: Registered) -> bool:
    """Whether the provider deletes before it creates: two objects cannot have one explicit name
    (pulumi-kubernetes provider.go, Diff, v4.32.0)."""
    if urns.package_of(new.type) != "kubernetes" or "kind" not in new.inputs:
        return False
    before, after = _metadata(old), _metadata(new)
    same_place = before.get("namespace", "default") == after.get("namespace", "default")
    return bool(after.get("name")) and before.get("name") == after.get("name") and same_place


def _metadata(resource: Registered) -> Mapping[str, Any]:
    metadata = resource.inputs.get("metadata")
    return metadata if isinstance(metadata, Mapping) else {}


# --- equal in other words -------------------------------------------------------------------------

_QUANTITY_PARENTS = frozenset({"requests", "limits", "hard", "capacity", "allocatable", "overhead"})


def is_respelled(change: Change) -> bool:
    """Whether a Kubernetes quantity only changed its spelling (`1Gi`, `1024Mi`): the provider
    compares amounts (clients.Normalize, v4.32.0)."""
    if change.kind != "update" or len(change.route) < 2:
        return False
    if change.route[-1] != "sizeLimit" and change.route[-2] not in _QUANTITY_PARENTS:
        return False
    before, after = amount(change.old), amount(change.new)
    return before is not None and before == after
