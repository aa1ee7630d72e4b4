"""Manifests, sites and demands for the tests of the sizing engine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ruamel.yaml import YAML

from gpuplan.catalog.load import load_catalog
from gpuplan.diagnostics import Diagnostic
from gpuplan.errors import Rejected
from gpuplan.manifest.v1 import Manifest
from gpuplan.models.load import known
from gpuplan.models.model import Vision
from gpuplan.placement.pools.joint import Answer
from gpuplan.placement.pools.together import size_all
from gpuplan.plan.model import Fabric, Workload
from gpuplan.sizing.ask.demand import Demand, LanguageDemand
from gpuplan.sizing.ask.fields import FIELDS
from gpuplan.sizing.ask.read import demand
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.hardware.devices import Device, whole
from gpuplan.sizing.hardware.offers import GpuOffer, Site
from gpuplan.sizing.kinds.serving.search import service
from gpuplan.sizing.physics.serving.replica import Replica
from gpuplan.sizing.physics.serving.service import Division

PRICES = {
    "l4": 0.8,
    "a10": 1.1,
    "l40s": 2.2,
    "a100-sxm-80gb": 3.4,
    "h100-sxm-80gb": 4.0,
    "h200-sxm-141gb": 5.0,
    "b200-sxm-180gb": 8.0,
}
IB = Fabric(kind="infiniband", bytes_per_s_per_gpu=50e9, resource=None)

CHAT_70B = """
    task: inference
    model: meta-llama/Llama-3.3-70B-Instruct
    precision: fp8
    load: {requests_per_second: {mean: 8, peak: 20}, input_tokens: {mean: 1200, p95: 4000},
           output_tokens: 300}
    slo: {time_to_first_token: 1 s, time_per_output_token: 40 ms}
"""
CHAT_8B = """
    task: inference
    model: meta-llama/Llama-3.1-8B-Instruct
    load: {requests_per_second: 2, input_tokens: 800, output_tokens: 250}
"""
DEEPSEEK = """
    task: inference
    model: deepseek-ai/DeepSeek-V3
    precision: fp8
    load: {requests_per_second: 2, input_tokens: {mean: 2000, p95: 6000}, output_tokens: 600}
    slo: {time_per_output_token: 60 ms}
"""
BATCH = """
    task: batch
    model: meta-llama/Llama-3.3-70B-Instruct
    precision: fp8
    load: {requests: 1000000, input_tokens: 1500, output_tokens: 300}
    slo: {finish_within: 24 h}
"""
FULL_8B = """
    task: finetuning
    model: meta-llama/Llama-3.1-8B
    training: {sequence_length: 4096, global_batch: 128, tokens: 1e9}
    slo: {finish_within: 2 d}
"""
LORA_70B = """
    task: finetuning
    model: meta-llama/Llama-3.3-70B-Instruct
    training: {sequence_length: 4096, global_batch: 64, epochs: 2, lora: 16}
    dataset: {name: tatsu-lab/alpaca, tokens: 5e7, size: 1 GB}
"""
IMAGES = """
    task: inference
    model: black-forest-labs/FLUX.1-dev
    load: {requests_per_second: {mean: 0.5, peak: 1}, images: {mean: 1024x1024, steps: 28},
           idle: 10 h}
    slo: {request_latency: 15 s}
"""
IMAGE_BATCH = """
    task: batch
    model: stabilityai/stable-diffusion-xl-base-1.0
    precision: fp8
    load: {requests: 100000, images: {mean: 1024x1024, steps: 20}}
    slo: {finish_within: 10 h}
"""
NOTEBOOKS = """
    task: notebook
    notebook: {users: 10, gpu_memory: 9 GiB}
"""
READER = """
    task: inference
    model: BAAI/bge-m3
    load: {requests_per_second: {mean: 20, peak: 60}, input_tokens: {mean: 200, p95: 500}}
    slo: {request_latency: 80 ms}
"""
SPEECH = """
    task: inference
    model: openai/whisper-large-v3
    load: {requests_per_second: {mean: 2, peak: 5}, audio: 20 s}
    slo: {request_latency: 20 s}
"""
TAGGER = """
    task: inference
    model: google/vit-large-patch16-224
    command: [tritonserver]
    load: {requests_per_second: {mean: 500, peak: 900}, images: 224x224}
    slo: {request_latency: 60 ms}
