"""A plan compiled over the stack that is there, so that an update of the cluster is never refused.

Source of what is fixed: `gpuplan.kubernetes.update.immutable`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from gpuplan.diagnostics import Diagnostic
from gpuplan.engines.start import RUNS
from gpuplan.kubernetes.lower import lower
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.kubernetes.runs import gangs
from gpuplan.kubernetes.update import messages, operators
from gpuplan.kubernetes.update.claims import keep_claims, same
from gpuplan.kubernetes.update.immutable import refused
from gpuplan.kubernetes.update.layouts import keep_layouts
from gpuplan.plan.model import Plan, Workload
from gpuplan.source import Origin
from gpuplan.vendors import VENDORS

Place = tuple[str, str | None, str]  # kind, namespace, name
Objects = Mapping[Place, KubernetesObject]
GPU_DOMAINS = {v.resource.partition("/")[0] for v in VENDORS.values()}  # of what pods ask for
ONCE = ("Job", gangs.KIND)  # a run that starts once
AWAITED = ("Deployment", "StatefulSet")  # whoever applies them waits until their pods are ready


def carry_over(
    before: Plan, after: Plan, forget: Sequence[str] = ()
) -> tuple[Plan, tuple[Diagnostic, ...]]:
    """`after` as an update of `before`, and what a person should know of it: notes, steps to take
    by hand, errors where an object can neither stay nor have another name. Raises `Rejected` for a
    name in `forget` that is not kept."""
    if not forget and _same(before, after):
        return after, ()
    plan, notes = keep_claims(before, after, forget)
    plan, cuts = keep_layouts(before, plan)
    plan = _packed_as_before(before, plan)
    standing = _objects(before)
    plan, now, runs = _runs(before, plan, standing)
    moved = operators.moves(before, plan)
    refusals, waits = _refusals(plan, standing, now), _waits(plan, standing, now)
    return plan, (*notes, *cuts, *runs, *moved, *refusals, *waits)


def _packed_as_before(before: Plan, plan: Plan) -> Plan:
    """What other workloads come and go beside decides whether pods are packed. A run that is there
    is not begun anew for that, and a service not restarted to be spread again."""

    def kept(work: Workload) -> Workload:
        if (former := same(before, work)) is None:
            return work
        once = work.task in RUNS and work.schedule is None
        return replace(work, packed=former.packed if once else former.packed or work.packed)

    return replace(plan, workloads=tuple(map(kept, plan.workloads)))


def _same(before: Plan, after: Plan) -> bool:
    """Whether nothing that objects are made of differs."""
    former = replace(before, provenance=after.provenance, evidence=after.evidence)
    return former == after


def _objects(plan: Plan) -> Objects:
    objects = (o for o in lower(plan).objects if not o.patch)
    return {(o.kind, o.namespace, o.name): o for o in objects}


def _runs(
    before: Plan, plan: Plan, standing: Objects
) -> tuple[Plan, Objects, tuple[Diagnostic, ...]]:
    """`plan` and its objects, with another name for each run whose Job cannot become what is
    wanted."""
    former = {w.name: same(before, w) for w in plan.workloads if w.task in RUNS}
    earlier = {name: w.generation for name, w in former.items() if w is not None}
    plan = _numbered(plan, earlier)
    later, notes = {}, []
    now = _objects(plan)
    objects = {o.key: o for o in now.values() if o.kind in ONCE}
    kinds = {o.key: o for o in standing.values() if o.kind in ONCE}
    for workload in plan.workloads:
        job = objects.get(workload.name) if workload.name in earlier else None
        old = standing.get((job.kind, job.namespace, job.name)) if job else None
        if job is not None and old is not None and (fixed := refused(old.tree, job.tree)):
            later[workload.name] = (earlier[workload.name] or 1) + 1
            name = f"{job.name.removesuffix(f'-{workload.generation}')}-{later[workload.name]}"
            notes.append(messages.new_run(workload, job.name, name, fixed))
        elif job is not None and workload.name in kinds and kinds[workload.name].kind != job.kind:
            notes.append(messages.new_kind(workload, kinds[workload.name], job))
    if later:
        plan = _numbered(plan, later)
        now = _objects(plan)
    return plan, now, tuple(notes)


def _numbered(plan: Plan, generations: Mapping[str, int | None]) -> Plan:
    return replace(
        plan,
        workloads=tuple(
            replace(w, generation=generations[w.name]) if w.name in generations else w
            for w in plan.workloads
        ),
    )


def _refusals(plan: Plan, standing: Objects, now: Objects) -> Iterator[Diagnostic]:
    for where, item in now.items():
        old = standing.get(where)
        if old is not None and (fixed := refused(old.tree, item.tree)):
            yield messages.cannot_become(f"{item.kind} {item.name}", fixed, _origin(plan, item))


def _waits(plan: Plan, standing: Objects, now: Objects) -> Iterator[Diagnostic]:
    """New pods that nobody's GPUs are free for, since an update removes the old ones last."""
    gone = [o for w, o in standing.items() if o.kind in (*AWAITED, *ONCE) and w not in now]
    for where, item in now.items():
        if item.kind not in AWAITED or where in standing:
            continue
        for old in gone:
            if _devices(old) & _devices(item):
                kind = old.kind.lower()
                command = f"kubectl -n {old.namespace} delete {kind} {old.name}"
                yield messages.waits_for(_named(old), _named(item), command, _origin(plan, item))


def _named(item: KubernetesObject) -> str:
    return f"{item.kind.lower()} {item.namespace}/{item.name}"


def _devices(item: KubernetesObject) -> set[tuple[str, str]]:
    """What pods ask of GPU nodes: a resource, on nodes with a label."""
    made = item.tree["spec"]
    if item.kind == gangs.KIND:
        made = made["replicatedJobs"][0]["template"]["spec"]
    spec = made["template"]["spec"]
    limits = _limits(spec["containers"])
    labels = spec.get("nodeSelector") or {"": ""}
    return {(r, f"{k}={v}") for r in limits for k, v in labels.items()}


def _limits(containers: Iterable[Mapping[str, Mapping[str, Mapping[str, str]]]]) -> set[str]:
    return {
        name
        for container in containers
        for name in container["resources"]["limits"]
        if name.partition("/")[0] in GPU_DOMAINS
    }


def _origin(plan: Plan, item: KubernetesObject) -> Origin | None:
    workload: Workload | None = next((w for w in plan.workloads if w.name == item.key), None)
    return workload.origin if workload else None
