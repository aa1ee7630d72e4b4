"""What the README of a Kubernetes stack says: what must be there, how to apply, reach, run again
and remove it. Commands are quoted for a shell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from gpuplan.emission import Section
from gpuplan.engines.container import NOTEBOOK_PORT
from gpuplan.engines.start import NOTEBOOKS, RUNS
from gpuplan.kubernetes import charts, naming, requirements
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.kubernetes.requirements import ExistingSecret, StorageClass
from gpuplan.kubernetes.scene import scene_of
from gpuplan.kubernetes.timing import outage
from gpuplan.kubernetes.update.claims import delete_claim, place
from gpuplan.plan.model import Plan, Workload
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.markdown import code
from gpuplan.units import format_bytes

TEMPLATES = "pulumi/kubernetes"
# Pulumi's identities of all tenants' namespaces; those of charts have other names.
NAMESPACES = f"**:Namespace::{naming.tenant_key('*')}"


@dataclass(frozen=True, slots=True)
class Operator:
    """A chart that is the cluster's, whichever stack installs it."""

    name: Verbatim
    setting: Verbatim
    keep: Verbatim
    driver: str


@dataclass(frozen=True, slots=True)
class Kept:
    """A claim of an earlier stack, and how it is let go."""

    name: Verbatim
    size: str
    forget: Verbatim
    delete: Verbatim


def sections(plan: Plan, objects: Sequence[KubernetesObject]) -> Iterator[Section]:
    operators = [*_operators(plan)]
    yield Section("Before", _before(plan, objects, operators))
    yield Section("Apply", _apply(plan))
    if admit := [*_admit(plan)]:
        yield Section("Reach", render("markdown", f"{TEMPLATES}/reach.md.j2", commands=admit))
    for workload in plan.workloads:
        if workload.task == "notebook":
            yield Section("Reach", _notebook(plan, workload))
    yield from _updates(plan)
    if runs := [w for w in plan.workloads if w.task in RUNS]:
        yield Section("Run again", _run_again(runs))
    kept = requirements.kept_namespaces(objects)
    delete = [_shell("kubectl", "delete", "namespace", name) for name in kept]
    template = f"{TEMPLATES}/remove.md.j2"
    yield Section("Remove", render("markdown", template, operators=operators, delete=delete))


def _before(plan: Plan, objects: Sequence[KubernetesObject], operators: Sequence[Operator]) -> str:
    release = requirements.release(objects, plan.components)
    return render(
        "markdown",
        f"{TEMPLATES}/before.md.j2",
        release=str(release),
        needed_by=Verbatim(code(release.needed_by)),
        classes=list(map(_class, requirements.storage_classes(plan))),
        secrets=list(map(_secret, requirements.existing_secrets(plan))),
        operators=operators,
    )


def _apply(plan: Plan) -> str:
    return render(
        "markdown",
        f"{TEMPLATES}/apply.md.j2",
        configured=any(s.store == "config" for w in plan.workloads for s in w.secrets),
        namespaces=_shell(NAMESPACES),
        secrets=list(map(_make, requirements.existing_secrets(plan))),
    )


def _notebook(plan: Plan, workload: Workload) -> str:
    """How its users get in: a pod of a StatefulSet is one user's."""
    name, namespace = naming.physical_name(workload), naming.namespace_name(plan, workload.tenant)
    first, last, port = f"{name}-0", f"{name}-{workload.replicas - 1}", str(NOTEBOOK_PORT)
    jupyter = workload.engine.name in NOTEBOOKS and not workload.command
    lists = ("kubectl", "-n", namespace, "exec", first, "--", "jupyter", "server", "list")
    return render(
        "markdown",
        f"{TEMPLATES}/notebooks.md.j2",
        name=Verbatim(code(workload.name)),
        pods=Verbatim(code(first) + (f" to {code(last)}" if first != last else "")),
        namespace=Verbatim(code(namespace)),
        forward=_shell("kubectl", "-n", namespace, "port-forward", f"pod/{first}", port),
        port=port,
        token=_shell(*lists) if jupyter else None,
    )


def _updates(plan: Plan) -> Iterator[Section]:
    """What stops while an update is applied, and what of former stacks is still there."""
    single = [
        Verbatim(f"{code(w.name)} has a single replica and no GPU is spare, {outage(scene)}")
        for w in plan.workloads
        if w.task == "inference" and w.replicas == 1
        for scene in (scene_of(plan, w),)
    ]
    desks = [Verbatim(code(w.name)) for w in plan.workloads if w.task == "notebook"]
    kept = [
        Kept(
            name=Verbatim(code(place(plan, c))),
            size=format_bytes(c.size_bytes),
            forget=_shell("gpuplan", "compile", "MANIFEST", "--forget", place(plan, c)),
            delete=_shell(*delete_claim(plan, c)),
        )
        for c in plan.retained_claims
    ]
    if single or desks or kept:
        text = render(
            "markdown", f"{TEMPLATES}/update.md.j2", single=single, notebooks=desks, kept=kept
        )
        yield Section("Update", text)


def _run_again(runs: Sequence[Workload]) -> str:
    commands = [_shell("pulumi", "up", "--replace", f"**:Job::{w.name}") for w in runs]
    trains = any(w.training for w in runs)
    return render("markdown", f"{TEMPLATES}/run-again.md.j2", commands=commands, trains=trains)


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
