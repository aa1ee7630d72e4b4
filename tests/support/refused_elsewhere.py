"""Manifests for clouds, Docker, Slurm and other makers' GPUs, of services that read, hear, see and
draw: drawn by number as those of `refused_manifests`, often with what is refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.support.refused_manifests import Draws, Tree, put

INVENTORIES = Path("examples/inventories").resolve()
GPUS = ("l4", "a10", "l40s", "a100-sxm-80gb", "h100-sxm-80gb", "mi300x-192gb")
OMNI = "vllm/vllm-omni:v0.26.0"


def _eks(draw: Draws) -> Tree:
    cluster = draw((None, {"zones": ["us-east-1a", "us-east-1b"]}, {"scaling": "karpenter"}))
    region = draw(("us-east-1", "us-east-1", "eu-west-1", None))
    return {"target": "eks", "region": region, "cluster": cluster}


def _gke(draw: Draws) -> Tree:
    cluster = draw((None, {"zones": ["us-central1-a"]}, {"local_disks": "block"}))
    return {
        "target": "gke",
        "region": draw(("us-central1", "us-centrall", None)),
        "cluster": cluster,
    }


def _aks(draw: Draws) -> Tree:
    cluster = draw((None, {"zones": ["1"]}, {"driver": "operator"}, {"scaling": "karpenter"}))
    return {"target": "aks", "region": draw(("eastus", "eastus2", None)), "cluster": cluster}


def _docker(draw: Draws) -> Tree:
    return {"target": "docker", "node": {"gpus": draw((1, 2, 4)), "count": draw((None, 1, 2))}}


def _slurm(draw: Draws) -> Tree:
    slurm = {"controller": "s1", "storage": "/lustre", "containers": draw(("pyxis", "apptainer"))}
    file = draw(("slurm.yaml", "slurm.yaml", "rack-7.yaml"))
    inventory = draw((str(INVENTORIES / file), str(INVENTORIES / file), None))
    return {"target": "slurm", "slurm": draw((slurm, slurm, None)), "inventory": inventory}


def _plain(draw: Draws) -> Tree:
    providers = (None, "aws", "gcp", "lambda")
    return {
        "target": "kubernetes",
        "provider": draw(providers),
        "region": draw((None, "eu-west-1")),
    }


def _service(model: str, load: Tree, limits: tuple[str, ...], **more: Any) -> Callable[..., Tree]:
    def made(draw: Draws) -> Tree:
        rate = {"requests_per_second": draw((0.05, 3, 400))}
        statistic = draw(("mean", "p50", "p95", "p99"))
        slo = {"request_latency": {statistic: draw(limits)}}
        return {"task": "inference", "model": model, "load": rate | load, "slo": slo, **more}

    return made


def _video(draw: Draws) -> Tree:
    videos = {"mean": draw(("832x480", "1280x720")), "frames": 81, "steps": 40}
    if memory := draw(("8 GiB", "8 GiB", "30 GiB", None)):
        videos["memory"] = memory
    model = f"Wan-AI/Wan2.1-T2V-{draw(('1.3B', '14B'))}-Diffusers"
    work: Tree = {"task": "inference", "model": model}
    if draw((True, True, False)):
        work |= {"engine": {"name": "vllm-omni", "image": OMNI}, "command": ["serve"]}
    work["load"] = {"requests_per_second": draw((0.002, 0.05)), "videos": videos}
    return work | {"slo": {"request_latency": {draw(("mean", "p95")): draw(("30 s", "1 h"))}}}


def _chat(draw: Draws) -> Tree:
    model = draw(("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"))
    load = {"requests_per_second": draw((0.5, 40)), "input_tokens": 900, "output_tokens": 200}
    slo = {"time_per_output_token": draw(("9 ms", "60 ms"))}
    return {"task": "inference", "model": model, "load": load, "slo": slo}


def _tune(draw: Draws) -> Tree:
    training = {"tokens": draw((1e8, 5e9)), "lora": draw((None, 16))}
    limit = {"finish_within": draw(("1 h", "9 d"))}
    return {"task": "finetuning", "model": "Qwen/Qwen3-8B", "training": training, "slo": limit}


WORK: tuple[Callable[[Draws], Tree], ...] = (
    _chat,
    _chat,
    _tune,
    _video,
    _service("BAAI/bge-m3", {"input_tokens": 300, "texts": 4}, ("6 ms", "80 ms", "2 s")),
    _service("openai/whisper-large-v3", {"audio": "40 s"}, ("300 ms", "8 s")),
    _service(
        "google/vit-large-patch16-224",
        {"images": "1280x720"},
        ("9 ms", "120 ms"),
        command=["tritonserver", "--model-repository=/models/triton"],
    ),
    _service(
        "black-forest-labs/FLUX.1-schnell",
        {"images": {"mean": "1024x1024", "steps": 4}},
        ("900 ms", "20 s"),
    ),
)
FAULTS: tuple[tuple[str, object], ...] = (
    ("overrides.gpu", "mi300x-192gb"),
    ("overrides.partition", "1g.10gb"),
    ("overrides.replicas", 1),
    ("tenancy.isolation", "vm"),
    ("tenancy.cut", True),
    ("preemptible", True),
    ("slo.finish_within", "3 h"),
    ("load.images", "512x512"),
    ("load.videos", {"mean": "832x480"}),
    ("overrides.accepted_misses", ["request_latency.p99"]),
)


def drawn(number: int) -> Tree:
    """A manifest as a tree of plain values."""
    draw = Draws(number + 10_000)
    where = draw((_eks, _gke, _aks, _docker, _slurm, _plain))(draw)
    platform = {name: value for name, value in where.items() if value is not None}
    if platform.get("node"):
        platform["node"] = {k: v for k, v in platform["node"].items() if v is not None}
    if "inventory" not in platform and draw((True, True, False)):
        platform["gpus"] = list(dict.fromkeys((draw(GPUS), draw(GPUS))))
    work = {"name": "work", **draw(WORK)(draw)}
    if isinstance(work.get("training"), dict):
        work["training"] = {k: v for k, v in work["training"].items() if v is not None}
    tree: Tree = {"apiVersion": "gpuplan.dev/v1", "name": "drawn", "platform": platform}
    tree["workloads"] = [work]
    for _ in range(draw((0, 0, 1))):
        path, value = draw(FAULTS)
        put(tree, ("workloads", 0, *path.split(".")), value)
    return tree
