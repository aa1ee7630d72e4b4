"""Plan → Kubernetes objects, in the order in which they may be applied."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator

from gpuplan.diagnostics import Diagnostic
from gpuplan.engines.launch import Launch
from gpuplan.engines.start import RUNS, shortcomings, start
from gpuplan.kubernetes import naming, nodes, notebooks, problems
from gpuplan.kubernetes.network import policies, reach_problems
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.kubernetes.pods import accounts, devices, templated
from gpuplan.kubernetes.priorities import priorities, priority_object_key
from gpuplan.kubernetes.requirements import release
from gpuplan.kubernetes.routed import routed
from gpuplan.kubernetes.runs import jobs
from gpuplan.kubernetes.scene import Scene, scene_of
from gpuplan.kubernetes.serving import serving
from gpuplan.kubernetes.storage import claims, retained
from gpuplan.kubernetes.tenants import queues, tenants
from gpuplan.plan.model import Plan, record

NAME_LIMIT = 63  # of a namespace: a DNS label (RFC 1123)


@record
class Lowered:
    """`diagnostics` say what of the plan no object expresses."""

    objects: tuple[KubernetesObject, ...]
    diagnostics: tuple[Diagnostic, ...]


def lower(plan: Plan) -> Lowered:
    scenes = tuple(scene_of(plan, w) for w in plan.workloads)
    objects = [*tenants(plan, scenes), *retained(plan), *priorities(plan), *nodes.nodes(plan)]
    objects += [*queues(plan, scenes), *policies(plan, scenes)]
    diagnostics = [*_plan_problems(plan)]
    for scene in scenes:
        before = [*accounts(scene), *claims(scene), *devices(scene)]
        objects += before
        diagnostics += (*_problems(scene), *shortcomings(scene.workload))
        match start(scene.workload, jobs.first_pod(scene)):
            case Launch() as launch:
                objects += _pods(scene, launch, before)
            case problem:
                diagnostics.append(problem)
    diagnostics += (*_cluster_problems(plan, objects), *reach_problems(plan))
    diagnostics += (problems.same_object(plan, identity) for identity in _duplicates(objects))
    return Lowered(objects=tuple(objects), diagnostics=tuple(diagnostics))


def _pods(
    scene: Scene, launch: Launch, before: Iterable[KubernetesObject]
) -> Iterator[KubernetesObject]:
    """The objects that bring pods. Policies come first: no pod ever runs without its own."""
    workload = scene.workload
    needs = (
        scene.of_tenant("ResourceQuota"),
        f"PriorityClass/{priority_object_key(workload)}",
        scene.of_tenant("NetworkPolicy"),
        f"NetworkPolicy/{scene.key}",
        *([scene.of_tenant("LocalQueue")] if scene.queued else []),
        *(o.identity for o in before),
    )
    if workload.task in RUNS:
        yield from jobs.job(scene, launch, needs)
    elif workload.task == "notebook":
        yield from notebooks.notebooks(scene, launch, needs)
    elif scene.split:
        yield from routed(scene, launch, needs)
    else:
        yield from serving(scene, launch, needs)


def _problems(scene: Scene) -> Iterator[Diagnostic]:
    workload = scene.workload
    yield from _device_problems(scene)
    yield from _scattered(scene)
    if scene.grouped:
        yield from _group_problems(scene)
    if scene.split:
        own = (v for v in workload.volumes if templated(scene, v))
        yield from (problems.volume_of_one_node(workload, v) for v in own)
    if workload.task in RUNS:
        yield from _run_problems(scene)


def _scattered(scene: Scene) -> Iterator[Diagnostic]:
    """What counts on the rate inside a switch, and may be put anywhere."""
    fabric, nodes = scene.plan.fabric, scene.workload.nodes_per_replica
    if fabric is None or nodes < 2 or fabric.switch_label or not fabric.nodes_per_switch:
        return
    if fabric.divided(nodes) < fabric.divided(None):
        yield problems.anywhere(scene.workload, fabric.nodes_per_switch)


def _group_problems(scene: Scene) -> Iterator[Diagnostic]:
    workload = scene.workload
    own = (v for v in workload.volumes if templated(scene, v))
    yield from (problems.volume_of_one_node(workload, v) for v in own)
    if not scene.queued:
        yield problems.no_gang(workload)


def _device_problems(scene: Scene) -> Iterator[Diagnostic]:
    """What the plan expects of devices and containers are not given."""
    workload, fabric = scene.workload, scene.plan.fabric
    if workload.isolation == "vm":
        yield problems.virtual_machine_isolation(workload)
    if any(p.kind == "vgpu" for p in scene.pool.partitions):
        yield problems.vgpu_in_container(workload)
    if fabric is not None and scene.needs_rdma and not scene.pins_memory:
        yield problems.no_rdma_resource(workload, fabric.kind)


def _run_problems(scene: Scene) -> Iterator[Diagnostic]:
    workload = scene.workload
    own = (v for v in workload.volumes if templated(scene, v))
    yield from (problems.volume_of_one_node(workload, v) for v in own)
    if workload.nodes_per_replica > 1 and not scene.queued:
        yield problems.no_gang(workload)


def _plan_problems(plan: Plan) -> Iterator[Diagnostic]:
    for tenant in plan.tenants:
        name = naming.namespace_name(plan, tenant.name)
        if len(name) > NAME_LIMIT:
            yield problems.name_too_long(plan, "namespace", name, NAME_LIMIT)
    for pool in plan.node_pools:
        made = plan.cloud is not None  # with its labels
        if not (pool.node_names or made) and (labels := nodes.wanted(plan, pool)):
            yield problems.unnamed_nodes(pool, labels)


def _cluster_problems(plan: Plan, objects: Iterable[KubernetesObject]) -> Iterator[Diagnostic]:
    """A release of Kubernetes, where the manifest states one, that drops or refuses fields."""
    oldest = release(objects, plan.components)
    stated = plan.kubernetes_version
    if stated is not None and int(stated.split(".")[1]) < oldest.minor:
        yield problems.old_cluster(stated, str(oldest), oldest.needed_by)


def _duplicates(objects: Iterable[KubernetesObject]) -> list[str]:
    """Identities that stand for more than one object, in the program or in the cluster."""
    seen: Counter[str] = Counter()
    for item in objects:
        seen[item.identity] += 1
        if not item.patch:
            seen[f"{item.kind} {item.namespace or ''}/{item.name}"] += 1
    return sorted(identity for identity, count in seen.items() if count > 1)
