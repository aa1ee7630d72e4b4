"""What the README of a Kubernetes stack says: what must be there, how to apply, reach, run again
and remove it. Commands are quoted for a shell."""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterator, Sequence

from gpuplan.backends.pulumi.kubernetes import operators
from gpuplan.emission import Section
from gpuplan.engines.container import NOTEBOOK_PORT
from gpuplan.engines.start import NOTEBOOKS, RUNS, batch_folders
from gpuplan.frozen import frozen
from gpuplan.kubernetes import batches, mig, naming, nodes, requirements
from gpuplan.kubernetes.addons import charts
from gpuplan.kubernetes.addons.charts import Chart
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.kubernetes.requirements import ExistingSecret, StorageClass
from gpuplan.kubernetes.routed import parts
from gpuplan.kubernetes.scene import Scene, scene_of
from gpuplan.kubernetes.tenants import covered
from gpuplan.kubernetes.timing import outage
from gpuplan.plan.model import NodePool, Plan, RetainedClaim, Workload, named_hosts
from gpuplan.render.environments import Verbatim, render
from gpuplan.render.markdown import code, escape
from gpuplan.units import format_bytes

TEMPLATES = "pulumi/kubernetes"
# Pulumi's identities of all tenants' namespaces; those of charts have other names.
NAMESPACES = f"**:Namespace::{naming.tenant_key('*')}"


@frozen
class Operator:
    """A chart that is the cluster's, whichever stack installs it. `drives`: it has the driver.
    `removes`: the definitions of kinds that its removal takes from the cluster. `on_hosts`: it is
    to be installed by hand where nodes come with a driver."""

    name: Verbatim
    drives: bool
    setting: Verbatim
    keep: Verbatim
    driver: str
    removes: Verbatim
    on_hosts: bool


@frozen
class Kept:
    """A claim of an earlier stack, and how it is let go."""

    name: Verbatim
    size: str
    forget: Verbatim
    delete: Verbatim


@frozen
class Recurring:
    """A CronJob, how it is started besides, and how its runs are listed."""

    name: Verbatim
    schedule: Verbatim
    now: Verbatim
    runs: Verbatim


@frozen
class ProfileMap:
    """The cluster's map of MIG profiles, the other stacks that it serves, and how an operator of
    somebody else gets it."""

    name: Verbatim
    others: Verbatim
    setting: Verbatim
    install: list[Verbatim]


def sections(plan: Plan, objects: Sequence[KubernetesObject]) -> Iterator[Section]:
    installed = [*_operators(plan)]
    yield Section("Before", _before(plan, objects, installed))
    yield Section("Apply", _apply(plan))
    for workload in plan.workloads:
        if workload.task == "batch":
            yield Section("Start", _start(scene_of(plan, workload)))
    if admit := [*_admit(plan)]:
        yield Section("Reach", render("markdown", f"{TEMPLATES}/reach.md.j2", commands=admit))
    for workload in plan.workloads:
        if workload.task == "notebook":
            yield Section("Reach", _notebook(plan, workload))
    yield from _updates(plan)
    if runs := [w for w in plan.workloads if w.task in RUNS]:
        yield Section("Run again", _run_again(plan, runs))
    owned = " and ".join(requirements.never_equal(objects))
    yield Section("Adopt", render("markdown", f"{TEMPLATES}/adopt.md.j2", owned=owned))
    kept = requirements.kept_namespaces(objects)
    delete = [_shell("kubectl", "delete", "namespace", name) for name in kept]
    said = {
        "operators": installed,
        "removing": any(operator.removes for operator in installed),
        "elsewhere": plan.operators is not None,
        "separate": plan.operators == "separate",
        "delete": delete,
        "hosts": Verbatim(" ".join(map(code, named_hosts(plan)))),
        "stack": _shell(plan.name),
    }
    yield Section("Remove", render("markdown", f"{TEMPLATES}/remove.md.j2", **said))


