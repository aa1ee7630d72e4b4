"""The pod of a workload: account, resources, devices, volumes, placement and rights."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuplan.engines.container import CONFIG, SCRATCH, TEMPORARY, contained, image
from gpuplan.engines.disaggregated import SIDE_HOST
from gpuplan.engines.launch import Launch
from gpuplan.kubernetes import naming, nodes
from gpuplan.kubernetes.addons.compute_domains import CHANNEL, domain, template
from gpuplan.kubernetes.affinity import affinity
from gpuplan.kubernetes.objects import KubernetesObject, SecretValue
from gpuplan.kubernetes.scene import Scene
from gpuplan.plan.model import SecretRef, Volume
from gpuplan.render.commented import Because, Tree
from gpuplan.units import format_bytes, plural

CARDS = "cards"  # of a pod, that it claims


def accounts(scene: Scene) -> Iterator[KubernetesObject]:
    """Who its pods are: an account without rights, and the secrets that they read."""
    body: Tree = {"metadata": scene.metadata(), "automountServiceAccountToken": False}
    if scene.plan.network and scene.plan.network.pull_secrets:
        # Not of the pods: a Job's pods cannot change, its account can.
        body["imagePullSecrets"] = [{"name": n} for n in scene.plan.network.pull_secrets]
    yield scene.build("v1", "ServiceAccount", body)
    values = {s.key: SecretValue(s.name) for s in scene.workload.secrets if s.store == "config"}
    if values:
        body = {"metadata": scene.metadata(), "type": "Opaque", "stringData": values}
        yield scene.build("v1", "Secret", body)


def metadata(
    scene: Scene, annotations: Mapping[str, str] | None = None, role: str | None = None
) -> Tree:
    labels = naming.labels(scene.plan, scene.workload) | scene.selector
    if role is not None:
        labels[naming.ROLE_LABEL] = role
    return {"labels": labels, "annotations": dict(annotations) if annotations else None}


def spec(
    scene: Scene, launch: Launch, *, container: Tree, role: str | None = None, **more: Any
) -> Tree:
    """A pod spec. `container` adds to the one container, `more` to the pod; `role` is that of a pod
    that follows a leader."""
    index = naming.GROUP_INDEX if scene.grouped else naming.INDEX
    return {
        "serviceAccountName": scene.name,
        "automountServiceAccountToken": False,
        "enableServiceLinks": Because(
            value=False,
            reason="a Service called like the engine would set variables that the engine reads",
        ),
        "priorityClassName": naming.priority_name(scene.plan, scene.workload),
        **more,
        "nodeSelector": _where(scene) or None,
        "affinity": affinity(scene, role),
        "tolerations": nodes.tolerations(nodes.taints(scene.plan, scene.pool)),
        "securityContext": {"seccompProfile": _seccomp(scene)},
        "initContainers": [_before(scene, launch)] if launch.before else None,
        "containers": [
            {
                "name": "engine",
                "image": image(scene.workload.engine, scene.plan.network),
                "command": list(map(naming.plain, launch.command)) or None,
                "args": [naming.argument(a, index) for a in launch.arguments] or None,
                "env": environment(scene, launch) or None,
                **container,
                "resources": resources(scene),
                "securityContext": _rights(scene, launch),
                "volumeMounts": _mounts(scene, launch),
            }
        ],
        "volumes": _volumes(scene, launch),
        "resourceClaims": [
            {"name": name, "resourceClaimTemplateName": template}
            for name, template in _claims(scene).items()
        ]
        or None,
    }


def _claims(scene: Scene) -> dict[str, str]:
    """The names of what a pod claims, with the templates."""
    cards = {CARDS: scene.name} if scene.rdma_class else {}
    channel = {CHANNEL: template(scene)} if scene.workload.one_domain else {}
    return cards | channel


def devices(scene: Scene) -> Iterator[KubernetesObject]:
    """What a pod claims beside its resources: its part of its node's network cards, and a channel
    to the GPUs of other nodes."""
    yield from domain(scene)
    if scene.rdma_class is None:
        return
    count = nodes.rdma_devices(scene.plan, scene.pool, scene.workload.gpus_per_node)
    exactly = {
        "deviceClassName": scene.rdma_class,
        "allocationMode": "ExactCount",
        "count": Because(count, "the cards beside its GPUs"),
    }
    claim = {"devices": {"requests": [{"name": CARDS, "exactly": exactly}]}}
    body: Tree = {"metadata": scene.metadata(), "spec": {"spec": claim}}
    yield scene.build("resource.k8s.io/v1", "ResourceClaimTemplate", body)


def _where(scene: Scene) -> dict[str, str]:
    part = nodes.cut(scene.plan, scene.pool, scene.workload.partition)
    return nodes.selector(scene.plan, scene.pool) | part


def _before(scene: Scene, launch: Launch) -> Tree:
    """Its container has all of the engine's but the devices."""
    amounts = {k: v for k, v in resources(scene)["limits"].items() if "/" not in k}
    return {
        "name": "weights",
        "image": image(scene.workload.engine, scene.plan.network),
        "command": list(map(naming.plain, launch.before)),
        "env": environment(scene, launch) or None,
        "resources": {"requests": amounts, "limits": amounts},
        "securityContext": _rights(scene, launch),
        "volumeMounts": _mounts(scene, launch),
    }


