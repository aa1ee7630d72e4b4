"""Every field of a manifest, set alone: the plan changes, or a message names the field."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from gpuplan.manifest.network import DnsSpec, EgressSpec, NetworkSpec, ProxySpec
from gpuplan.manifest.v1 import Platform, Workload
from gpuplan.pipeline import Result, compile_files
from gpuplan.report.summary import summary
from gpuplan.sizing.ask.fields import FIELDS
from tests.house.test_fields import fields

ROOT = Path(__file__).parents[2]
WORK: dict[str, dict[str, Any]] = {
    "serving": {
        "task": "inference",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "load": {"requests_per_second": 20, "input_tokens": 700, "output_tokens": 250},
    },
    "batch": {
        "task": "batch",
        "model": "meta-llama/Llama-3.1-8B-Instruct",
        "load": {"requests": 5000000, "input_tokens": 700, "output_tokens": 250},
    },
    "pooling service": {
        "task": "inference",
        "model": "BAAI/bge-m3",
        "load": {"requests_per_second": 400, "input_tokens": 200},
    },
    "speech service": {
        "task": "inference",
        "model": "openai/whisper-large-v3",
        "load": {"requests_per_second": 9, "audio": "30 s"},
    },
    "image service": {
        "task": "inference",
        "model": "black-forest-labs/FLUX.1-dev",
        "load": {"requests_per_second": 2, "images": {"mean": "768x768", "steps": 20}},
    },
    "video service": {
        "task": "inference",
        "model": "Wan-AI/Wan2.1-T2V-1.3B-Diffusers",
        "engine": {"name": "vllm-omni", "image": "vllm/vllm-omni:v0.26.0"},
        "command": ["vllm", "serve", "Wan-AI/Wan2.1-T2V-1.3B-Diffusers", "--omni", "--port=8000"],
        "load": {
            "requests_per_second": 0.02,
            "videos": {"mean": "640x352", "frames": 49, "steps": 30, "memory": "8 GiB"},
        },
    },
    "vision service": {
        "task": "inference",
        "model": "google/vit-large-patch16-224",
        "command": ["tritonserver", "--model-repository=/models/triton"],
        "load": {"requests_per_second": 900, "images": "640x480"},
    },
    "training": {
        "task": "finetuning",
        "model": "meta-llama/Llama-3.1-8B",
        "training": {"tokens": 1e10},
    },
    "vision training": {
        "task": "training",
        "model": "google/vit-large-patch16-224",
        "command": ["torchrun", "--nproc-per-node=8", "train.py"],
        "training": {"epochs": 90, "global_batch": 1024},
        "dataset": {"images": 1300000, "pixels": "640x480"},
    },
    "notebook": {"task": "notebook", "notebook": {"users": 3, "gpu_memory": "30 GiB"}},
}
FABRIC = {"kind": "infiniband", "bandwidth_per_gpu": "400 Gb/s", "resource": "rdma/a"}
# Where the field's first example says what is so already, or what nothing else in the base allows.
VALUES: dict[str, Any] = {
    "task": "batch",
    "engine": "sglang",
    "precision": "fp8",
    "tenancy.isolation": "node",
    "model": "Qwen/Qwen3-8B",
    "pooling": "score",
    "overrides.gpu": "l40s",
    "overrides.replicas": 9,
    "training.sharding": "zero1",
}
INVENTORY = str(ROOT / "examples/inventories/rack-7.yaml")
# Fields that need another beside them to be accepted, and that other.
BESIDE: dict[str, dict[str, Any]] = {
    "public_variables": {"environment": {"SIGNING_KEY": "a-name"}},
    "load.concurrency.users": {"load.requests_per_second": None},
    "load.concurrency.think_time": {"load.requests_per_second": None, "load.concurrency.users": 50},
    "training.epochs": {"training.tokens": None, "dataset.tokens": 1e9},
    "training.steps": {"training.tokens": None},
    "training.lora.quantized": {"training.lora.rank": 16},
    "dataset.tokens": {"training.tokens": None, "training.epochs": 1},
    "growth.horizon": {"growth.factor": 1.3},
    "overrides.dataset_storage": {"dataset.size": "2 GB"},
    "speculative.model": {"speculative.method": "draft_model"},
    "tenancy.cut": {
        "model": "meta-llama/Llama-3.2-1B-Instruct",
        "load.requests_per_second": 0.2,
        "overrides.gpu": "h100-sxm-80gb",
    },
}
SPECULATIVE = {"accepted_tokens": 2.5, "draft_tokens": 3, "draft_cost": 0.2}
NVIDIA = "https://helm.ngc.nvidia.com/nvidia"
RECORDS = ("plan.yaml", "gpuplan.lock", "checksums.txt")
# What `platform.storage.bandwidth` moves: the time after which a pod or a run is there.
LOADING = ("work.load_seconds", "work.checkpoint_seconds")
# Named by what a person reads of them alone: an error, or a contradiction with the base.
REFUSED = {"task"}


def example(path: str, root: type[BaseModel]) -> Any:
    kind: Any = root
    *parents, name = path.split(".")
    for parent in parents:
        kind = fields(kind)[parent]
    info = next(i for n, i in kind.model_fields.items() if name in (n, i.alias))
    assert info.examples
    return info.examples[0]


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    *parents, name = path.split(".")
    for parent in parents:
        below = tree.setdefault(parent, {})
        if not isinstance(below, dict):  # a shorthand
            below = tree[parent] = {"name" if parent in ("model", "engine") else "mean": below}
        tree = below
    if value is None:
        tree.pop(name, None)
    else:
        tree[name] = value


@cache
def answer(text: str, folder: Path) -> tuple[str, str]:
    """The answer and the files that act, without those that only record; and what is said."""
    path = folder / "m.yaml"
    path.write_text(text, encoding="utf-8")
    result: Result = compile_files([path])
    shown = "".join(summary(s.plan) for s in result.stacks)
    shown += str([e.value for s in result.stacks for e in s.plan.evidence if e.quantity in LOADING])
    files = [f for s in result.stacks for f in s.files if f.path not in RECORDS]
    told = "\n".join(f"{p.message} {p.help} {p.label} {p.origin}" for p in result.problems)
    assert shown or told
    return shown + "".join(f"{f.path}\n{f.text}\n" for f in files), told


def document(work: dict[str, Any], **platform: Any) -> dict[str, Any]:
    where = {"target": "kubernetes", "gpus": ["h100-sxm-80gb", "l40s"], "fabric": FABRIC}
    workload = {"name": "work", **json.loads(json.dumps(work))}
    return {
        "apiVersion": "gpuplan.dev/v1",
        "name": "stack",
        "platform": {**where, **platform},
        "workloads": [workload],
    }


@pytest.mark.parametrize("path", [p for p in FIELDS if p != "name"])
def test_a_field_of_a_workload_changes_the_plan_or_is_named(path: str, folder: Path) -> None:
    kind = next(k for k in WORK if k in FIELDS[path].kinds)
    base = document(WORK[kind])
    if path.startswith("speculative."):
        base["workloads"][0]["speculative"] = dict(SPECULATIVE)
    for other, value in BESIDE.get(path, {}).items():
        put(base["workloads"][0], other, value)
    changed = json.loads(json.dumps(base))
    put(changed["workloads"][0], path, VALUES.get(path, example(path, Workload)))
    assert base != changed
    before, _ = answer(json.dumps(base), folder)
    after, told = answer(json.dumps(changed), folder)
    named = path.rpartition(".")[2] in told
    assert before != after or named, told
    assert after or path in REFUSED or named, told


PLATFORM = {
    "platform.slurm": {
        "slurm": {"controller": "slurm-01", "storage": "/lustre", "containers": "pyxis"}
    },
    "platform.node.gpus": {"node": {"gpus": 4}},
    "platform.node.cpu_cores": {"node": {"gpus": 8, "cpu_cores": 40, "memory": "2 TiB"}},
    "platform.node.memory": {"node": {"gpus": 8, "cpu_cores": 96, "memory": "512 GiB"}},
    "platform.node.count": {"node": {"gpus": 8, "count": 40}},
    "platform.fabric": {"fabric": {"kind": "roce", "bandwidth_per_gpu": "100 Gb/s"}},
    "platform.fabric.resource": {"fabric": {**FABRIC, "resource": "rdma/rdma_shared_device_a"}},
    "platform.fabric.oversubscription": {"fabric": {**FABRIC, "oversubscription": 4}},
    "platform.fabric.nodes_per_switch": {"fabric": {**FABRIC, "nodes_per_switch": 4}},
    "platform.fabric.switch_label": {"fabric": {**FABRIC, "switch_label": "example.com/leaf"}},
    "platform.storage.class": {"storage": {"class": "models-rwx"}},
    "platform.storage.shared": {"storage": {"shared": False}},
    # The plan records what it makes of it: how long weights and data take to load.
    "platform.storage.bandwidth": {"storage": {"bandwidth": "5 GB/s"}},
    "platform.storage.type": {"storage": {"type": "aws-fsx-lustre-125"}},
    "platform.storage.price": {"storage": {"price": "$0.08/GB/month"}},
    "platform.budget": {"budget": "$20,000/month"},
    "platform.prices": {"prices": {"h100-sxm-80gb": "$1/hour"}},
    "platform.versions": {"versions": {"gpu-operator": "v25.10.1"}},
    **{
        f"platform.network.{name}": {"network": value}
        for name, value in {
            "dns": {"dns": "openshift"},
            "dns.service": {"dns": {"service": "cloud-dns"}},
            "dns.namespace": {"dns": {"namespace": "dns-system"}},
            "dns.addresses": {"dns": {"addresses": ["10.0.0.10/32"]}},
            "dns.ports": {"dns": {"ports": [5353]}},
            "proxy.http": {"proxy": {"http": "http://10.1.2.3:3128"}},
            "proxy.https": {"proxy": {"https": "http://proxy.example.org:3128"}},
            "proxy.exceptions": {"proxy": {"exceptions": [".example.org"]}},
            "proxy.address": {"proxy": {"address": "10.1.2.3/32"}},
            "internet": {"internet": False},
            "egress": {"egress": [{"ports": [9000]}]},
            "egress.to": {"egress": [{"to": "10.20.0.0/16", "ports": [9000]}]},
            "egress.reason": {"egress": [{"ports": [9000], "reason": "object storage"}]},
            "hub": {"hub": "https://hub.example.org"},
            "object_storage": {"object_storage": "https://s3.example.org:9000"},
            "images": {"images": {"docker.io": "a.example.org/a", "quay.io": "a.example.org/b"}},
            "charts": {"charts": {NVIDIA: "https://charts.example.org/nvidia"}},
            "pull_secrets": {"pull_secrets": ["registry"]},
        }.items()
    },
    "platform.rack_power": {"rack_power": "40 kW"},
    "platform.gpus": {"gpus": ["a100-sxm-80gb"]},
    "platform.region": {"region": "us-east-2"},
    "platform.regions": {"regions": {"places": [{"region": "a"}, {"region": "b"}]}},
    "platform.provider": {"provider": "aws"},
    "platform.nodes": {"nodes": ["p5.48xlarge", "g6e.12xlarge"]},
    "platform.target": {"target": "gke"},
    "platform.cluster": {"cluster": {"zones": ["us-east-2a", "us-east-2b"]}},
    "platform.inventory": {"inventory": INVENTORY},
    "platform.calibration": {"calibration": "anchors"},
    "platform.queue": {"queue": "gpus"},
    "platform.jobs": {"jobs": "jobset"},
    "platform.operators": {"operators": "separate"},
    "platform.ansible": {"ansible": True},
    "platform.quadlet": {"quadlet": True},
    "platform.vgpu_subscription": {"vgpu_subscription": "$1/year"},
}


@pytest.mark.parametrize("kind", ["serving", "training", "notebook"])
@pytest.mark.parametrize("path", PLATFORM)
def test_a_field_of_the_platform_changes_the_plan_or_is_named(
    path: str, kind: str, folder: Path
) -> None:
    before, _ = answer(json.dumps(document(WORK[kind])), folder)
    after, told = answer(json.dumps(document(WORK[kind], **PLATFORM[path])), folder)
    told = told.replace("platform.fabric has", f"{path} has" if "fabric" in path else "")
    assert before != after or path in told or path.replace(".", "', '") in told, told


# What stands beside a field of the network that means nothing alone.
NETWORK: dict[str, Any] = {
    "platform.network.proxy.exceptions": {"proxy": {"http": "http://10.1.2.3:3128"}},
    "platform.network.proxy.address": {"proxy": {"http": "http://10.1.2.3:3128"}},
    "platform.network.egress.to": {"egress": [{"ports": [9000]}]},
    "platform.network.egress.reason": {"egress": [{"ports": [9000]}]},
}


@pytest.mark.parametrize("kind", ["serving", "training", "notebook"])
@pytest.mark.parametrize("path", [p for p in PLATFORM if p.startswith("platform.network.")])
def test_a_field_of_the_network_alone_changes_the_stack(path: str, kind: str, folder: Path) -> None:
    beside: dict[str, Any] = NETWORK.get(path, {})
    written: dict[str, Any] = dict(PLATFORM[path]["network"])  # type: ignore[call-overload]
    if "proxy" in beside:
        written = {"proxy": beside["proxy"] | written["proxy"]}
    base = document(WORK[kind], network=beside) if beside else document(WORK[kind])
    before, _ = answer(json.dumps(base), folder)
    after, told = answer(json.dumps(document(WORK[kind], network=written)), folder)
    assert "workload.py" in after, told
    assert before != after


def test_no_field_of_the_network_is_left_out() -> None:
    tried = {p.removeprefix("platform.network.") for p in PLATFORM if "network." in p}
    wanted = set(fields(NetworkSpec))
    wanted |= {f"dns.{n}" for n in fields(DnsSpec)} | {f"proxy.{n}" for n in fields(ProxySpec)}
    wanted |= {f"egress.{n}" for n in fields(EgressSpec)}
    assert wanted - {"proxy", "egress.ports"} <= tried


def test_no_field_of_the_platform_is_left_out() -> None:
    assert {p.split(".")[1] for p in PLATFORM} == set(fields(Platform))


def test_network_functions_that_no_guest_gets_are_named_in_the_inventory(tmp_path: Path) -> None:
    """A replica that fits one guest needs none; one of two guests gets them."""
    inventory = str(ROOT / "examples/inventories/hypervisors.yaml")
    where = {"target": "libvirt", "inventory": inventory, "gpus": ["h100-sxm-80gb"]}
    tree = document(WORK["serving"]) | {"platform": where}
    (tmp_path / "m.yaml").write_text(json.dumps(tree), encoding="utf-8")
    result = compile_files([tmp_path / "m.yaml"])
    assert result.stacks, [p.message for p in result.problems]
    (note,) = (p for p in result.problems if "virtual functions" in p.message)
    assert "('virtual_functions' of 'nics') have no effect here" in note.message
    assert "hypervisors.yaml:hosts[0].nics[0].virtual_functions" in str(note.origin)
    between = compile_files([ROOT / "examples/passthrough.yaml"])
    assert between.stacks
    assert not any("virtual functions" in p.message for p in between.problems)
