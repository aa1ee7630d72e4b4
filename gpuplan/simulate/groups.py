"""The pods that LeaderWorkerSet's controller makes, which no bare control plane has, and the Jobs
of CronJobs, whose time has not come.

Source: kubernetes-sigs/lws at v0.10.0: a leader for each group and its workers, with these labels
and variables (site/content/en/docs/reference/labels-annotations-and-environment-variables.md).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from gpuplan.kubernetes.runs import gangs
from gpuplan.render.commented import Tree
from gpuplan.simulate.kube import Object

KIND = "LeaderWorkerSet"
KINDS = (KIND, gangs.KIND)  # whose operators are not there: what they would make is made here
LABELS = "leaderworkerset.sigs.k8s.io"


def pods(objects: Iterable[Object]) -> list[Object]:
    return [pod for o in objects if o.tree["kind"] == KIND for pod in _pods(o.tree)]


def started(objects: Iterable[Object]) -> list[Object]:
    """A Job for each CronJob that is not held, as `kubectl create job --from` makes it; and that of
    each JobSet, as its controller does."""
    trees = [o.tree for o in objects]
    recurring = (tree for tree in trees if tree["kind"] == "CronJob")
    made = [_job(tree) for tree in recurring if not tree["spec"].get("suspend")]
    return made + [_child(tree) for tree in trees if tree["kind"] == gangs.KIND]


def _child(tree: Tree) -> Object:
    """Of a JobSet with one group of pods. Source: pkg/controllers/jobset_controller.go of
    kubernetes-sigs/jobset at v0.12.0."""
    (group,) = tree["spec"]["replicatedJobs"]
    own, spec = tree["metadata"], group["template"]["spec"]
    name = gangs.child(own["name"])
    metadata = {**group["template"]["metadata"], "name": name, "namespace": own["namespace"]}
    pod = {**spec["template"]["spec"], "subdomain": tree["spec"]["network"]["subdomain"]}
    spec = {**spec, "template": {**spec["template"], "spec": pod}}
    return Object({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec})


def _job(tree: Tree) -> Object:
    template = tree["spec"]["jobTemplate"]
    own = {key: tree["metadata"][key] for key in ("name", "namespace")}
    metadata = {**template["metadata"], **own}
    body = {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata}
    return Object({**body, "spec": template["spec"]})


def _pods(tree: Tree) -> Iterator[Object]:
    spec = tree["spec"]
    template = spec["leaderWorkerTemplate"]
    for group in range(spec["replicas"]):
        for index in range(template["size"]):
            role = "workerTemplate" if index else "leaderTemplate"
            yield _pod(tree, template[role], group, index)


def _pod(tree: Tree, template: Tree, group: int, index: int) -> Object:
    name, namespace = tree["metadata"]["name"], tree["metadata"]["namespace"]
    leader, size = f"{name}-{group}", tree["spec"]["leaderWorkerTemplate"]["size"]
    own = {"name": name, "group-index": str(group), "worker-index": str(index)}
    variables = {
        "LWS_LEADER_ADDRESS": f"{leader}.{name}.{namespace}",
        "LWS_GROUP_SIZE": str(size),
        "LWS_WORKER_INDEX": str(index),
    }
    env = [{"name": key, "value": value} for key, value in variables.items()]
    containers = [{**c, "env": [*env, *c.get("env", ())]} for c in template["spec"]["containers"]]
    labels = {f"{LABELS}/{key}": value for key, value in own.items()}
    metadata = {
        "name": f"{leader}-{index}" if index else leader,
        "namespace": namespace,
        "labels": {**template["metadata"]["labels"], **labels},
    }
    spec = {**template["spec"], "containers": containers, "subdomain": name}
    return Object({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
