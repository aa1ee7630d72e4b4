"""A replica over several nodes in a cluster: a group of pods that comes and goes as one."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from gpuplan.backends.helm.lower import emit
from gpuplan.diagnostics import Severity
from gpuplan.engines.launch import First, Indexed, Launch
from gpuplan.engines.start import start
from gpuplan.kubernetes.lower import lower
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.kubernetes.scene import scene_of
from gpuplan.kubernetes.tenants import covered
from gpuplan.kubernetes.update.carry import carry_over
from gpuplan.plan.model import Component, Fabric, Parallelism, Plan, Volume, Workload
from gpuplan.plan.outside.network import Network
from gpuplan.render.commented import Because
from gpuplan.simulate.groups import pods as simulated
from gpuplan.simulate.kube import Object
from gpuplan.units import GB, GIB
from tests.support.samples import serving_plan, serving_workload, training_plan
from tests.support.stack_plans import lora_plan

IB = Fabric(kind="infiniband", bytes_per_s_per_gpu=50 * GB, resource="rdma/shared")
MODELS = Volume(
    name="models",
    size_bytes=800 * GIB,
    storage_class="rwx",
    shared=True,
    mount_path="/models",
    purpose="models",
)
PIPELINE = Parallelism(tensor_parallel_size=8, pipeline_parallel_size=2)
EXPERTS = Parallelism(tensor_parallel_size=2, data_parallel_size=12, expert_parallel_size=24)


def work(**changes: Any) -> Workload:
    values = {
        "parallelism": PIPELINE,
        "nodes_per_replica": 2,
        "gpus_per_node": 8,
        "replicas": 2,
        "volumes": (MODELS,),
    }
    return serving_workload(**(values | changes))


def plan(**changes: Any) -> Plan:
    return serving_plan(workloads=(work(**changes),), fabric=IB)


def one(of: Plan, kind: str) -> KubernetesObject:
    (item,) = (o for o in lower(of).objects if o.kind == kind and o.key == "assistant")
    return item


def groups(of: Plan) -> Any:
    return one(of, "LeaderWorkerSet").tree["spec"]


def container(template: Any) -> Any:
    (found,) = template["spec"]["containers"]
    return found


def texts(arguments: Iterator[Any] | tuple[Any, ...]) -> list[str]:
    """`<i>` for an index, `<first>` for the address of the first."""
    found = []
    for item in arguments:
        argument = item.value if isinstance(item, Because) else item
        if isinstance(argument, Indexed):
            argument = f"{argument.before}<i*{argument.times}>{argument.after}"
        elif isinstance(argument, First):
            argument = f"{argument.before}<first>{argument.after}"
        found.append(str(argument))
    return found


def launch(**changes: Any) -> Launch:
    made = start(work(**changes), "")
    assert isinstance(made, Launch)
    return made


def test_a_pipeline_is_one_engine_whose_other_nodes_have_no_server() -> None:
    made = launch()
    leads, follows = texts(made.arguments), texts(made.others)
    shared = {
        "--tensor-parallel-size=8",
        "--pipeline-parallel-size=2",
        "--distributed-executor-backend=mp",
        "--nnodes=2",
        "--master-addr=<first>",
    }
    assert shared <= set(leads)
    assert shared <= set(follows)
    assert "--node-rank=0" in leads
    assert "--headless" not in leads
    assert {"--headless", "--node-rank=<i*1>"} <= set(follows)


def test_data_parallel_groups_are_engines_of_each_node() -> None:
    made = launch(parallelism=EXPERTS, nodes_per_replica=3)
    leads, follows = texts(made.arguments), texts(made.others)
    shared = {
        "--data-parallel-size=12",
        "--data-parallel-size-local=4",
        "--data-parallel-address=<first>",
        "--enable-expert-parallel",
    }
    assert shared <= set(leads)
    assert shared <= set(follows)
    assert not [a for a in (*leads, *follows) if a.startswith("--nnodes")]
    assert {"--headless", "--data-parallel-start-rank=<i*4>"} <= set(follows)


def test_sglang_starts_the_same_on_every_node_but_for_its_rank() -> None:
    of = work()
    made = launch(engine=replace(of.engine, name="sglang"))
    leads, follows = texts(made.arguments), texts(made.others)
    assert {"--tp-size=8", "--pp-size=2", "--nnodes=2", "--dist-init-addr=<first>:20000"} <= set(
        leads
    )
    assert [a for a in leads if a not in follows] == ["--node-rank=0"]
    assert [a for a in follows if a not in leads] == ["--node-rank=<i*1>"]


def test_on_one_node_nothing_is_said_of_others() -> None:
    made = start(serving_workload(), "")
    assert isinstance(made, Launch)
    assert made.others == ()
    assert not [a for a in texts(made.arguments) if "nnodes" in a or "headless" in a]


def test_a_group_has_a_pod_on_each_node_and_comes_anew_as_one() -> None:
    spec = groups(plan())
    template = spec["leaderWorkerTemplate"]
    assert (spec["replicas"], template["size"]) == (2, 2)
    assert template["restartPolicy"] == "RecreateGroupOnPodRestart"
    for name in ("leaderTemplate", "workerTemplate"):
        limits = container(template[name])["resources"]["limits"]
        assert (limits["nvidia.com/gpu"], limits["rdma/shared"]) == ("8", "8")
        assert container(template[name])["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]


def test_only_the_leader_is_asked_and_listens() -> None:
    template = groups(plan())["leaderWorkerTemplate"]
    leader, worker = (container(template[f"{n}Template"]) for n in ("leader", "worker"))
    assert leader["readinessProbe"]["httpGet"]["path"] == "/health"
    assert leader["ports"]
    assert not {"ports", "readinessProbe", "livenessProbe", "startupProbe"} & worker.keys()
    chosen = one(plan(), "Service").tree["spec"]["selector"]
    for name, found in (("leader", True), ("worker", False)):
        labels = template[f"{name}Template"]["metadata"]["labels"]
        assert (chosen.items() <= labels.items()) is found


def test_the_controllers_own_service_has_another_name() -> None:
    """It makes a headless one of the set's name, by which the pods find their leader."""
    item = one(plan(), "LeaderWorkerSet")
    assert item.name != one(plan(), "Service").name
    assert len(f"{item.name}-10-10") <= 63