"""
CASES = {
    "chat 70B": CHAT_70B,
    "chat 8B": CHAT_8B,
    "DeepSeek": DEEPSEEK,
    "batch": BATCH,
    "full 8B": FULL_8B,
    "LoRA 70B": LORA_70B,
    "images": IMAGES,
    "image batch": IMAGE_BATCH,
    "notebooks": NOTEBOOKS,
}
ENGINES = {"inference": "vllm", "batch": "vllm", "finetuning": "axolotl", "training": "axolotl"}


def offer(gpu: str, **changes: object) -> GpuOffer:
    """The catalogue's GPU in its reference node, at a round price."""
    catalog = load_catalog()
    found, node = catalog.gpu(gpu), catalog.node(gpu)
    assert found is not None
    made = GpuOffer(
        gpu=found,
        gpus_per_node=node.gpus if node else 8,
        cpu_cores_per_node=node.cpu_cores if node else None,
        memory_bytes_per_node=node.memory_bytes if node else None,
        numa_nodes=node.numa_nodes if node else None,
        usd_per_gpu_hour=Quantity(PRICES[gpu], "USD/h", "test") if gpu in PRICES else None,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def site(*gpus: str, target: str = "kubernetes", **changes: object) -> Site:
    offers = tuple(offer(g, **changes) for g in gpus or PRICES)
    return Site(target=target, gpus=offers, fabric=IB)


Numbers = Mapping[str, float | None]


def wanted(workload: str, engine: str | None = None, numbers: Numbers | None = None) -> Demand:
    """The demand of one workload, written as in a manifest from its `task` on. `numbers` of fields,
    by path and in base units, stand in the place of what is written; None takes a field away."""
    text = "apiVersion: gpuplan.dev/v1\nname: stack\nplatform: {target: kubernetes}\n"
    text += f"workloads:\n  - name: work\n{workload.strip(chr(10))}\n"
    tree = YAML(typ="safe").load(text)
    for path, value in (numbers or {}).items():
        _write(tree["workloads"][0], path.split("."), _written(path, value))
    manifest = Manifest.model_validate(tree)
    spec = manifest.workloads[0]
    model = known(spec.model.name) if spec.model and spec.model.name else None
    images = spec.load is not None and (spec.load.images or spec.load.videos) is not None
    default = "vllm-omni" if images else ENGINES.get(spec.task, "jupyter")
    if isinstance(model, Vision):
        default = "triton" if images else "pytorch"
    pin = load_catalog().engine(engine or default)
    assert pin is not None
    return demand(manifest, 0, model, pin, "m.yaml")


def _written(path: str, value: float | None) -> object:
    """As a manifest has it: with its unit, and whole where it is."""
    if value is None:
        return None
    number = int(value) if float(value).is_integer() else value
    unit = FIELDS[path].unit if path in FIELDS else "1"
    return number if unit in ("1", "1/s") else f"{number:f} {unit}"


def _write(tree: dict[str, Any], path: list[str], value: object) -> None:
    """A short form on the way becomes a long one."""
    first, *rest = path
    if not rest:
        tree[first] = value
        return
    if not isinstance(tree.get(first), dict):
        tree[first] = {} if first not in tree else {"mean": tree[first]}
    _write(tree[first], rest, value)


def replica(asked: Demand, on: str | Device, gpus: int) -> Replica:
    """One of a language model's on `gpus` devices, or GPUs of the catalogue."""
    assert isinstance(asked, LanguageDemand)
    device = whole(offer(on)) if isinstance(on, str) else on
    return Replica(service(asked, device, Division(tensor_parallel_size=gpus)))


def size(asked: Demand, where: Site) -> Answer:
    """One workload alone."""
    ((answer,), _) = size_all([asked], where)
    return answer


def sized(workload: str, where: Site | None = None) -> Sized:
    answer = size(wanted(workload), where or site())
    assert isinstance(answer, Sized), [d.message + d.label for d in answer]
    return answer


def work(workload: str, where: Site | None = None) -> Workload:
    return sized(workload, where).workload


def refusals(workload: str) -> tuple[Diagnostic, ...]:
    """What `demand` says against a workload."""
    try:
        wanted(workload)
    except Rejected as rejected:
        return rejected.diagnostics
    return ()


def failure(workload: str, where: Site | None = None) -> Diagnostic:
    """The error of a workload that cannot be sized."""
    answer = size(wanted(workload), where or site())
    assert not isinstance(answer, Sized)
    (found,) = answer
    return found
