"""GPUs of several vendors: what their nodes, pods and operators are told, and what is refused."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gpuplan.backends.helm.lower import VALUES, chart_values
from gpuplan.catalog.load import load_catalog
from gpuplan.diagnostics import Diagnostic
from gpuplan.pipeline import Compiled, compile_files
from gpuplan.plan.outside.network import Network
from gpuplan.plan.serialize import dump, load
from gpuplan.render.commented import strip
from gpuplan.simulate.nodes import nodes
from gpuplan.targets import TARGETS, of_other_vendors
from gpuplan.vendors import AMD, FIRST, VENDORS
from tests.tools.stacks import objects_of

ROOT = Path(__file__).parents[2]
NODE = "node: {gpus: 8, count: 4, cpu_cores: 96, memory: 3 TiB}"
ASSISTANT = """\
- name: chat
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  load: {requests_per_second: 2, input_tokens: 500, output_tokens: 200}
  tenancy: {team: desk}
"""
TUNING = """\
- name: tune
  task: finetuning
  model: meta-llama/Llama-3.1-8B
  training: {sequence_length: 2048, global_batch: 16, epochs: 1}
  dataset: {name: org/data, tokens: 1e7, size: 1 GB}
  tenancy: {team: desk}
"""
RACK = """\
apiVersion: gpuplan.dev/inventory/v1
name: rack
hosts:
- {names: [a1, a2], price: $30/h, cpu_cores: 96, memory: 3 TiB,
   gpus: [{type: mi300x-192gb, count: 8}]}
- {names: [n1], price: $40/h, cpu_cores: 96, memory: 2 TiB,
   gpus: [{type: h100-sxm-80gb, count: 8}]}
