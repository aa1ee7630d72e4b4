"""What the README of a Kubernetes stack says: what must be there, how to apply, reach, run again
and remove it."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from gpuplan.engines.start import RUNS
from gpuplan.kubernetes import charts, naming, requirements
from gpuplan.kubernetes.lower import lower
from gpuplan.kubernetes.requirements import ExistingSecret, StorageClass
from gpuplan.kubernetes.tenants import tenant_key
from gpuplan.plan.model import Plan
from gpuplan.render.environments import Verbatim
from gpuplan.render.markdown import code

# Pulumi's identities of all tenants' namespaces; those of charts have other names.
NAMESPACES = f"**:Namespace::{tenant_key('*')}"


@dataclass(frozen=True, slots=True)
class Operator:
    """A chart that is the cluster's, whichever stack installs it."""

    name: Verbatim
    setting: Verbatim
    keep: Verbatim
    driver: str


@dataclass(frozen=True, slots=True)
class Page:
    """Lines of the README; commands are quoted for a shell."""

    release: str
    needed_by: Verbatim
    classes: tuple[Verbatim, ...]
    secrets: tuple[Verbatim, ...]
    namespaces: Verbatim
    make_secrets: tuple[Verbatim, ...]
    operators: tuple[Operator, ...]
    admit: tuple[Verbatim, ...]
    runs: tuple[Verbatim, ...]
    trains: bool
    delete: tuple[Verbatim, ...]


def page(plan: Plan) -> Page:
    objects = lower(plan).objects
    secrets = requirements.existing_secrets(plan)
    release = requirements.release(objects, plan.components)
    runs = [w for w in plan.workloads if w.task in RUNS]
    return Page(
        release=str(release),
        needed_by=Verbatim(code(release.needed_by)),
        classes=tuple(map(_class, requirements.storage_classes(plan))),
        secrets=tuple(map(_secret, secrets)),
        namespaces=_shell(NAMESPACES),
        make_secrets=tuple(map(_make, secrets)),
        operators=tuple(_operators(plan)),
        admit=tuple(_admit(plan)),
        runs=tuple(_shell("pulumi", "up", "--replace", f"**:Job::{w.name}") for w in runs),
        trains=any(w.training for w in runs),
        delete=tuple(
            _shell("kubectl", "delete", "namespace", name)
            for name in requirements.kept_namespaces(objects)
        ),
    )


def _shell(*words: str) -> Verbatim:
    return Verbatim(shlex.join(words))


def _class(item: StorageClass) -> Verbatim:
    name = f"a storage class {code(item.name)}" if item.name else "a default storage class"
    shared = " whose volumes several nodes mount at once (`ReadWriteMany`)" if item.shared else ""
    return Verbatim(name + shared)


def _secret(item: ExistingSecret) -> Verbatim:
    keys = " and ".join(map(code, item.keys))
    word = "key" if len(item.keys) == 1 else "keys"
    where = f"in namespace {code(item.namespace)}, with {word} {keys}"
    readers = ", ".join(f"{code(variable)} of {code(name)}" for variable, name in item.readers)
    return Verbatim(f"Secret {code(item.name)} {where}: {readers}")


def _make(item: ExistingSecret) -> Verbatim:
    command = ("kubectl", "create", "secret", "generic", item.name)
    values = (f"--from-file={key}=FILE" for key in item.keys)
    return _shell(*command, f"--namespace={item.namespace}", *values)


def _operators(plan: Plan) -> Iterator[Operator]:
    for chart in charts.charts(plan):
        yield Operator(
            name=Verbatim(code(chart.component.name)),
            setting=Verbatim(shlex.quote(chart.setting)),
            keep=_shell("--exclude", f"**::{chart.key}"),
            driver=chart.component.driver or "",
        )


def _admit(plan: Plan) -> Iterator[Verbatim]:
    tenants = {w.tenant for w in requirements.listening(plan)}
    for tenant in sorted(tenants):
        label = f"{naming.CLIENT_LABEL}/{naming.namespace_name(plan, tenant)}=true"
        yield _shell("kubectl", "label", "namespace", "CLIENTS", label)