def resources(scene: Scene) -> Tree:
    """Requests equal limits: the pod is Guaranteed, so its cores and memory are its own."""
    need, pool = scene.workload.resources, scene.pool
    threads = pool.threads_per_core
    cpus = f"of {threads} threads" if threads else "as one CPU each: their threads are not known"
    amounts: Tree = {
        "cpu": Because(
            str(need.cpu_cores * (threads or 1)),
            f"{plural(need.cpu_cores, 'physical core')} {cpus}",
        ),
        "memory": Because(
            naming.quantity(need.host_memory_bytes),
            f"{format_bytes(need.shared_memory_bytes)} of it is shared memory",
        ),
        "ephemeral-storage": naming.quantity(need.scratch_bytes) if need.scratch_bytes else None,
        scene.gpu_resource: str(scene.workload.gpus_per_node),
    }
    if scene.rdma_resource:
        amounts[scene.rdma_resource] = str(
            nodes.rdma_devices(scene.plan, pool, scene.workload.gpus_per_node)
        )
    limits = {k: v.value if isinstance(v, Because) else v for k, v in amounts.items()}
    names = _claims(scene)
    claims = {"claims": [{"name": name} for name in names]} if names else {}
    return {"requests": amounts, "limits": limits, **claims}


def environment(scene: Scene, launch: Launch) -> list[Tree]:
    """Variables, then those that are secrets."""
    secrets = {s.environment for s in scene.workload.secrets}
    values = contained(scene.workload, launch, scene.plan.network).items()
    plain = [{"name": k, "value": naming.plain(v)} for k, v in values if k not in secrets]
    # With the version that a server completes: without it, whoever applies it anew would differ.
    own = {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}
    address = [{"name": SIDE_HOST, "valueFrom": own}] if scene.split else []
    return plain + address + [_secret(scene, s) for s in scene.workload.secrets]


def _secret(scene: Scene, reference: SecretRef) -> Tree:
    name = scene.name if reference.store == "config" else reference.name
    source = {"secretKeyRef": {"name": name, "key": reference.key}}
    return {"name": reference.environment, "valueFrom": source}


def _seccomp(scene: Scene) -> Tree:
    maker = scene.pool.maker
    kind = maker.seccomp
    return {"type": Because(kind, maker.reason) if maker.reason else kind}


def _rights(scene: Scene, launch: Launch) -> Tree:
    """RDMA pins memory; the limit on that is lifted by a capability only. The root is read-only
    where it is known what the image writes."""
    capabilities: Tree = {"drop": ["ALL"]}
    if scene.pins_memory:
        capabilities["add"] = Because(["IPC_LOCK"], "RDMA registers pinned memory")
    elif scene.pool.maker.capabilities:
        capabilities["add"] = [*scene.pool.maker.capabilities]
    read_only = {"readOnlyRootFilesystem": True} if launch.read_only else {}
    return {"allowPrivilegeEscalation": False, **read_only, "capabilities": capabilities}


def _mounts(scene: Scene, launch: Launch) -> list[Tree]:
    need = scene.workload.resources
    mounts: list[Tree] = [
        {"name": v.name, "mountPath": v.mount_path} for v in scene.workload.volumes
    ]
    mounts.append({"name": "scratch", "mountPath": SCRATCH})
    if launch.read_only:
        mounts.append({"name": "tmp", "mountPath": TEMPORARY})
    if need.shared_memory_bytes:
        mounts.append({"name": "shm", "mountPath": "/dev/shm"})  # noqa: S108 - a path in the pod
    if launch.files:
        mounts.append({"name": "config", "mountPath": CONFIG, "readOnly": True})
    return mounts


def _volumes(scene: Scene, launch: Launch) -> list[Tree]:
    need = scene.workload.resources
    volumes: list[Tree] = [
        {"name": v.name, "persistentVolumeClaim": {"claimName": claim_name(scene, v)}}
        for v in scene.workload.volumes
        if not templated(scene, v)
    ]
    scratch = {"sizeLimit": naming.quantity(need.scratch_bytes)} if need.scratch_bytes else {}
    volumes.append({"name": "scratch", "emptyDir": scratch})
    if launch.read_only:
        volumes.append({"name": "tmp", "emptyDir": scratch})
    if need.shared_memory_bytes:
        size = naming.quantity(need.shared_memory_bytes)
        reason = "ranks exchange data through /dev/shm; the default of 64 MiB is too small"
        memory = {"medium": "Memory", "sizeLimit": Because(size, reason)}
        volumes.append({"name": "shm", "emptyDir": memory})
    if launch.files:
        volumes.append({"name": "config", "configMap": {"name": scene.name}})
    return volumes


def claim_name(scene: Scene, volume: Volume) -> str:
    return naming.claim(scene.name, volume.name, volume.generation)


def templated(scene: Scene, volume: Volume) -> bool:
    """Whether each pod has its own claim, made by a StatefulSet."""
    return volume.per_replica or (not volume.shared and scene.pods > 1)
