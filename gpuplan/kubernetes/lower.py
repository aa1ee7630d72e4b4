"""Plan → Kubernetes objects, in the order in which they may be applied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from gpuplan.diagnostics import Diagnostic
from gpuplan.kubernetes import axolotl, engines, jobs, mig, naming, nodes, notebooks, problems
from gpuplan.kubernetes.accounts import accounts
from gpuplan.kubernetes.engines import Launch
from gpuplan.kubernetes.network import policies
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.kubernetes.pods import folder, templated
from gpuplan.kubernetes.priorities import priorities, priority_object_key
from gpuplan.kubernetes.scene import Scene, scene
from gpuplan.kubernetes.serving import serving
from gpuplan.kubernetes.storage import claims
from gpuplan.kubernetes.tenants import tenants
from gpuplan.plan.model import Plan, Training, Workload, record

NAME_LIMIT = 63  # of a namespace: a DNS label (RFC 1123)
RUNS = ("training", "finetuning", "batch")


@record
class Lowered:
    """`diagnostics` say what of the plan no object expresses."""

    objects: tuple[KubernetesObject, ...]
    diagnostics: tuple[Diagnostic, ...]


def lower(plan: Plan) -> Lowered:
    scenes = tuple(scene(plan, w) for w in plan.workloads)
    objects = [*tenants(plan, scenes), *priorities(plan), *nodes.nodes(plan)]
    objects += policies(plan, scenes)
    found = [*_plan_problems(plan)]
    for each in scenes:
        before = [*accounts(each), *claims(each)]
        objects += before
        found += _problems(each)
        match _start(each):
            case Launch() as launch:
                objects += _pods(each, launch, before)
            case problem:
                found.append(problem)
    found += (problems.same_object(plan, identity) for identity in _duplicates(objects))
    return Lowered(objects=tuple(objects), diagnostics=tuple(found))


def _start(each: Scene) -> Launch | Diagnostic:
    """How the workload's container starts, or why that is not known."""
    workload = each.workload
    if workload.task == "batch":
        launch = engines.batch(workload, _batch_folder(each))
        return launch or problems.batch_without_command(workload)
    if workload.task in RUNS:
        return _run(each) or problems.unknown_engine(workload, ("axolotl",))
    if workload.task == "notebook":
        known = tuple(notebooks.COMMANDS)
        return notebooks.launch(each) or problems.unknown_engine(workload, known)
    return engines.serve(workload) or problems.unknown_engine(workload, tuple(engines.SERVERS))


def _batch_folder(each: Scene) -> str:
    return folder(each, "dataset", "models")


def _run(each: Scene) -> Launch | None:
    workload = each.workload
    if workload.command:
        return Launch(command=tuple(map(naming.plain, workload.command)))
    if workload.engine.name != "axolotl" or workload.training is None or workload.model is None:
        return None
    return Launch(arguments=axolotl.arguments(workload, jobs.first_pod(each)))


def _pods(
    each: Scene, launch: Launch, before: Iterable[KubernetesObject]
) -> Iterator[KubernetesObject]:
    """The objects that bring pods. Policies come first: no pod ever runs without its own."""
    workload = each.workload
    needs = (
        f"ResourceQuota/tenant-{workload.tenant}",
        f"PriorityClass/{priority_object_key(workload)}",
        f"NetworkPolicy/tenant-{workload.tenant}",
        f"NetworkPolicy/{each.key}",
        *(o.identity for o in before),
    )
    if workload.task in RUNS:
        yield from jobs.job(each, launch, _files(each, launch), needs)
    elif workload.task == "notebook":
        yield from notebooks.notebooks(each, launch, needs)
    else:
        yield from serving(each, launch, needs)


def _files(each: Scene, launch: Launch) -> dict[str, str]:
    """The configuration of a training engine; a command of the manifest's own reads none."""
    if launch.command:
        return {}
    prepared = folder(each, "dataset", "checkpoints")
    return axolotl.files(each.workload, folder(each, "checkpoints"), prepared)


def _problems(each: Scene) -> Iterator[Diagnostic]:
    workload = each.workload
    yield from _device_problems(each)
    if workload.task == "inference":
        yield from _serving_problems(workload)
    if workload.task in RUNS:
        yield from _run_problems(each)
    if workload.command:
        return
    if workload.training is not None:
        yield from _training_problems(workload, workload.training)
    if workload.task == "batch":
        yield problems.batch_files(workload, _batch_folder(each))


def _device_problems(each: Scene) -> Iterator[Diagnostic]:
    """What the plan expects of devices and containers are not given."""
    workload, fabric = each.workload, each.plan.fabric
    if workload.isolation == "vm":
        yield problems.virtual_machine_isolation(workload)
    if any(p.kind == "vgpu" for p in each.pool.partitions):
        yield problems.vgpu_in_container(workload)
    if fabric is not None and each.needs_rdma and fabric.resource is None:
        yield problems.no_rdma_resource(workload, fabric.kind)


def _serving_problems(workload: Workload) -> Iterator[Diagnostic]:
    if workload.nodes_per_replica > 1:
        yield problems.replica_over_nodes(workload)
    for kind in engines.unsupported_parallelism(workload):
        yield problems.unsupported_parallelism(workload, kind)


def _run_problems(each: Scene) -> Iterator[Diagnostic]:
    workload = each.workload
    own = (v for v in workload.volumes if templated(each, v))
    yield from (problems.volume_of_one_node(workload, v) for v in own)
    if workload.nodes_per_replica > 1:
        yield problems.no_gang(workload)


def _training_problems(workload: Workload, training: Training) -> Iterator[Diagnostic]:
    if training.dataset is None:
        yield problems.no_dataset(workload)
    if axolotl.optimizer(training) is None:
        yield problems.optimizer_of_another_kind(workload, training.optimizer)


def _plan_problems(plan: Plan) -> Iterator[Diagnostic]:
    for tenant in plan.tenants:
        name = naming.namespace_name(plan, tenant.name)
        if len(name) > NAME_LIMIT:
            yield problems.name_too_long(plan, "namespace", name, NAME_LIMIT)
    for pool in mig.pools(plan):
        if not pool.node_names:
            labels = [(n.node_count, f"{mig.LABEL}={mig.profile_name(n)}") for n in pool.layouts]
            yield problems.unnamed_nodes(pool, labels)


def _duplicates(objects: Iterable[KubernetesObject]) -> list[str]:
    """Identities that stand for more than one object, in the program or in the cluster."""
    seen: Counter[str] = Counter()
    for each in objects:
        seen[each.identity] += 1
        if not each.patch:
            seen[f"{each.kind} {each.namespace or ''}/{each.name}"] += 1
    return sorted(identity for identity, count in seen.items() if count > 1)