def _before(plan: Plan, objects: Sequence[KubernetesObject], installed: Sequence[Operator]) -> str:
    release = requirements.release(objects, plan.components)
    return render(
        "markdown",
        f"{TEMPLATES}/before.md.j2",
        release=str(release),
        needed_by=Verbatim(code(release.needed_by)),
        pools=[
            *(Verbatim(_nodes(plan, p)) for p in plan.node_pools if not p.node_names),
            *_made_ready(plan),
        ],
        classes=list(map(_class, requirements.storage_classes(plan))),
        queue=_queue(plan),
        scratch=[_scratch(w) for w in plan.workloads if w.resources.scratch_bytes],
        secrets=[*map(_secret, requirements.existing_secrets(plan)), *_pulls(plan)],
        operators=installed,
        elsewhere=plan.operators is not None,
        separate=plan.operators == "separate",
    )


def _queue(plan: Plan) -> Verbatim:
    """What admits pods at once, and what it has to cover."""
    names = covered(tuple(scene_of(plan, w) for w in plan.workloads))
    if plan.queue is None or not names:
        return Verbatim("")
    listed = ", ".join(map(code, names))
    return Verbatim(
        f"Kueue with {code('kueue.x-k8s.io/v1beta2')} and its ClusterQueue {code(plan.queue)},"
        f" which covers {listed}: what it does not cover is never admitted"
    )


def _apply(plan: Plan) -> str:
    return render(
        "markdown",
        f"{TEMPLATES}/apply.md.j2",
        configured=any(s.store == "config" for w in plan.workloads for s in w.secrets),
        elsewhere=plan.operators is not None and operators.needed(plan),
        separate=plan.operators == "separate" and operators.needed(plan),
        cluster_stack=_shell(f"ORGANIZATION/{plan.name}-cluster/dev")
        if operators.asks_stack(plan)
        else "",
        operators_stack=_shell(f"ORGANIZATION/{plan.name}-{operators.PART}/dev"),
        namespaces=_namespaces(plan),
        hosts=Verbatim(" ".join(map(code, named_hosts(plan)))),
        stack=_shell(plan.name),
        secrets=[*map(_make, requirements.existing_secrets(plan)), *_make_pulls(plan)],
        pulls=bool(requirements.pull_secrets(plan)),
    )


def _start(scene: Scene) -> str:
    """How a batch gets its requests and is let go."""
    workload, pod = scene.workload, batches.files_pod(scene)
    kubectl = ("kubectl", "-n", scene.namespace)
    requests, results = batch_folders(workload)
    last = workload.replicas - 1
    return render(
        "markdown",
        f"{TEMPLATES}/start.md.j2",
        name=Verbatim(code(workload.name)),
        rest=Verbatim(f" to {code(f'requests-{last}.jsonl')}, one for each pod," if last else ""),
        requests=Verbatim(code(requests)),
        results=Verbatim(code(results)),
        fill=[
            _shell(*kubectl, "apply", "-f", batches.files_path(workload)),
            _shell(*kubectl, "wait", "--for=condition=Ready", f"pod/{pod}", "--timeout=30m"),
            _shell(*kubectl, "cp", "requests-0.jsonl", f"{pod}:{requests}/"),
            _shell(*kubectl, "delete", "pod", pod),
            _shell("pulumi", "config", "set", batches.hold_setting(workload), "false"),
            _shell("pulumi", "up"),
        ],
    )