"""


def compiled(
    folder: Path, platform: str, work: str = ASSISTANT
) -> tuple[list[Compiled], list[Diagnostic]]:
    head = f"apiVersion: gpuplan.dev/v1\nname: t\nplatform: {{{platform}}}\nworkloads:\n"
    (folder / "rack.yaml").write_text(RACK, encoding="utf-8")
    (folder / "m.yaml").write_text(head + work, encoding="utf-8")
    result = compile_files([folder / "m.yaml"])
    return list(result.stacks), [p for p in result.problems if p.severity.value == "error"]


def planned(folder: Path, platform: str, work: str = ASSISTANT) -> Compiled:
    stacks, errors = compiled(folder, platform, work)
    assert errors == []
    return stacks[0]


def refused(folder: Path, platform: str, work: str = ASSISTANT) -> Diagnostic:
    _, errors = compiled(folder, platform, work)
    (problem,) = errors
    return problem


def amd(gpu: str = "mi300x-192gb") -> str:
    return f"target: kubernetes, gpus: [{gpu}], {NODE}"


def values(stack: Compiled, name: str) -> dict[str, Any]:
    (text,) = (f.text for f in stack.files if f.path.endswith(f"{name}/values.yaml"))
    tree: dict[str, Any] = YAML(typ="safe", pure=True).load(text)
    return tree


def of_kind(stack: Path, kind: str) -> list[dict[str, Any]]:
    return [o.tree for o in objects_of(stack) if o.tree["kind"] == kind]


def pod(stack: Path, name: str) -> dict[str, Any]:
    (tree,) = of_kind(stack, "Deployment")
    assert tree["metadata"]["name"] == name
    spec: dict[str, Any] = tree["spec"]["template"]["spec"]
    return spec


def test_every_chart_with_values_has_a_module_that_makes_them() -> None:
    for name in VALUES.values():
        assert callable(import_module(f"gpuplan.backends.helm.{name}").values)


def test_a_vendor_is_complete() -> None:
    catalog = load_catalog()
    for vendor in VENDORS.values():
        assert catalog.component(vendor.operator), "its operator is pinned"
        assert vendor.operator in VALUES, "and has values"
    assert len({v.resource for v in VENDORS.values()}) == len(VENDORS)
    known = [gpu for name in catalog.gpu_ids if (gpu := catalog.gpu(name))]
    assert {gpu.vendor for gpu in known if catalog.plannable(gpu)} == VENDORS.keys()


@pytest.mark.parametrize("target", TARGETS)
def test_gpus_of_a_maker_without_a_record_are_refused_by_name(target: str, tmp_path: Path) -> None:
    arc = "arc-pro-b60-24gb"
    (tmp_path / "arcs.yaml").write_text(RACK.replace("mi300x-192gb", arc), encoding="utf-8")
    for where in (f"gpus: [{arc}], {NODE}", "gpus: [arc-pro-b60-24gb], inventory: arcs.yaml"):
        stacks, problems = compiled(tmp_path, f"target: {target}, {where}")
        assert stacks == []
        assert any("Arc Pro B60 cannot be planned" in p.message for p in problems)


def test_pods_on_amd_ask_for_its_devices_and_run_its_image() -> None:
    spec = pod(ROOT / "stacks/mi300x", "helpdesk")
    (engine,) = spec["containers"]
    assert engine["image"] == "vllm/vllm-openai-rocm:v0.27.1"
    assert engine["resources"]["limits"]["amd.com/gpu"] == "1"
    assert not any("nvidia" in name for name in engine["resources"]["limits"])
    assert {"key": "amd.com/gpu", "operator": "Exists", "effect": "NoSchedule"} in spec[
        "tolerations"
    ]
    assert spec["securityContext"]["seccompProfile"]["type"] == "Unconfined"
    assert engine["securityContext"]["capabilities"] == {"drop": ["ALL"], "add": ["SYS_PTRACE"]}
    variables = {v["name"]: v.get("value") for v in engine["env"]}
    assert variables["VLLM_ROCM_USE_AITER"] == "1"
    assert variables["HSA_NO_SCRATCH_RECLAIM"] == "1"
    (quota,) = of_kind(ROOT / "stacks/mi300x", "ResourceQuota")
    plan = load((ROOT / "stacks/mi300x/plan.yaml").read_text(encoding="utf-8"))
    gpus = sum(work.gpu_count for work in plan.workloads)
    assert quota["spec"]["hard"]["requests.amd.com/gpu"] == str(gpus)
    spaces = of_kind(ROOT / "stacks/mi300x", "Namespace")
    labels = {s["metadata"]["name"]: s["metadata"]["labels"] for s in spaces}["mi300x-support"]
    assert labels["pod-security.kubernetes.io/enforce"] == "privileged"


def test_a_manifest_that_sets_a_variable_keeps_its_value(tmp_path: Path) -> None:
    own = ASSISTANT + '  environment: {VLLM_ROCM_USE_AITER: "0"}\n'
    (program,) = (f.text for f in planned(tmp_path, amd(), own).files if f.path == "workload.py")
    assert 'name="VLLM_ROCM_USE_AITER", value="0"' in program
    assert 'name="VLLM_ROCM_USE_AITER", value="1"' not in program


@pytest.mark.parametrize(
    ("gpu", "engine", "image"),
    [
        ("mi300x-192gb", "sglang", "lmsysorg/sglang:v0.5.16-rocm720-mi30x"),
        ("mi325x-256gb", "sglang", "lmsysorg/sglang:v0.5.16-rocm720-mi30x"),
        ("mi355x-288gb", "sglang", "lmsysorg/sglang:v0.5.16-rocm720-mi35x"),
        ("mi355x-288gb", "vllm", "vllm/vllm-openai-rocm:v0.27.1"),
        ("h100-sxm-80gb", "sglang", "lmsysorg/sglang:v0.5.16-cu130"),
    ],
)
def test_the_image_is_that_of_the_architecture(
    tmp_path: Path, gpu: str, engine: str, image: str
) -> None:
    plan = planned(tmp_path, amd(gpu), f"{ASSISTANT}  engine: {engine}\n").plan
    assert plan.workloads[0].engine.image == image
    assert plan.node_pools[0].vendor == (None if gpu.startswith("h100") else AMD)


def test_nodes_are_told_by_the_device_where_nothing_else_tells_them(tmp_path: Path) -> None:
    plan = planned(tmp_path, amd()).plan
    (node,) = nodes(plan)
    assert node.tree["metadata"]["labels"]["amd.com/gpu.device-id"] == "74a1"
    assert node.tree["status"]["capacity"]["amd.com/gpu"] == "8"
    rented = planned(tmp_path, "target: kubernetes, provider: azure, gpus: [mi300x-192gb]").plan
    (pool,) = rented.node_pools
    assert pool.gpu_product == "", "a rented machine has a virtual function, another device"
    assert pool.labelled_type == "Standard_ND96isr_MI300X_v5"


def test_the_plan_is_read_back_as_it_was(tmp_path: Path) -> None:
    plan = replace(planned(tmp_path, amd()).plan, evidence=())
    assert load(dump(plan)) == plan


def test_both_vendors_on_one_cluster(tmp_path: Path) -> None:
    """Each workload goes where it runs; each vendor has its operator, and nodes are discovered by
    one of them."""
    both = planned(tmp_path, "target: kubernetes, inventory: rack.yaml", ASSISTANT + TUNING)
    tune = next(w for w in both.plan.workloads if w.name == "tune")
    assert tune.gpu == "h100-sxm-80gb"
    assert any(
        s.resource == "training is planned on AMD GPUs"
        for a in tune.alternatives
        for s in a.shortfalls
    )
    forced = ASSISTANT + "  overrides: {gpu: mi300x-192gb}\n" + TUNING
    mixed = planned(tmp_path, "target: kubernetes, inventory: rack.yaml", forced)
    assert {p.vendor for p in mixed.plan.node_pools} == {None, AMD}
    names = [c.name for c in mixed.plan.components]
    assert names == ["amd-gpu-operator", "gpu-operator"]
    assert values(mixed, "amd-gpu-operator")["node-feature-discovery"] == {"enabled": False}
    tolerated = values(mixed, "10-gpu-operator")["node-feature-discovery"]["worker"]["tolerations"]
    assert {t["key"] for t in tolerated} >= {VENDORS[AMD].taint, VENDORS[FIRST].taint}
    (cluster,) = (f.text for f in mixed.files if f.path == "cluster.py")
    assert '"requests.amd.com/gpu": "1"' in cluster
    assert '"requests.nvidia.com/gpu"' in cluster


def test_one_vendor_has_one_operator(tmp_path: Path) -> None:
    assert [c.name for c in planned(tmp_path, amd()).plan.components] == ["amd-gpu-operator"]
    nvidia = planned(tmp_path, amd("h100-sxm-80gb"))
    assert [c.name for c in nvidia.plan.components] == ["gpu-operator"]
    assert "vendor" not in dump(nvidia.plan)


def test_the_operators_images_come_from_mirrors(tmp_path: Path) -> None:
    plan = planned(tmp_path, amd()).plan
    mirrors = (
        ("docker.io", "mirror.example.org/hub"),
        ("registry.k8s.io", "mirror.example.org/k8s"),
    )
    behind = replace(plan, network=Network(images=mirrors, pull_secrets=("pull",)))
    tree, _ = strip(chart_values("amd-gpu-operator", behind))
    spec = tree["deviceConfig"]["spec"]
    images = [
        spec["devicePlugin"]["devicePluginImage"],
        spec["devicePlugin"]["nodeLabellerImage"],
        spec["metricsExporter"]["image"],
        tree["controllerManager"]["manager"]["image"]["repository"],
        tree["node-feature-discovery"]["image"]["repository"],
    ]
    assert all(image.startswith("mirror.example.org/") for image in images)
    assert tree["global"]["imagePullSecrets"] == [{"name": "pull"}]


@pytest.mark.parametrize(
    ("work", "reason"),
    [
        (TUNING, "no training is planned on AMD GPUs"),
        (
            "- {name: chat, task: notebook, notebook: {users: 2, gpu_memory: 20 GiB}}\n",
            "no notebook is planned on AMD GPUs",
        ),
        (
            ASSISTANT.replace("meta-llama/Llama-3.1-8B-Instruct", "BAAI/bge-large-en-v1.5").replace(
                ", output_tokens: 200", ""
            ),
            "no pooling service is planned on AMD GPUs",
        ),
        (
            ASSISTANT.replace("meta-llama/Llama-3.1-8B-Instruct", "nvidia/Qwen3-235B-A22B-NVFP4"),
            "no nvfp4 kernels for AMD's cdna3",
        ),
    ],
)
def test_what_does_not_run_there_is_refused_with_its_reason(
    tmp_path: Path, work: str, reason: str
) -> None:
    problem = refused(tmp_path, amd(), work)
    assert problem.rule == "GP012"
    assert problem.label == f"mi300x-192gb: {reason}"
    assert problem.origin is not None
    assert problem.origin.path == ("workloads", 0)


@pytest.mark.parametrize("target", [t for t in TARGETS if t not in of_other_vendors()])
def test_other_targets_refuse_the_vendor_by_name(tmp_path: Path, target: str) -> None:
    _, errors = compiled(tmp_path, f"target: {target}, gpus: [mi300x-192gb]")
    found = [e for e in errors if "MI300X" in e.message]
    assert [e.message for e in found] == [
        f"AMD Instinct MI300X cannot be planned for target '{target}'"
    ]
    assert found[0].origin is not None
    assert found[0].origin.path == ("platform", "gpus", 0)


def test_an_image_of_ones_own_is_for_the_vendor_that_the_platform_has(tmp_path: Path) -> None:
    image = "registry.example.org/vllm:v1"
    own = f"{ASSISTANT}  engine: {{name: vllm, version: 0.27.1, image: '{image}'}}\n"
    alone = planned(tmp_path, amd(), own).plan.workloads[0]
    assert (alone.gpu, alone.engine.image) == ("mi300x-192gb", image)
    mixed = planned(tmp_path, amd("mi300x-192gb, h100-sxm-80gb"), own).plan.workloads[0]
    assert mixed.gpu == "h100-sxm-80gb"
    gates = {s.resource for a in mixed.alternatives if a.gpu.startswith("mi") for s in a.shortfalls}
    assert gates == {f"source says that {image} is for AMD"}


def test_amd_is_weighed_where_it_has_a_price_and_nowhere_else(tmp_path: Path) -> None:
    def weighed(provider: str) -> set[str]:
        work = ASSISTANT.replace("Llama-3.1-8B", "Llama-3.1-70B")
        (workload,) = planned(
            tmp_path, f"target: kubernetes, provider: {provider}", work
        ).plan.workloads
        return {workload.gpu, *(a.gpu for a in workload.alternatives)}

    assert "mi300x-192gb" in weighed("azure")
    assert {"mi300x-192gb", "mi355x-288gb"} <= weighed("oci")
    assert not any(gpu.startswith("mi") for gpu in weighed("aws")), "it rents none"