def test_ranks_may_talk_to_each_other_on_every_port() -> None:
    spec = one(plan(), "NetworkPolicy").tree["spec"]
    own = {"podSelector": spec["podSelector"]}
    assert {"from": [own]} in spec["ingress"]
    assert {"to": [own]} in spec["egress"]
    for name in ("leaderTemplate", "workerTemplate"):
        labels = groups(plan())["leaderWorkerTemplate"][name]["metadata"]["labels"]
        assert spec["podSelector"]["matchLabels"].items() <= labels.items()
        budget = one(plan(), "PodDisruptionBudget").tree["spec"]
        assert budget["selector"]["matchLabels"].items() <= labels.items()


def test_the_address_of_the_leader_is_the_clusters_to_fill_in() -> None:
    template = groups(plan())["leaderWorkerTemplate"]
    worker = container(template["workerTemplate"])["args"]
    assert "--master-addr=$(LWS_LEADER_ADDRESS)" in worker
    assert "--node-rank=$(LWS_WORKER_INDEX)" in worker
    odd = work()
    assert odd.model is not None
    hostile = replace(odd.model, identifier="org/$(LWS_LEADER_ADDRESS)")
    spec = groups(serving_plan(workloads=(replace(odd, model=hostile),), fabric=IB))
    args = container(spec["leaderWorkerTemplate"]["leaderTemplate"])["args"]
    assert args[0] == "org/$$(LWS_LEADER_ADDRESS)"


