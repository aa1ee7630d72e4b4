"""What a plan becomes in a cluster: resources, rights, names, texts that stay data."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from ipaddress import ip_address, ip_network
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from ruamel.yaml import YAML

from gpuplan.diagnostics import Severity
from gpuplan.kubernetes import mig
from gpuplan.kubernetes.lower import Lowered, lower
from gpuplan.kubernetes.naming import plain, quantity
from gpuplan.kubernetes.objects import KubernetesObject, SecretValue, resolve
from gpuplan.plan.model import (
    Engine,
    Evidence,
    Fabric,
    GpuLayout,
    Input,
    Metric,
    MigInstance,
    NodeLayout,
    Plan,
    Tenant,
    Workload,
)
from gpuplan.simulate.nodes import labels_of
from gpuplan.units import GB, GIB, MB, format_bytes
from tests.support.samples import (
    HOSTILE,
    estimate,
    serving_plan,
    serving_pool,
    serving_workload,
    training_plan,
)
from tests.support.stack_plans import (
    KUBERNETES,
    SEVENTHS,
    SLICES,
    batch_plan,
    cut_pool,
    hostile_model_plan,
    hostile_plan,
    image_plan,
    lora_plan,
    mixture_plan,
    notebook_plan,
    renamed_plan,
    sglang_plan,
)

CONTROLLERS = ("Deployment", "StatefulSet", "Job")
SECRETS = {"hfToken": "s3cret"}
Tree = dict[str, Any]

every_plan = pytest.mark.parametrize("plan", [f() for f in KUBERNETES.values()], ids=KUBERNETES)


def one(plan: Plan, kind: str, key: str | None = None) -> KubernetesObject:
    found = [o for o in lower(plan).objects if o.kind == kind and key in (None, o.key)]
    assert len(found) == 1, [o.identity for o in found]
    return found[0]


def controllers(plan: Plan) -> list[KubernetesObject]:
    return [o for o in lower(plan).objects if o.kind in CONTROLLERS]


def pod(item: KubernetesObject) -> Tree:
    spec: Tree = item.tree["spec"]["template"]["spec"]
    return spec


def container(item: KubernetesObject) -> Tree:
    (found,) = pod(item)["containers"]
    return dict(found)


def environment(item: KubernetesObject) -> dict[str, Any]:
    return {e["name"]: e.get("value", e.get("valueFrom")) for e in container(item)["env"]}


def messages(lowered: Lowered, severity: Severity = Severity.ERROR) -> list[str]:
    return [d.message for d in lowered.diagnostics if d.severity is severity]


def leaves(node: Any) -> Iterator[Any]:
    if isinstance(node, dict):
        for value in node.values():
            yield from leaves(value)
    elif isinstance(node, list):
        for value in node:
            yield from leaves(value)
    else:
        yield node


def expand(text: str, variables: dict[str, str]) -> str:
    """What Kubernetes makes of a command, an argument or an environment value.
    Source: kubernetes third_party/forked/golang/expansion/expand.go."""
    result, at = "", 0
    while at < len(text):
        if text[at] != "$" or at + 1 == len(text):
            result, at = result + text[at], at + 1
        elif text[at + 1] == "$":
            result, at = result + "$", at + 2
        elif text[at + 1] == "(" and ")" in text[at:]:
            end = text.index(")", at)
            name = text[at + 2 : end]
            result += variables.get(name, text[at : end + 1])
            at = end + 1
        else:
            result, at = result + text[at : at + 2], at + 2
    return result


# --- every plan --------------------------------------------------------------------------------


@every_plan
def test_a_sample_plan_is_expressed_whole(plan: Plan) -> None:
    assert messages(lower(plan)) == []


@every_plan
def test_pods_are_guaranteed_what_they_ask_for(plan: Plan) -> None:
    for item in controllers(plan):
        resources = container(item)["resources"]
        assert resources["requests"] == resources["limits"]
        assert {"cpu", "memory"} <= set(resources["limits"])
        assert any(name.startswith("nvidia.com/") for name in resources["limits"])


@every_plan
def test_pods_have_no_rights_and_no_token(plan: Plan) -> None:
    for item in controllers(plan):
        assert pod(item)["automountServiceAccountToken"] is False
        assert pod(item)["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        rights = container(item)["securityContext"]
        assert rights["allowPrivilegeEscalation"] is False
        assert rights["capabilities"]["drop"] == ["ALL"]
        assert "privileged" not in rights


def test_the_root_of_a_server_is_read_only_where_it_is_known_what_it_writes() -> None:
    for item in controllers(serving_plan()):
        rights, mounts = container(item)["securityContext"], container(item)["volumeMounts"]
        assert rights["readOnlyRootFilesystem"] is True
        assert {"/tmp", "/scratch"} <= {m["mountPath"] for m in mounts}
        claims = item.tree["spec"].get("volumeClaimTemplates", ())
        there = {v["name"] for v in pod(item)["volumes"]} | {c["metadata"]["name"] for c in claims}
        assert {m["name"] for m in mounts} <= there
        values = {e["name"]: e.get("value") for e in container(item)["env"]}
        assert values["HOME"] == "/scratch"


@every_plan
def test_needs_come_before_who_needs_them(plan: Plan) -> None:
    seen: set[str] = set()
    for item in lower(plan).objects:
        assert set(item.depends_on) <= seen, item.identity
        seen.add(item.identity)


@every_plan
def test_no_pod_runs_without_its_policies(plan: Plan) -> None:
    for item in controllers(plan):
        policies = {i for i in item.depends_on if i.startswith("NetworkPolicy/")}
        assert len(policies) == 2


@every_plan
def test_a_quota_admits_the_planned_pods_and_helpers_without_gpus(plan: Plan) -> None:
    asked: dict[str, int] = {}
    for item in controllers(plan):
        spec = item.tree["spec"]
        count = spec.get("replicas", spec.get("completions"))
        for name, value in container(item)["resources"]["requests"].items():
            if not name.endswith("storage") and not name.startswith("rdma"):
                asked[f"requests.{name}"] = asked.get(f"requests.{name}", 0) + count * number(value)
    (quota,) = (o.tree["spec"]["hard"] for o in lower(plan).objects if o.kind == "ResourceQuota")
    assert all(asked[k] <= number(quota[k]) for k in asked)
    assert number(quota["requests.cpu"]) - asked["requests.cpu"] == 8
    assert number(quota["requests.memory"]) - asked["requests.memory"] == 32 * GIB
    assert not [k for k in quota if "gpu" in k and k not in asked], "GPUs are the planned ones'"
    (limits,) = (o.tree["spec"] for o in lower(plan).objects if o.kind == "LimitRange")
    (unsaid,) = limits["limits"]
    assert unsaid["type"] == "Container"
    assert {f"requests.{k}" for k in unsaid["defaultRequest"]} == {
        "requests.cpu",
        "requests.memory",
    }, "a pod that does not say what the quota counts is refused"


def number(text: str) -> int:
    factor = {"Gi": GIB, "Ti": 1024 * GIB}.get(text[-2:])
    return int(text[:-2]) * factor if factor else int(text)


@every_plan
def test_names_and_labels_are_legal(plan: Plan) -> None:
    name = re.compile(r"[a-z0-9]([-a-z0-9.]*[a-z0-9])?")
    label = re.compile(r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?")
    for item in lower(plan).objects:
        assert name.fullmatch(item.name)
        labels = item.tree["metadata"].get("labels", {})
        assert all(label.fullmatch(v) and len(v) <= 63 for v in labels.values())


@every_plan
def test_secrets_are_references_to_the_configuration(plan: Plan) -> None:
    for item in lower(plan).objects:
        if item.kind == "Secret":
            values = item.tree["stringData"].values()
            assert all(isinstance(v, SecretValue) for v in values)
            assert resolve(item.tree, SECRETS)["stringData"] == {"HF_TOKEN": "s3cret"}
        assert "s3cret" not in map(str, leaves(item.tree))


@every_plan
def test_data_outlives_the_stack(plan: Plan) -> None:
    objects = lower(plan).objects
    claims = [o for o in objects if o.kind == "PersistentVolumeClaim"]
    assert all(o.protect and o.retain_on_delete for o in claims)
    # A namespace takes everything in it along, also what is to be kept.
    volumes = any(w.volumes for w in plan.workloads)
    space = one(plan, "Namespace")
    assert (space.protect, space.retain_on_delete) == (volumes, volumes)


# --- text that people wrote --------------------------------------------------------------------


@given(st.text(max_size=40) | st.text("$()AB", max_size=12))
def test_text_reaches_the_program_as_it_was_written(text: str) -> None:
    assert expand(plain(text), {"A": "x", "AB": "y"}) == text


def test_hostile_text_stays_data() -> None:
    item = one(hostile_plan(), "Deployment")
    variables = {"HOME": "/root", "y": "z"}
    assert [expand(c, variables) for c in container(item)["command"]] == [
        "python3",
        "-c",
        HOSTILE,
    ]
    assert expand(environment(item)["NOTE"], variables) == HOSTILE
    assert item.tree["metadata"]["annotations"]["kubernetes.io/description"] == HOSTILE


def test_a_hostile_model_name_is_one_argument() -> None:
    arguments = container(one(hostile_model_plan(), "Deployment"))["args"]
    assert expand(arguments[0], {"HOME": "/root"}) == HOSTILE
    assert expand(arguments[1], {"HOME": "/root"}) == f"--revision={HOSTILE}"
    assert len(arguments) == len(container(one(serving_plan(), "Deployment"))["args"])


def test_a_configuration_file_holds_hostile_names_as_data() -> None:
    (file,) = one(lora_plan(), "ConfigMap").files()
    config = YAML(typ="safe", pure=True).load(file.text)
    assert config["base_model"] == HOSTILE
    assert config["datasets"] == [{"path": HOSTILE, "type": "chat_template"}]
    # Tokenizers of base models have no template, and `tokenizer_default` refuses those.
    assert config["chat_template"] == "tokenizer_default_fallback_chatml"


# --- serving -----------------------------------------------------------------------------------


def test_engine_arguments_are_the_plan() -> None:
    item = one(serving_plan(), "Deployment")
    assert container(item)["command"] == ["vllm", "serve"]
    assert container(item)["args"] == [
        "meta-llama/Llama-3.3-70B-Instruct",
        "--revision=6f6073b423013f6a7d4d9f39144961bfbfbc386b",
        "--host=0.0.0.0",
        "--port=8000",
        "--quantization=fp8",
        "--tensor-parallel-size=2",
        "--max-model-len=8192",
        "--max-num-seqs=128",
        "--max-num-batched-tokens=8192",
        "--gpu-memory-utilization=0.9",
        "--kv-cache-dtype=auto",
    ]


def test_experts_are_spread_by_vllm_and_by_sglang() -> None:
    vllm = container(one(mixture_plan(), "StatefulSet"))["args"]
    assert {"--data-parallel-size=8", "--enable-expert-parallel"} <= set(vllm)
    plan = mixture_plan()
    sglang = sglang_plan().workloads[0].engine
    changed = replace(plan, workloads=(replace(plan.workloads[0], engine=sglang),))
    arguments = container(one(changed, "StatefulSet"))["args"]
    expected = {"--tp-size=8", "--dp-size=8", "--enable-dp-attention", "--ep-size=8"}
    assert expected <= set(arguments)


def test_an_image_service_is_bounded_by_what_memory_was_sized_for() -> None:
    item = one(image_plan(), "Deployment")
    assert "--max-generated-image-size=1048576" in container(item)["args"]
    assert container(item)["image"] == "vllm/vllm-omni:v0.14.0@sha256:" + "a" * 64


@pytest.mark.parametrize("replicas", [1, 2])
def test_a_rollout_needs_no_spare_gpu(replicas: int) -> None:
    """Nor makes it a pod that the quota refuses: before it is tried again, the only one is away as
    long as it took to end."""
    plan = serving_plan()
    work = replace(plan.workloads[0], replicas=replicas)
    strategy = one(replace(plan, workloads=(work,)), "Deployment").tree["spec"]["strategy"]
    in_turn = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1}}
    assert strategy == (in_turn if replicas > 1 else {"type": "Recreate"})


def published(size: float) -> Plan:
    """A server of fp8 weights (72 GiB on its GPUs) whose checkpoint has another size."""
    fact = Evidence(
        quantity="assistant.checkpoint_bytes",
        value=size,
        unit="B",
        formula="2 * parameters",
        source="sample",
        inputs=(Input(name="parameters", value=size / 2, unit="1", source="sample"),),
    )
    return serving_plan(evidence=(fact,))


@pytest.mark.parametrize("size", [141 * GB, 1400 * GB])
def test_a_first_start_may_download_and_read_what_is_published(size: int) -> None:
    item = one(published(size), "Deployment")
    probe = container(item)["startupProbe"]
    both = 2 * size / (100 * MB)
    assert both + 600 <= probe["failureThreshold"] * probe["periodSeconds"] < both + 700
    reason = next(r for path, r in item.comments if path[-1] == "failureThreshold")
    assert format_bytes(size) in reason


def test_loading_is_bounded_where_no_checkpoint_is_known() -> None:
    item = one(serving_plan(), "Deployment")
    probe = container(item)["startupProbe"]
    assert probe["failureThreshold"] * probe["periodSeconds"] > 2 * 72 * GIB / (100 * MB)
    reason = next(r for path, r in item.comments if path[-1] == "failureThreshold")
    assert "72 GiB" in reason


def test_a_rollout_waits_for_the_image_and_the_node_too() -> None:
    item = one(serving_plan(), "Deployment")
    probe = container(item)["startupProbe"]
    started = probe["failureThreshold"] * probe["periodSeconds"]
    deadline = item.tree["spec"]["progressDeadlineSeconds"]
    assert deadline == started + 1800
    assert item.timeout_seconds == deadline  # its replicas come at once


def test_an_update_waits_for_one_pod_after_the_other_but_not_for_days() -> None:
    one_pod, three, many = (
        one(serving_plan(workloads=(serving_workload(replicas=n),)), "Deployment")
        for n in (1, 3, 200)
    )
    assert one_pod.timeout_seconds == three.timeout_seconds == many.timeout_seconds
    waits = [i.update_seconds for i in (one_pod, three, many)]
    assert waits == [one_pod.timeout_seconds, waits[1], 6 * 3600]
    assert waits[0] < waits[1] < waits[2]


def test_a_single_replica_says_that_an_update_is_an_outage() -> None:
    def reason(replicas: int) -> str:
        plan = serving_plan(workloads=(serving_workload(replicas=replicas),))
        comments = one(plan, "Deployment").comments
        return next(text for path, text in comments if "strategy" in path)

    assert "outage" in reason(1)
    assert "outage" not in reason(2)


def answering(tokens: float, **engine: str) -> Plan:
    """A server whose long answers have so many tokens, with another release of its engine."""
    long = Evidence(
        quantity="assistant.load.output_tokens.p95",
        value=tokens,
        unit="1",
        formula="tokens",
        source="manifest: workloads.assistant.load.output_tokens.p95",
    )
    work = serving_workload()
    work = replace(work, engine=replace(work.engine, **engine))
    return serving_plan(workloads=(work,), evidence=(long,))


def going(plan: Plan) -> tuple[int, int | None, int]:
    """Seconds of a pod that goes: until it is told, for its requests by the engine, in all."""
    item = one(plan, "Deployment")
    flags = dict(a[2:].split("=", 1) for a in container(item)["args"] if "=" in a)
    own = flags.get("shutdown-timeout")
    waits = container(item)["lifecycle"]["preStop"]["sleep"]["seconds"]
    return waits, int(own) if own else None, pod(item)["terminationGracePeriodSeconds"]


def test_an_engine_that_is_told_to_end_finishes_its_longest_answers() -> None:
    """vLLM drops them at SIGTERM unless told for how long it may go on."""
    # 2,000 tokens at 31.25 ms and 0.5 s before the first, the upper ends of the intervals
    assert going(answering(2000, version="0.27.1")) == (15, 63, 15 + 63 + 30)
    assert going(answering(4000, version="v0.19.0"))[1] == 126
    assert going(answering(100, version="0.27.1"))[1] == 30, "Kubernetes' own"
    item = one(answering(100_000, version="0.27.1"), "Deployment")
    (reason,) = (why for _, why in item.comments if "100,000 tokens" in why)
    assert "longer than 600 s" in reason
    assert going(answering(100_000, version="0.27.1")) == (15, 600, 645)


@pytest.mark.parametrize("engine", [{"version": "0.18.1"}, {"version": "nightly"}])
def test_an_engine_without_that_setting_is_told_when_they_are_finished(
    engine: dict[str, str],
) -> None:
    assert going(answering(2000, **engine)) == (15 + 63, None, 15 + 63 + 30)


def test_an_image_service_drains_by_its_pictures() -> None:
    (work,) = image_plan().workloads
    latency = Metric(name="request_latency", unit="s", estimate=estimate(40.0))
    plan = replace(image_plan(), workloads=(replace(work, metrics=(latency,)),))
    for each, seconds in ((image_plan(), 60), (plan, 50)):
        item = one(each, "Deployment")
        assert going(each) == (15 + seconds, None, 15 + seconds + 30)
        assert not [reason for _, reason in item.comments if "token" in reason]


def test_one_replica_needs_no_disruption_budget() -> None:
    kinds = [o.kind for o in lower(image_plan()).objects]
    assert "PodDisruptionBudget" not in kinds
    budget = one(serving_plan(), "PodDisruptionBudget").tree["spec"]
    assert budget["maxUnavailable"] == 1
    # Else replicas that cannot start hold the drain of their node for ever.
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_replicas_with_volumes_of_their_own_are_a_stateful_set() -> None:
    item = one(mixture_plan(), "StatefulSet")
    (template,) = item.tree["spec"]["volumeClaimTemplates"]
    assert template["spec"]["accessModes"] == ["ReadWriteOnce"]
    assert not [v for v in pod(item)["volumes"] if "persistentVolumeClaim" in v]


def test_a_shared_volume_is_one_claim_for_all() -> None:
    claim = one(serving_plan(), "PersistentVolumeClaim")
    assert claim.tree["spec"]["accessModes"] == ["ReadWriteMany"]
    assert "storageClassName" not in claim.tree["spec"]


def test_threads_of_a_core_make_cpus() -> None:
    for threads, cpus in ((None, "12"), (1, "12"), (2, "24")):
        plan = serving_plan(node_pools=(serving_pool(threads_per_core=threads),))
        assert container(one(plan, "Deployment"))["resources"]["limits"]["cpu"] == cpus


def test_nodes_are_selected_by_what_is_known_of_them() -> None:
    product = {"nvidia.com/gpu.product": "NVIDIA-H100-80GB-HBM3"}
    named = pod(one(serving_plan(), "Deployment"))["nodeSelector"]
    # another stack of the cluster may have a pool of that name
    held = {"gpuplan.dev/stack": "chat", "gpuplan.dev/pool": "h100-sxm-80gb"}
    assert named == {**held, **product}
    assert pod(one(image_plan(), "Deployment"))["nodeSelector"] == product


PRODUCTS = st.sampled_from(["NVIDIA-L4", "NVIDIA-A10G", ""])
TYPES = st.sampled_from([None, "g6.xlarge", "g6.48xlarge"])
SHAPES = st.tuples(PRODUCTS, TYPES, st.booleans())


@given(shapes=st.lists(SHAPES, min_size=1, max_size=4))
def test_pods_run_on_the_nodes_they_were_sized_for_and_on_no_others(
    shapes: list[tuple[str, str | None, bool]],
) -> None:
    pools = [
        serving_pool(
            name=f"pool-{n}",
            gpu_product=product,
            labelled_type=None if known else kind,
            node_names=(f"gpu-{n}",) if known else (),
        )
        for n, (product, kind, known) in enumerate(shapes)
    ]
    works = [
        replace(serving_workload(), name=f"work-{n}", node_pool=p.name) for n, p in enumerate(pools)
    ]
    plan = serving_plan(node_pools=tuple(pools), workloads=tuple(works))
    patched = {
        labels["gpuplan.dev/pool"]: labels
        for o in lower(plan).objects
        if o.kind == "Node" and (labels := o.tree["metadata"].get("labels"))
    }
    labels = {p.name: labels_of(plan, p) | patched.get(p.name, {}) for p in pools}
    assert patched.keys() == {p.name for p in pools if p.node_names}
    for work, own in zip(works, pools, strict=True):
        selected = pod(one(plan, "Deployment", work.name)).get("nodeSelector") or {}
        holding = [p.name for p in pools if selected.items() <= labels[p.name].items()]
        assert holding == [own.name]


def test_isolated_pods_share_no_node_with_other_tenants() -> None:
    assert "affinity" not in pod(one(serving_plan(), "Deployment"))
    rule = pod(one(image_plan(), "Deployment"))["affinity"]["podAntiAffinity"]
    (term,) = rule["requiredDuringSchedulingIgnoredDuringExecution"]
    assert term["topologyKey"] == "kubernetes.io/hostname"
    assert term["namespaceSelector"] == {}


def test_a_rename_keeps_everything_in_the_cluster() -> None:
    before = [resolve(o.tree, SECRETS) for o in lower(serving_plan()).objects]
    after = lower(renamed_plan()).objects
    assert [resolve(o.tree, SECRETS) for o in after] == before
    own = [o for o in after if o.group in ("workload", "network") and "tenant" not in o.key]
    assert own
    assert all(o.former == (o.identity.replace("helper", "assistant"),) for o in own)


# --- runs --------------------------------------------------------------------------------------


def test_every_node_of_a_run_finds_the_first() -> None:
    item = one(training_plan(), "Job")
    spec = item.tree["spec"]
    assert (spec["completionMode"], spec["completions"], spec["parallelism"]) == ("Indexed", 2, 2)
    arguments = [expand(a, {"JOB_COMPLETION_INDEX": "1"}) for a in container(item)["args"]]
    assert arguments[:3] == ["axolotl", "train", "/etc/gpuplan/axolotl.yaml"]
    assert {"--nnodes=2", "--nproc-per-node=8", "--node-rank=1"} <= set(arguments)
    service = one(training_plan(), "Service")
    assert pod(item)["subdomain"] == service.name
    assert f"--master-addr={item.name}-0.{service.name}" in arguments
    assert service.tree["spec"]["clusterIP"] == "None"
    assert service.tree["spec"]["publishNotReadyAddresses"] is True


def test_a_run_on_one_node_needs_no_name_that_resolves() -> None:
    """A pod's name resolves through a Service and a subdomain; without these, torchrun waits for an
    address until it is killed."""
    item = one(lora_plan(), "Job")
    (launch,) = (a for a in container(item)["args"] if a.startswith("--nnodes"))
    assert launch == "--nnodes=1"
    assert "--standalone" in container(item)["args"]
    assert not [o for o in lower(lora_plan()).objects if o.kind == "Service"]
    assert not [a for a in container(item)["args"] if a.startswith(("--master", "--node-rank"))]


def test_the_training_configuration_is_the_plan() -> None:
    item = one(training_plan(), "ConfigMap")
    texts = {f.path: f.text for f in item.files()}
    config = YAML(typ="safe", pure=True).load(texts["workloads/tune/axolotl.yaml"])
    assert set(config) <= AXOLOTL_KEYS
    sizes = ("sequence_len", "micro_batch_size", "gradient_accumulation_steps", "max_steps")
    assert [config[k] for k in sizes] == [4096, 2, 4, 1000]
    assert config["save_steps"] == round(3600 * 120_000 / (128 * 4096))
    assert config["output_dir"].startswith("/checkpoints/")
    assert '"stage": 3' in texts["workloads/tune/deepspeed.json"]


def pretraining_config(parameters: int, steps: int) -> Tree:
    (work,) = training_plan().workloads
    assert work.training is not None
    assert work.model is not None
    run = replace(work.training, method="pretraining", steps=steps, dataset="org/corpus")
    model = replace(work.model, parameters=parameters)
    plan = replace(training_plan(), workloads=(replace(work, training=run, model=model),))
    texts = {f.path: f.text for f in one(plan, "ConfigMap").files()}
    config: Tree = YAML(typ="safe", pure=True).load(texts["workloads/tune/axolotl.yaml"])
    assert set(config) <= AXOLOTL_KEYS
    return config


def test_training_begins_with_no_weights_and_reads_its_corpus_as_it_goes() -> None:
    config = pretraining_config(8_030_261_248, steps=100_000)
    assert config["reinit_weights"] is True
    assert config["streaming"] is True
    assert config["pretraining_dataset"] == [{"path": "org/corpus", "type": "pretrain"}]
    assert config["max_steps"] == 100_000  # the length of a stream is not known
    assert "datasets" not in config, "that would be tokenized before the first step"
    tuned = one(training_plan(), "ConfigMap").files()
    assert not [f for f in tuned if "reinit" in f.text or "streaming" in f.text]


# Peaks and warm-up of Llama 2 (arXiv:2307.09288), 2.2 and table 1.
@pytest.mark.parametrize(
    ("parameters", "steps", "rate", "warm_up"),
    [
        (8_030_261_248, 100_000, 3e-4, 2000),
        (70_553_706_496, 500_000, 1.5e-4, 2000),
        (32_000_000_000, 500_000, 1.5e-4, 2000),
        (1_235_814_400, 5000, 3e-4, 500),
    ],
)
def test_training_has_the_schedule_of_a_pretraining(
    parameters: int, steps: int, rate: float, warm_up: int
) -> None:
    config = pretraining_config(parameters, steps)
    assert (config["learning_rate"], config["warmup_steps"]) == (rate, warm_up)
    assert (config["lr_scheduler"], config["cosine_min_lr_ratio"]) == ("cosine", 0.1)
    assert (config["adam_beta2"], config["adam_epsilon"]) == (0.95, 1e-5)


# Fields of `AxolotlInputConfig` at v0.18.0, checked there by hand.
AXOLOTL_KEYS = {
    "adam_beta1",
    "adam_beta2",
    "adam_epsilon",
    "adapter",
    "attn_implementation",
    "auto_resume_from_checkpoints",
    "base_model",
    "bf16",
    "chat_template",
    "cosine_min_lr_ratio",
    "dataset_prepared_path",
    "datasets",
    "deepspeed",
    "gradient_accumulation_steps",
    "gradient_checkpointing",
    "gradient_checkpointing_kwargs",
    "learning_rate",
    "load_in_4bit",
    "lora_alpha",
    "lora_r",
    "lora_target_linear",
    "lr_scheduler",
    "max_grad_norm",
    "max_steps",
    "micro_batch_size",
    "optimizer",
    "output_dir",
    "pad_to_sequence_len",
    "pretraining_dataset",
    "reinit_weights",
    "revision_of_model",
    "sample_packing",
    "save_steps",
    "save_total_limit",
    "selective_checkpointing",
    "sequence_len",
    "streaming",
    "warmup_steps",
    "weight_decay",
}


def test_a_changed_configuration_makes_a_new_run() -> None:
    plan = training_plan()
    work = plan.workloads[0]
    assert work.training is not None
    longer = replace(work, training=replace(work.training, steps=2000))
    notes = [
        one(p, "Job").tree["spec"]["template"]["metadata"]["annotations"]
        for p in (plan, replace(plan, workloads=(longer,)))
    ]
    assert notes[0] != notes[1]


def test_adapters_need_neither_deepspeed_nor_a_rendezvous() -> None:
    plan = lora_plan()
    (file,) = one(plan, "ConfigMap").files()
    config = YAML(typ="safe", pure=True).load(file.text)
    assert set(config) <= AXOLOTL_KEYS
    assert (config["adapter"], config["lora_r"]) == ("lora", 16)
    # Selective checkpointing works within gradient checkpointing, and not in its reentrant kind.
    assert config["gradient_checkpointing"] is config["selective_checkpointing"] is True
    assert config["gradient_checkpointing_kwargs"] == {"use_reentrant": False}
    assert "Service" not in [o.kind for o in lower(plan).objects]
    assert one(plan, "Job").tree["spec"]["activeDeadlineSeconds"] == 36_001


def test_rdma_is_given_only_where_nodes_talk() -> None:
    item = one(training_plan(), "Job")
    assert container(item)["resources"]["limits"]["rdma/hca"] == "8"
    assert container(item)["securityContext"]["capabilities"]["add"] == ["IPC_LOCK"]
    level = "pod-security.kubernetes.io/enforce"
    namespace = one(training_plan(), "Namespace").tree["metadata"]["labels"]
    assert namespace[level] == "privileged"
    ethernet = Fabric(kind="ethernet", bytes_per_s_per_gpu=12.5e9, resource="rdma/hca")
    plain_plan = replace(training_plan(), fabric=ethernet)
    assert "rdma/hca" not in container(one(plain_plan, "Job"))["resources"]["limits"]
    assert one(plain_plan, "Namespace").tree["metadata"]["labels"][level] == "baseline"


def test_nodes_that_talk_without_a_network_device_are_an_error() -> None:
    for kind in ("infiniband", "roce"):
        plan = replace(
            training_plan(), fabric=Fabric(kind=kind, bytes_per_s_per_gpu=50e9, resource=None)
        )
        (found,) = (d for d in lower(plan).diagnostics if d.severity is Severity.ERROR)
        assert found.rule == "GP016"
        assert f"get no {kind} device" in found.message
        assert "platform.fabric.resource" in found.help
        (work,) = plan.workloads
        alone = replace(plan, workloads=(replace(work, nodes_per_replica=1),))
        assert messages(lower(alone)) == []


def test_pods_that_wait_for_each_other_are_said() -> None:
    (message,) = messages(lower(training_plan()), Severity.WARNING)
    assert "its 2 pods are scheduled one by one" in message
    assert messages(lower(lora_plan()), Severity.WARNING) == []


def test_a_run_that_ended_stays_and_is_not_run_again() -> None:
    """A Job that its own TTL deletes is made, and run, again by the next update."""
    for plan in (training_plan(), batch_plan()):
        assert "ttlSecondsAfterFinished" not in one(plan, "Job").tree["spec"]


def test_what_is_made_of_a_dataset_goes_to_its_volume() -> None:
    plan = training_plan()
    (work,) = plan.workloads
    (checkpoints,) = work.volumes
    volumes = (
        replace(checkpoints, name="models", purpose="models", mount_path="/models"),
        replace(checkpoints, name="dataset", purpose="dataset", mount_path="/data"),
    )
    changed = replace(plan, workloads=(replace(work, volumes=volumes),))
    values = environment(one(changed, "Job"))
    assert (values["HF_HOME"], values["HF_DATASETS_CACHE"]) == ("/models", "/data/datasets")
    assert environment(one(plan, "Job"))["HF_DATASETS_CACHE"] == "/scratch/datasets"
    assert "HF_DATASETS_CACHE" not in environment(one(serving_plan(), "Deployment"))


def test_downloads_leave_by_both_families_but_reach_no_metadata() -> None:
    policy = one(serving_plan(), "NetworkPolicy", "assistant").tree["spec"]
    downloads = next(r for r in policy["egress"] if r["ports"][0]["port"] == 443)
    blocks = {b["ipBlock"]["cidr"]: b["ipBlock"]["except"] for b in downloads["to"]}
    networks = {ip_network(c): list(map(ip_network, inside)) for c, inside in blocks.items()}
    for address, admitted in {
        "18.244.20.10": True,
        "2600:9000::1": True,
        "169.254.169.254": False,
        "fe80::1": False,
        "fd00:ec2::254": False,
    }.items():
        found = [
            not any(ip_address(address) in i for i in inside)
            for network, inside in networks.items()
            if ip_address(address) in network
        ]
        assert found == [admitted], address


def test_preempted_pods_have_not_failed() -> None:
    (rule,) = one(training_plan(), "Job").tree["spec"]["podFailurePolicy"]["rules"]
    assert rule["action"] == "Ignore"
    assert rule["onPodConditions"] == [{"type": "DisruptionTarget", "status": "True"}]
    priority = one(training_plan(), "PriorityClass").tree
    assert priority["preemptionPolicy"] == "Never"
    assert priority["value"] < 1000


def test_a_batch_runs_its_own_command() -> None:
    item = one(batch_plan(), "Job")
    command = [expand(c, {"date": "x"}) for c in container(item)["command"]]
    assert command[-1] == "--output-file=/models/$(date).jsonl"


def test_each_pod_of_a_batch_answers_a_file_of_its_own() -> None:
    (models,) = serving_workload().volumes
    exchanged = tuple(
        replace(models, name=n, purpose=n, mount_path=f"/{n}") for n in ("requests", "results")
    )
    work = serving_workload(name="nightly", task="batch", volumes=(models, *exchanged))
    plan = serving_plan(workloads=(work,))
    item = one(plan, "Job")
    assert item.tree["spec"]["completions"] == item.tree["spec"]["parallelism"] == 3
    assert container(item)["command"] == ["vllm", "run-batch"]
    arguments = [expand(a, {"JOB_COMPLETION_INDEX": "2"}) for a in container(item)["args"]]
    assert arguments[:3] == [
        "--input-file=/requests/requests-2.jsonl",
        "--output-file=/results/results-2.jsonl",
        "--model=meta-llama/Llama-3.3-70B-Instruct",
    ]
    assert not [a for a in arguments if a.startswith(("--host", "--port"))]
    assert "must be there first" in messages(lower(plan), Severity.WARNING)[0]


# --- notebooks and partitions ------------------------------------------------------------------


def test_every_user_has_a_slice_and_a_home() -> None:
    item = one(notebook_plan(), "StatefulSet")
    assert item.tree["spec"]["replicas"] == 4
    assert container(item)["resources"]["limits"]["nvidia.com/mig-1g.10gb"] == "1"
    assert environment(item)["JUPYTER_TOKEN"] == {
        "secretKeyRef": {"name": "tokens", "key": "jupyter"}
    }
    policy = item.tree["spec"]["persistentVolumeClaimRetentionPolicy"]
    assert set(policy.values()) == {"Retain"}
    assert not item.protect  # its pods go with the stack; the homes stay


def test_nodes_are_labelled_with_a_layout_that_the_operator_gets() -> None:
    plan = notebook_plan()
    node = one(plan, "Node", "node-gpu-01")
    profile = node.tree["metadata"]["labels"]["nvidia.com/mig.config"]
    configuration = mig.configuration(plan)["mig-configs"]
    assert configuration[profile] == [
        {"devices": "all", "mig-enabled": True, "mig-devices": {"1g.10gb": 7}}
    ]
    assert "all-disabled" in configuration


def test_a_new_layout_has_a_new_name() -> None:
    (layout,) = cut_pool().layouts
    fewer = replace(SEVENTHS, instances=SEVENTHS.instances[:3])
    assert mig.profile_name(replace(layout, gpus=(fewer,))) != mig.profile_name(layout)


def test_gpus_that_are_cut_differently_are_named_by_number() -> None:
    half = GpuLayout(
        gpus=(6, 7),
        instances=(
            MigInstance(profile="3g.40gb", start=4, size=4),
            *(MigInstance(profile="2g.20gb", start=n, size=2) for n in (0, 2)),
        ),
    )
    layout = NodeLayout(node_count=1, node_names=("gpu-02",), gpus=(half,))
    pool = serving_pool(partitions=(SLICES,), layouts=(layout,))
    plan = replace(notebook_plan(), node_pools=(pool,))
    marked = one(plan, "Node", "node-gpu-02").tree["metadata"]["labels"]["nvidia.com/mig.config"]
    assert mig.configuration(plan)["mig-configs"][marked] == [
        {"devices": [0, 1, 2, 3, 4, 5], "mig-enabled": False},
        {"devices": [6, 7], "mig-enabled": True, "mig-devices": {"3g.40gb": 1, "2g.20gb": 2}},
    ]
    whole = one(plan, "Node", "node-gpu-01").tree["metadata"]["labels"]
    assert whole["nvidia.com/mig.config"] == "all-disabled"


def test_taints_are_asked_for_and_apart_from_labels() -> None:
    labels = one(serving_plan(), "Node", "node-gpu-01")
    taint = one(serving_plan(), "Node", "taint-gpu-01")
    assert "spec" not in labels.tree
    assert taint.only_if == "taintNodes"
    assert labels.only_if is None


# --- what cannot be expressed ------------------------------------------------------------------


def refused(**changes: Any) -> list[str]:
    return messages(lower(serving_plan(workloads=(serving_workload(**changes),))))


def test_what_containers_cannot_give_is_said() -> None:
    assert refused(isolation="vm") == [
        "assistant: containers on Kubernetes cannot give a virtual machine of its own"
    ]
    engine = Engine(name="other", version="1", image="x:1", digest=None, source="sample")
    assert refused(engine=engine) == ["assistant: other has no known start for inference"]
    assert refused(engine=engine, command=("serve",)) == []
    sglang = sglang_plan().workloads[0].engine
    assert refused(engine=sglang, task="batch") == [
        "assistant: sglang has no command for a file of requests"
    ]
    pools = (serving_pool(partitions=(replace(SLICES, kind="vgpu", name="L40S-48Q"),)),)
    workload = serving_workload(partition="L40S-48Q")
    assert (
        "is given to machines"
        in messages(lower(serving_plan(workloads=(workload,), node_pools=pools)))[0]
    )


def test_parallelism_that_an_engine_lacks_is_said() -> None:
    sizes = replace(serving_workload().parallelism, context_parallel_size=2)
    assert refused(parallelism=sizes) == [
        "assistant: vllm has no setting for context parallelism here"
    ]


def tuned(plan: Plan, **changes: Any) -> Plan:
    work = plan.workloads[0]
    assert work.training is not None
    return replace(plan, workloads=(replace(work, training=replace(work.training, **changes)),))


def test_a_run_that_cannot_start_is_said() -> None:
    lowered = lower(tuned(training_plan(), dataset=None))
    assert "tune: no dataset is named, so the run cannot start" in messages(
        lowered, Severity.WARNING
    )
    assert messages(lower(tuned(training_plan(), optimizer="adamw-bf16"))) == [
        "tune: axolotl cannot run optimizer 'adamw-bf16' with sharding 'zero3'"
    ]


def test_a_volume_of_one_node_is_not_for_several() -> None:
    plan = training_plan()
    work = plan.workloads[0]
    single = tuple(replace(v, shared=False) for v in work.volumes)
    (message,) = messages(lower(replace(plan, workloads=(replace(work, volumes=single),))))
    assert "can be mounted on one node only" in message


def test_partitioned_nodes_without_names_are_said() -> None:
    plan = replace(notebook_plan(), node_pools=(cut_pool(node_names=()),))
    lowered = lower(plan)
    assert "cannot be labelled" in messages(lowered, Severity.WARNING)[0]
    assert "kubectl label node NODE nvidia.com/mig.config=" in lowered.diagnostics[0].help


def test_names_that_do_not_fit_are_said() -> None:
    long = "a" * 40
    tenant = Tenant(name=long, gpu_quota=6, storage_quota_bytes=GIB, isolation="shared")
    workload = serving_workload(tenant=long)
    plan = serving_plan(name="b" * 40, tenants=(tenant,), workloads=(workload,))
    assert "has 81 characters" in messages(lower(plan))[0]


def test_two_objects_of_one_name_are_said() -> None:
    def named(name: str, volume: str) -> Workload:
        base = serving_workload(name=name)
        return replace(base, volumes=(replace(base.volumes[0], name=volume),))

    plan = serving_plan(workloads=(named("a", "b-c"), named("a-b", "c")))
    found = messages(lower(plan))
    assert "stack chat: two objects would be called PersistentVolumeClaim/a-b-c" in found


@pytest.mark.parametrize(
    ("size", "text"),
    [(160 * GIB, "160Gi"), (1024 * GIB, "1Ti"), (GIB + 1, "1073741825"), (512, "512")],
)
def test_quantities_are_exact(size: int, text: str) -> None:
    assert quantity(size) == text