def _notebook(plan: Plan, workload: Workload) -> str:
    """How its users get in: a pod of a StatefulSet is one user's."""
    name, namespace = workload.oldest_name, naming.namespace_name(plan, workload.tenant)
    first, last, port = f"{name}-0", f"{name}-{workload.replicas - 1}", str(NOTEBOOK_PORT)
    jupyter = workload.engine.name in NOTEBOOKS and not workload.command
    kubectl = ("kubectl", "-n", namespace)
    lists = (*kubectl, "exec", first, "--", "jupyter", "server", "list")
    # Connections of either kind are a GET to older servers and also a CREATE to newer ones.
    rights = ("--verb=get,create", "--resource=pods,pods/portforward,pods/exec")
    admit = (
        (*kubectl, "create", "role", first, *rights, f"--resource-name={first}"),
        (*kubectl, "create", "rolebinding", first, f"--role={first}", "--user=USER"),
    )
    return render(
        "markdown",
        f"{TEMPLATES}/notebooks.md.j2",
        name=Verbatim(code(workload.name)),
        pods=Verbatim(code(first) + (f" to {code(last)}" if first != last else "")),
        namespace=Verbatim(code(namespace)),
        admit=[_shell(*command) for command in admit],
        forward=_shell(*kubectl, "port-forward", f"pod/{first}", port),
        port=port,
        token=_shell(*lists) if jupyter else None,
    )


def _updates(plan: Plan) -> Iterator[Section]:
    """What stops while an update is applied, and what of former stacks is still there."""
    single = [
        Verbatim(f"{code(scene.key)} has a single replica and no GPU is spare, {outage(scene)}")
        for w in plan.workloads
        for scene in parts(scene_of(plan, w))
        if w.task == "inference" and scene.workload.replicas == 1
    ]
    desks = [Verbatim(code(w.name)) for w in plan.workloads if w.task == "notebook"]
    kept = [_kept(plan, claim) for claim in plan.retained_claims]
    maps = [_map(plan, c) for c in charts.charts(plan) if mig.pools(plan)]
    scaled = any(w.task not in RUNS for w in plan.workloads)
    if scaled or kept or maps:
        said = {"scaled": scaled, "single": single, "notebooks": desks, "kept": kept, "maps": maps}
        yield Section("Update", render("markdown", f"{TEMPLATES}/update.md.j2", **said))


def _kept(plan: Plan, claim: RetainedClaim) -> Kept:
    from gpuplan.kubernetes.update.claims import delete_claim, place

    return Kept(
        name=Verbatim(code(place(plan, claim))),
        size=format_bytes(claim.size_bytes) + (f" × {claim.pods}" if claim.pods else ""),
        forget=_shell("gpuplan", "compile", "MANIFEST", "--forget", place(plan, claim)),
        delete=_shell(*delete_claim(plan, claim)),
    )


def _map(plan: Plan, chart: Chart) -> ProfileMap:
    name, namespace = mig.map_name(plan), chart.component.namespace
    file = f"config.yaml={chart.folder}/{charts.MAP_FILE}"
    setting = json.dumps({"spec": {"migManager": {"config": {"name": name}}}})
    policy = ("kubectl", "patch", "clusterpolicies.nvidia.com/cluster-policy", "--type=merge")
    others = sorted({n.stack for n in plan.neighbours})
    return ProfileMap(
        name=Verbatim(code(name)),
        others=Verbatim(" and ".join(map(code, others))),
        setting=Verbatim(code(chart.setting)),
        install=[
            _shell("kubectl", "-n", namespace, "create", "configmap", name, f"--from-file={file}"),
            _shell(*policy, "-p", setting),
        ]
        if plan.operators != "elsewhere"
        else [],
    )


def _run_again(plan: Plan, runs: Sequence[Workload]) -> str:
    scenes = [scene_of(plan, w) for w in runs if not w.schedule]
    kinds = [(s.key, "JobSet" if s.restarts_whole else "Job") for s in scenes]
    commands = [_shell("pulumi", "up", "--replace", f"**:{kind}::{key}") for key, kind in kinds]
    said = {
        "commands": commands,
        "recurring": [_recurring(plan, w) for w in runs if w.schedule],
        "trains": any(w.training for w in runs),
    }
    return render("markdown", f"{TEMPLATES}/run-again.md.j2", **said)