@pytest.mark.parametrize("index", [1, 2])
def test_a_shell_counts_the_groups_before_a_node(index: int) -> None:
    spec = groups(plan(parallelism=EXPERTS, nodes_per_replica=3))
    worker = container(spec["leaderWorkerTemplate"]["workerTemplate"])
    command = [part.replace("$$", "$") for part in worker["command"]]
    assert command[4:] == ["vllm", "serve"]
    shown = subprocess.run(
        [*command[:4], "printf", "%s\n", "a b", "$HOME"],
        env={"LWS_WORKER_INDEX": str(index), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert shown.stdout.splitlines() == [
        "a b",
        "$HOME",
        f"--data-parallel-start-rank={4 * index}",
    ]


def test_a_volume_of_one_node_is_refused() -> None:
    own = replace(MODELS, shared=False, per_replica=True)
    found = [d for d in lower(plan(volumes=(own,))).diagnostics if d.severity is Severity.ERROR]
    assert ["one node only" in d.message for d in found] == [True]


def test_a_fabric_without_a_device_for_pods_is_refused() -> None:
    bare = replace(IB, resource=None)
    found = lower(replace(plan(), fabric=bare)).diagnostics
    assert any("get no infiniband device" in d.message for d in found)


def test_pods_on_paper_are_those_that_the_controller_makes() -> None:
    made = simulated([Object(one(plan(), "LeaderWorkerSet").tree)])
    names = [p.tree["metadata"]["name"] for p in made]
    set_name = one(plan(), "LeaderWorkerSet").name
    assert names == [f"{set_name}-{n}" for n in ("0", "0-1", "1", "1-1")]
    told = {e["name"]: e.get("value") for e in container(made[3].tree)["env"]}
    assert told["LWS_WORKER_INDEX"] == "1"
    assert str(told["LWS_LEADER_ADDRESS"]).startswith(f"{set_name}-1.{set_name}.")


LWS = Component(
    name="lws",
    version="0.10.0",
    app_version="v0.10.0",
    repository="oci://registry.k8s.io/lws/charts",
    chart="lws",
    digest=None,
    namespace="lws-system",
    kubernetes_minimum="1.27",
    driver=None,
    source="sample",
)


def test_its_chart_takes_images_from_mirrors_and_nothing_else() -> None:
    bare = emit(replace(plan(), components=(LWS,)))
    (values,) = (f for f in bare.files if f.path.endswith("values.yaml"))
    assert values.text.splitlines()[-1] == "{}"
    mirrored = Network(images=(("registry.k8s.io", "mirror.example/k8s"),), pull_secrets=("own",))
    shown = emit(replace(plan(), components=(LWS,), network=mirrored))
    (values,) = (f for f in shown.files if f.path.endswith("values.yaml"))
    assert "mirror.example/k8s/lws/lws" in values.text
    assert "name: own" in values.text


# --- queues -------------------------------------------------------------------------------------

QUEUE = "kueue.x-k8s.io/queue-name"


def queued(of: Plan) -> Plan:
    return replace(of, queue="gpus")


def test_a_group_is_admitted_whole_by_a_queue_of_its_tenant() -> None:
    of = queued(plan())
    lowered = lower(of)
    (queue,) = (o for o in lowered.objects if o.kind == "LocalQueue")
    group = one(of, "LeaderWorkerSet")
    assert queue.tree["spec"] == {"clusterQueue": "gpus"}
    assert group.tree["metadata"]["labels"][QUEUE] == queue.name
    assert group.namespace == queue.namespace
    assert queue.identity in group.depends_on
    assert not [d for d in lowered.diagnostics if "one by one" in d.message]
    assert [d for d in lower(plan()).diagnostics if "one by one" in d.message]


def test_a_run_over_nodes_is_admitted_whole_and_one_on_a_node_needs_no_queue() -> None:
    (job,) = (o for o in lower(queued(training_plan())).objects if o.kind == "Job")
    assert job.tree["metadata"]["labels"][QUEUE] == "gpus"
    assert QUEUE not in job.tree["spec"]["template"]["metadata"]["labels"]
    alone = lower(queued(lora_plan())).objects
    assert not [o for o in alone if o.kind == "LocalQueue"]
    assert not [o for o in alone if QUEUE in o.tree["metadata"].get("labels", {})]
    serving = lower(queued(serving_plan())).objects
    assert not [o for o in serving if o.kind == "LocalQueue"]


def test_a_queue_has_to_cover_all_that_pods_ask_for() -> None:
    of = queued(plan())
    limits = container(groups(of)["leaderWorkerTemplate"]["workerTemplate"])["resources"]["limits"]
    assert set(covered((scene_of(of, of.workloads[0]),))) == set(limits)
    assert covered((scene_of(plan(), plan().workloads[0]),)) == ()


def test_what_runs_keeps_its_queue() -> None:
    """A run that changes its queue is a new one; a service has to go first."""
    before, after = training_plan(), queued(training_plan())
    now, said = carry_over(before, after)
    assert [w.generation for w in now.workloads] == [2]
    assert [d.rule for d in said] == ["GP022"]
    _, refused = carry_over(plan(), queued(plan()))
    assert [d.rule for d in refused if d.severity is Severity.ERROR] == ["GP020"]


def seeks(of: Plan, kind: str) -> list[Any]:
    """What the pods of the plan's first workload seek: of a group, leader and workers."""
    (item,) = (o for o in lower(of).objects if o.kind == kind)
    spec = item.tree["spec"]
    pods = [spec] if kind == "Job" else [*spec["leaderWorkerTemplate"].values()]
    templates = [p.get("template", p) for p in pods if isinstance(p, dict)]
    found = [t["spec"].get("affinity", {}).get("podAffinity") for t in templates]
    return [f["preferredDuringSchedulingIgnoredDuringExecution"] for f in found if f]


@pytest.mark.parametrize(
    ("of", "kind", "keys"),
    [
        (plan(), "LeaderWorkerSet", ["leaderworkerset.sigs.k8s.io/group-index"]),
        (training_plan(), "Job", None),
    ],
)
def test_pods_that_talk_over_the_fabric_seek_the_nodes_of_one_switch(
    of: Plan, kind: str, keys: list[str] | None
) -> None:
    named = replace(of, fabric=replace(IB, switch_label="example.com/leaf"))
    sought = seeks(named, kind)
    assert len(sought) == (2 if keys else 1)
    for (term,) in sought:
        found = term["podAffinityTerm"]
        assert found["topologyKey"] == "example.com/leaf"
        assert found["labelSelector"]["matchLabels"] == scene_of(of, of.workloads[0]).selector
        assert found.get("matchLabelKeys") == keys
    assert not seeks(of, kind)


def test_pods_that_count_on_one_switch_and_are_not_kept_there_are_named() -> None:
    def said(**fields: Any) -> list[str]:
        found = lower(replace(training_plan(), fabric=replace(IB, **fields))).diagnostics
        return [d.message for d in found if "nodes of one switch" in d.message]

    (nodes,) = {w.nodes_per_replica for w in training_plan().workloads}
    assert said(oversubscription=4.0, nodes_per_switch=nodes)
    assert not said(oversubscription=4.0, nodes_per_switch=nodes, switch_label="example.com/leaf")
    assert not said(oversubscription=4.0, nodes_per_switch=nodes - 1 or None)
    assert not said(nodes_per_switch=nodes)
