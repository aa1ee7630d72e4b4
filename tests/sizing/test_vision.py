"""Models that read images: their networks, what holds a replica up, and what is refused."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.errors import Rejected
from gpuplan.models.images.networks import find_network
from gpuplan.models.load import known
from gpuplan.models.model import Vision
from gpuplan.models.vision import vision
from gpuplan.pipeline import compile_files
from gpuplan.plan.model import Workload
from gpuplan.sizing.data.vision import UNSEEN_FACTORS
from gpuplan.sizing.physics.vision.network import INFERENCE, vision_scope
from gpuplan.source import Origin

HEAD = """\
apiVersion: gpuplan.dev/v1
name: vision
platform: {target: kubernetes, provider: aws, gpus: [l4, l40s, h100-sxm-80gb]%s}
workloads:
- name: tagger
"""
TRITON = "  command: [tritonserver, --model-repository=/models/triton]\n"
VIT = f"  task: inference\n  model: google/vit-large-patch16-224\n{TRITON}"
CLIP = "  task: inference\n  model: openai/clip-vit-large-patch14\n"
DETR = """\
  task: batch
  load: {requests: 9, images: 64x64}
  model: {name: a/b, config: {architectures: [DetrForObjectDetection]}}
"""
BATCH = "  task: batch\n  model: facebook/dinov2-large\n  command: [python3, /requests/embed.py]\n"


def compiled(folder: Path, text: str, *, storage: str = "", plan_only: bool = True) -> Any:
    path = folder / "vision.yaml"
    path.write_text(HEAD % storage + text, encoding="utf-8")
    return compile_files([path], plan_only=plan_only)


def workload(folder: Path, text: str, *, storage: str = "") -> Workload:
    (stack,) = compiled(folder, text, storage=storage).stacks
    one: Workload = stack.plan.workloads[0]
    return one


def value(work: Workload, name: str) -> float:
    return next(m.estimate.value for m in work.metrics if m.name == name)


CONFIGS: dict[str, dict[str, Any]] = {
    "vit_large_patch16_384": {
        "architectures": ["ViTForImageClassification"],
        "hidden_size": 1024,
        "num_hidden_layers": 24,
        "num_attention_heads": 16,
        "intermediate_size": 4096,
        "image_size": 384,
        "patch_size": 16,
    },
    "vit_large_patch14_clip_quickgelu_224": {
        "architectures": ["CLIPModel"],
        "vision_config": {
            "hidden_size": 1024,
            "num_hidden_layers": 24,
            "num_attention_heads": 16,
            "intermediate_size": 4096,
            "patch_size": 14,
        },
        "text_config": {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072},
    },
    "vit_base_patch14_dinov2": {"architectures": ["Dinov2Model"]},
    "vit_base_patch16_siglip_224": {
        "architectures": ["SiglipModel"],
        "vision_config": {},
        "text_config": {},
    },
}


@pytest.mark.parametrize("name", CONFIGS)
def test_a_config_gives_what_timm_profiled(name: str) -> None:
    made = vision(CONFIGS[name], "own/model", None, "a test", Origin("config.json"))
    profiled = find_network(name)
    assert profiled is not None
    known, own = profiled.at(made.pixels), made.profile
    assert own.macs == pytest.approx(known.macs, rel=0.02)
    assert own.activations == pytest.approx(known.activations, rel=0.02)
    assert (made.network.layers, made.network.width) == (profiled.layers, profiled.width)
    assert made.network.variant == profiled.variant
    assert made.network.class_token == profiled.class_token
    assert made.network.parameters == pytest.approx(profiled.parameters, rel=0.09)  # heads apart


def test_both_towers_of_clip_are_counted() -> None:
    config = CONFIGS["vit_large_patch14_clip_quickgelu_224"]
    made = vision(config, "own/clip", None, "a test", Origin("config.json"))
    assert made.parameters == pytest.approx(427_616_513, rel=0.005)
    named = known("openai/clip-vit-large-patch14")
    assert isinstance(named, Vision)
    assert named.parameters == pytest.approx(427_616_513, rel=0.005)


@pytest.mark.parametrize(
    ("name", "layers"),
    [("google/vit-base-patch16-224", 12), ("facebook/dinov2-giant", 40), ("resnet-50", 0)],
)
def test_blocks_are_counted_by_their_attention(name: str, layers: int) -> None:
    found = known(name)
    assert isinstance(found, Vision)
    assert found.network.layers == layers


def test_any_network_of_timm_is_known_at_the_size_of_its_name() -> None:
    found = known("timm/vit_large_patch16_384.augreg_in21k_ft_in1k")
    assert isinstance(found, Vision)
    assert found.pixels == 384
    assert known("timm/no_such_network") is None
    config = {
        "architecture": "resnet50",
        "pretrained_cfg": {"input_size": [3, 288, 288]},
    }
    assert vision(config, "timm/resnet50", None, "a test", Origin("c")).pixels == 288


@pytest.mark.parametrize(
    "wrong", [{"patch_size": 512}, {"hidden_size": 0}, {"num_hidden_layers": "many"}]
)
def test_impossible_dimensions_are_refused(wrong: dict[str, Any]) -> None:
    config = CONFIGS["vit_large_patch16_384"] | wrong
    with pytest.raises(Rejected):
        vision(config, "own/model", None, "a test", Origin("config.json"))


# Images per second of one A100 in PyTorch 1.12, whose attention is not fused, and compiled by
# AITemplate, whose whole blocks are (facebookincubator/AITemplate, examples/04_vit, 01_resnet-50).
A100 = {
    "vit_base_patch16_224": (224, 2226.1, 5273.0),
    "vit_large_patch16_384": (384, 221.1, 479.2),
    "resnet50": (224, 5026.4, 15444.6),
}


@pytest.mark.parametrize("name", A100)
def test_a_gpu_that_was_not_measured_lies_between_eager_and_compiled(name: str) -> None:
    pixels, eager, compiled = A100[name]
    network, gpu = find_network(name), load_catalog().gpu("a100-sxm-40gb")
    assert network is not None
    assert gpu is not None
    scope, measured = vision_scope(network, network.at(pixels), gpu, "eager 2.9")
    assert not measured
    rate = 1 / INFERENCE(scope)["image_seconds"]
    assert eager < rate < compiled
    assert rate < eager / UNSEEN_FACTORS[0] * 1.05


def test_a_service_is_planned_whole(tmp_path: Path) -> None:
    load = "  load: {requests_per_second: {mean: 100, peak: 400}, images: 640x480}\n"
    made = workload(tmp_path, VIT + load + "  slo: {request_latency: {p95: 150 ms}}\n")
    assert made.serving is not None
    assert made.serving.images == 1
    assert made.serving.max_num_seqs == 256
    assert made.precision == "fp16"
    assert {m.name for m in made.metrics} >= {
        "request_latency",
        "request_latency_p95",
        "images_per_second",
        "gpu_images_per_second",
        "decoded_images_per_second",
    }
    assert value(made, "images_per_second") >= 400
    assert made.memory.weights_bytes == 2 * 304_330_000


def test_several_images_of_a_request_count(tmp_path: Path) -> None:
    def replicas(load: str) -> int:
        text = f"  load: {{requests_per_second: 200, images: {load}}}\n  overrides: {{gpu: l4}}\n"
        return workload(tmp_path, VIT + text).replicas

    one, four = replicas("640x480"), replicas("{mean: 640x480, count: 4}")
    assert four == pytest.approx(4 * one, abs=3)


def test_large_images_are_held_up_by_the_cores(tmp_path: Path) -> None:
    """The GPU sees them cut to size; the host decodes every pixel."""
    load = "  load: {requests_per_second: 300, images: %s}\n  overrides: {gpu: l4}\n"
    small = workload(tmp_path, VIT + load % "320x240")
    large = workload(tmp_path, VIT + load % "4000x3000")
    assert small.bound_by in ("compute", "memory bandwidth")
    assert large.bound_by == "decoding on CPU cores"
    assert large.replicas > small.replicas
    assert value(small, "gpu_images_per_second") == value(large, "gpu_images_per_second")


def test_more_cores_are_taken_where_they_decode_more(tmp_path: Path) -> None:
    load = "  load: {requests_per_second: 2000, images: 1920x1080}\n  overrides: {gpu: %s}\n"
    on_h100 = workload(tmp_path, VIT + load % "h100-sxm-80gb")
    usual = 6
    assert on_h100.resources.cpu_cores > usual
    fewer = load.replace("%s", "h100-sxm-80gb, cpu_cores_per_gpu: 4")
    held = workload(tmp_path, VIT + fewer)
    assert held.replicas > on_h100.replicas
    assert held.bound_by == "decoding on CPU cores"


def test_a_batch_is_held_up_by_its_storage(tmp_path: Path) -> None:
    load = "  load: {requests: 50000000, images: 640x480}\n  slo: {finish_within: 48 h}\n"
    fast = workload(tmp_path, BATCH + load, storage=", storage: {bandwidth: 20 GB/s}")
    slow = workload(tmp_path, BATCH + load, storage=", storage: {bandwidth: 20 MB/s}")
    assert fast.bound_by != "storage"
    assert slow.bound_by == "storage"
    assert value(slow, "stored_images_per_second") < value(slow, "gpu_images_per_second")
    stored = next(m.estimate for m in slow.metrics if m.name == "stored_images_per_second")
    assert stored.low == stored.value == stored.high, "what the storage gives is stated"
    assert value(slow, "time_to_finish") <= 48 * 3600
    requests = next(v for v in slow.volumes if v.purpose == "requests")
    files = 50_000_000 * 640 * 480 * 0.5586  # bytes of ImageNet's JPEGs, each pixel
    assert files < requests.size_bytes < 1.2 * files


def test_a_step_never_falls_below_its_launches(tmp_path: Path) -> None:
    """One image on an idle replica takes what 24 layers take to launch, and its decoding."""
    load = "  load: {requests_per_second: 1, images: 224x224}\n  overrides: {gpu: h100-sxm-80gb}\n"
    made = workload(tmp_path, VIT + load)
    assert 9.9e-3 < value(made, "request_latency") < 30e-3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (VIT + "  load: {requests_per_second: 2}\n", "missing field 'images'"),
        (
            VIT + "  load: {requests_per_second: 2, images: {mean: 64x64, steps: 3}}\n",
            "'load.images.steps' is not used by an inference",
        ),
        (
            VIT + "  precision: fp8\n  load: {requests_per_second: 2, images: 64x64}\n",
            "how fast google/vit-large-patch16-224 is in fp8",
        ),
        (
            VIT.replace("google/vit-large-patch16-224", "timm/convnext_base")
            + "  load: {requests_per_second: 2, images: 64x64}\n",
            "the latency of timm/convnext_base",
        ),
        (
            VIT + "  engine: vllm\n  load: {requests_per_second: 2, images: 64x64}\n",
            "engine 'vllm' does not read images with a ViTForImageClassification",
        ),
        (
            CLIP + "  load: {requests_per_second: 2, images: {mean: 64x64, count: 3}}\n",
            "engine 'vllm' gives one vector for a request",
        ),
        (
            VIT + "  engine: sglang\n  load: {requests_per_second: 2, images: 64x64}\n",
            "engine 'sglang' does not do vision",
        ),
        (
            "  task: batch\n  model: ultralytics/yolo11x\n  load: {requests: 9, images: 64x64}\n",
            "how fast 'ultralytics/yolo11x' finds objects is not predicted",
        ),
        (
            DETR,
            "how fast 'a/b' finds objects is not predicted",
        ),
    ],
)
def test_what_cannot_be_is_refused(tmp_path: Path, text: str, said: str) -> None:
    made = compiled(tmp_path, text)
    assert not made.stacks
    assert any(said in d.message for d in made.problems), made.problems


def test_triton_serves_the_network_that_lies_on_the_volume(tmp_path: Path) -> None:
    text = VIT.replace(TRITON, "") + "  load: {requests_per_second: 2, images: 64x64}\n"
    made = compiled(tmp_path, text, plan_only=False)
    (stack,) = made.stacks
    (work,) = stack.plan.workloads
    program = next(f.text for f in stack.files if f.path == "workload.py")
    step = f"--backend-config=onnxruntime,default-max-batch-size={work.serving.max_num_seqs}"
    wanted = ("tritonserver", "--model-repository=/models/triton", "--http-port=8000", step)
    assert all(f'"{word}"' in program for word in wanted)
    assert "/v2/health/ready" in program
    assert "--exit-timeout-secs=" in program
    told = "\n".join(d.message for d in made.problems)
    assert "/models/triton/vit-large-patch16-224/1/model.onnx, which must be there first" in told


def test_vectors_of_images_are_served_by_vllm(tmp_path: Path) -> None:
    text = CLIP + "  load: {requests_per_second: 20, images: 640x480}\n"
    (stack,) = compiled(tmp_path, text, plan_only=False).stacks
    program = next(f.text for f in stack.files if f.path == "workload.py")
    assert "--runner=pooling" in program
    assert "--max-num-seqs=256" in program
    assert "--max-model-len" not in program
    serving = stack.plan.workloads[0].serving
    assert serving.images == 1
    assert serving.max_num_batched_tokens == serving.max_num_seqs * serving.max_model_len > 0


def test_a_partition_reads_as_fast_as_its_part_of_the_gpu(tmp_path: Path) -> None:
    load = (
        "  load: {requests_per_second: 20, images: 320x240}\n  overrides: {gpu: h100-sxm-80gb%s}\n"
    )
    whole = workload(tmp_path, CLIP + load % "")
    part = workload(tmp_path, CLIP + load % ", partition: 1g.10gb")
    assert part.partition == "1g.10gb"
    rates = [value(work, "gpu_images_per_second") for work in (part, whole)]
    assert rates[0] == pytest.approx(rates[1] / 7, rel=1e-4)
    assert part.memory.capacity_bytes < whole.memory.capacity_bytes / 7


def test_more_requests_never_take_fewer_replicas(tmp_path: Path) -> None:
    text = "  slo: {request_latency: {p95: 80 ms}}\n  overrides: {gpu: l4}\n"
    counts = [
        workload(
            tmp_path, f"{VIT}  load: {{requests_per_second: {rate}, images: 640x480}}\n{text}"
        ).replicas
        for rate in (1, 50, 200, 201, 900, 4000)
    ]
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]