def _recurring(plan: Plan, workload: Workload) -> Recurring:
    name, namespace = workload.oldest_name, naming.namespace_name(plan, workload.tenant)
    kubectl = ("kubectl", "-n", namespace)
    now = (*kubectl, "create", "job", f"{name}-now", f"--from=cronjob/{name}")
    return Recurring(
        name=Verbatim(code(name)),
        schedule=Verbatim(code(workload.schedule or "")),
        now=_shell(*now),
        runs=_shell(*kubectl, "get", "jobs", "-l", f"app.kubernetes.io/name={name}"),
    )


def _shell(*words: str) -> Verbatim:
    return Verbatim(shlex.join(words))


def _nodes(plan: Plan, pool: NodePool) -> str:
    """What nodes a pool's pods look for, where they are not known by name."""
    labels = " and ".join(code(f"{k}={v}") for k, v in nodes.selector(plan, pool).items())
    own = nodes.labelled(plan, pool) and plan.cloud is None
    added = f"; nobody but you sets {code(naming.POOL_LABEL)}" if own else ""
    return f"{escape(pool.shape)}, which pods find by {labels}{added}"


def _made_ready(plan: Plan) -> Iterator[Verbatim]:
    """What nodes must have themselves, once for each vendor."""
    for maker in dict.fromkeys(pool.maker for pool in plan.node_pools):
        if maker.on_nodes:
            yield Verbatim(f"on each node with {maker.title} GPUs {maker.on_nodes}")


def _class(item: StorageClass) -> Verbatim:
    name = f"a storage class {code(item.name)}" if item.name else "a default storage class"
    shared = " whose volumes several nodes mount at once (`ReadWriteMany`)" if item.shared else ""
    return Verbatim(name + shared)


def _scratch(workload: Workload) -> Verbatim:
    size = format_bytes(workload.resources.scratch_bytes)
    disk = f"{size} of its node's own disk (`ephemeral-storage`) for each pod of"
    return Verbatim(f"{disk} {code(workload.name)}; `overrides.scratch` of the manifest sets it")


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


def _namespaces(plan: Plan) -> Verbatim:
    """All that secrets are put into before the rest comes."""
    here = plan.operators is None and any(charts.charts(plan))
    pulled = here and requirements.pull_secrets(plan)
    addons = ("--target", "**:Namespace::addon-*") if pulled else ()
    return _shell(NAMESPACES, *addons)


def _pulls(plan: Plan) -> Iterator[Verbatim]:
    for namespace, name in requirements.pull_secrets(plan):
        where = f"in namespace {code(namespace)}"
        yield Verbatim(f"Secret {code(name)} {where}, with the credentials of the image registry")


def _make_pulls(plan: Plan) -> Iterator[Verbatim]:
    for namespace, name in requirements.pull_secrets(plan):
        command = ("kubectl", "create", "secret", "docker-registry", name)
        yield _shell(*command, f"--namespace={namespace}", "--from-file=.dockerconfigjson=FILE")


def _operators(plan: Plan) -> Iterator[Operator]:
    for chart in charts.charts(plan):
        yield Operator(
            name=Verbatim(code(chart.component.name)),
            drives=chart.component.name == charts.GPU_OPERATOR
            and not (plan.cloud and plan.cloud.driver_on_nodes),
            setting=Verbatim(shlex.quote(chart.setting)),
            keep=_shell("--exclude", f"**::{chart.key}"),
            driver=chart.component.driver or "",
            removes=Verbatim(", ".join(map(code, charts.removed(plan, chart)))),
            on_hosts=chart.component.name == charts.DOMAINS,
        )


def _admit(plan: Plan) -> Iterator[Verbatim]:
    tenants = {w.tenant for w in requirements.listening(plan)}
    for tenant in sorted(tenants):
        label = f"{naming.CLIENT_LABEL}/{naming.namespace_name(plan, tenant)}=true"
        yield _shell("kubectl", "label", "namespace", "CLIENTS", label)
