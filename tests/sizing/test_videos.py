"""Services and batches of videos: a time by its frames, percentiles in a queue, measured memory."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from gpuplan.models.load import bundled
from gpuplan.models.model import Diffusion
from gpuplan.pipeline import Result, compile_files
from gpuplan.plan.model import Metric, Plan
from gpuplan.report.summary import summary
from tests.tools.parsers.words import starts

SMALL = "Wan-AI/Wan2.1-T2V-1.3B-Diffusers"
VIDEOS = {"mean": "832x480", "frames": 81, "steps": 50, "memory": "6 GiB"}
RATE = {"mean": 0.005, "peak": 0.02}


def document(platform: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:
    work = {
        "name": "clip",
        "task": "inference",
        "model": SMALL,
        "engine": {"name": "vllm-omni", "image": "vllm/vllm-omni:v0.26.0"},
        "command": ["vllm", "serve", SMALL, "--omni", "--port", "8000"],
        "load": {"requests_per_second": RATE, "videos": VIDEOS},
    }
    where = {"target": "kubernetes", "gpus": ["h100-sxm-80gb"], "node": {"gpus": 8}}
    made = {k: v for k, v in (work | changes).items() if v is not None}
    return {
        "apiVersion": "gpuplan.dev/v1",
        "name": "clips",
        "platform": platform or where,
        "workloads": [made],
    }


def compiled(tree: dict[str, Any], folder: Path) -> Result:
    (folder / "m.yaml").write_text(json.dumps(tree), encoding="utf-8")
    return compile_files([folder / "m.yaml"])


def planned(tree: dict[str, Any], folder: Path) -> Plan:
    result = compiled(tree, folder)
    assert result.stacks, [p.message for p in result.problems]
    return result.stacks[0].plan


def metrics(plan: Plan) -> dict[str, Metric]:
    return {m.name: m for m in plan.workloads[0].metrics}


def number(plan: Plan, name: str) -> float:
    return next(e.value for e in plan.evidence if e.quantity == f"clip.{name}")


def test_modules_are_what_an_engine_was_seen_to_load() -> None:
    """13.7 GiB: the decoder in 32 bits, the others in 16 (vllm-project/vllm-omni#1920)."""
    model = bundled(SMALL)
    assert isinstance(model, Diffusion)
    of = {m.name: m.parameters for m in model.modules}
    loaded = 2 * (of["transformer"] + of["text_encoder"]) + 4 * of["vae"]
    assert loaded / 2**30 == pytest.approx(13.7, abs=0.05)


def test_a_video_takes_as_long_as_its_makers_say(tmp_path: Path) -> None:
    """Five seconds of 480p on an RTX 4090 in about four minutes (README of Wan-Video/Wan2.1)."""
    where = {"target": "kubernetes", "gpus": ["rtx-4090-24gb"], "node": {"gpus": 8}}
    plan = planned(document(where), tmp_path)
    seconds, slow = number(plan, "batch_seconds"), number(plan, "slowness")
    assert seconds / slow**2 < 240 < seconds * slow**2
    assert seconds == pytest.approx(240, rel=0.25)


def test_every_percentile_is_met_and_shown(tmp_path: Path) -> None:
    slo = {"request_latency": {"mean": "3 min", "p50": "3 min", "p95": "8 min", "p99": "9 min"}}
    plan = planned(document(slo=slo), tmp_path)
    found = metrics(plan)
    times = ["request_latency", *(f"request_latency_{p}" for p in ("p50", "p95", "p99"))]
    for name in times:
        limit, at_least = found[name].limit, found[name].probability
        assert limit is not None
        assert at_least is not None
        assert at_least >= 0.8
        assert found[name].estimate.value <= limit
    assert found["request_latency_p50"].estimate.value < found["request_latency_p99"].estimate.value
    shown = " ".join(summary(plan).split())
    assert "latency p50 ≤ 3 min, latency p95 ≤ 8 min, latency p99 ≤ 9 min" in shown
    assert "videos/s" in shown
    assert "images/s" not in shown
    tight = {"request_latency": {"p99": "2 min"}}
    assert planned(document(slo=tight), tmp_path).workloads[0].replicas > plan.workloads[0].replicas


def test_sizes_that_spread_wait_longer(tmp_path: Path) -> None:
    slo = {"request_latency": {"p95": "15 min"}}
    load = {"requests_per_second": RATE, "videos": VIDEOS | {"p95": "1280x720"}}
    alike = planned(document(slo=slo), tmp_path)
    spread = planned(document(slo=slo, load=load), tmp_path)
    assert number(spread, "large.tokens") == pytest.approx(75_600)
    assert number(spread, "service_seconds") > number(alike, "batch_seconds")
    tails = [
        metrics(p)["request_latency_p95"].estimate.value / number(p, "batch_seconds")
        for p in (alike, spread)
    ]
    assert tails[1] > tails[0]


def test_attention_to_all_frames_grows_with_their_square(tmp_path: Path) -> None:
    """Latents of 81 frames are 21, of 161 they are 41; what multiplies tokens alone doubles."""
    load = {"requests_per_second": RATE, "videos": VIDEOS | {"frames": 161}}
    short = planned(document(), tmp_path)
    long = planned(document(load=load), tmp_path)
    ratio = 41 / 21
    assert number(short, "tokens") == 832 * 480 / 256 * 21
    assert number(long, "tokens") == pytest.approx(ratio * number(short, "tokens"))
    grown = number(long, "attention_flop") / number(short, "attention_flop")
    assert grown == pytest.approx(ratio**2)
    assert long.workloads[0].image_generation is not None
    assert long.workloads[0].image_generation.frames == 161


def test_memory_is_what_was_measured_above_the_weights(tmp_path: Path) -> None:
    memory = planned(document(), tmp_path).workloads[0].memory
    assert memory is not None
    assert memory.activations_bytes == 6 * 2**30
    load = {"requests_per_second": RATE, "videos": VIDEOS | {"memory": "70 GiB"}}
    (problem,) = compiled(document(load=load), tmp_path).problems
    assert problem.rule == "GP010"
    assert "gpu_memory" in problem.label


def test_memory_that_nobody_states_is_asked_for(tmp_path: Path) -> None:
    videos = {k: v for k, v in VIDEOS.items() if k != "memory"}
    tree = document(load={"requests_per_second": RATE, "videos": videos})
    (problem,) = compiled(tree, tmp_path).problems
    assert problem.message == "missing field 'memory'"
    assert "torch.cuda.max_memory_allocated()" in problem.help
    ((change,),) = problem.remedies
    videos[str(change.origin.path[-1])] = str(change.value)
    assert planned(tree, tmp_path).workloads[0].replicas


def test_the_engine_is_told_what_a_video_is(tmp_path: Path) -> None:
    result = compiled(document(engine=None, command=None), tmp_path)
    (stack,) = result.stacks
    (start,) = starts(stack.plan)
    assert not [w for w in start.words if "max-generated-image-size" in w], "it limits no video"
    (usual,) = (w for w in start.words if w.startswith("--default-sampling-params="))
    size = {"width": 832, "height": 480, "num_frames": VIDEOS["frames"]}
    told = json.loads(usual.partition("=")[2])
    assert told == {"0": {"num_inference_steps": VIDEOS["steps"], **size}}
    said = [p.message for p in result.problems if p.rule == "GP017"]
    assert any("any size that a request asks for" in m for m in said)
    apart = any("another answers 404" in m for m in said)
    assert apart == (stack.plan.workloads[0].replicas > 1)


def test_a_release_that_is_not_known_to_serve_videos_is_refused(tmp_path: Path) -> None:
    old = {"name": "vllm-omni", "image": "vllm/vllm-omni:v0.16.0"}
    (problem,) = compiled(document(engine=old, command=None), tmp_path).problems
    assert problem.rule == "GP016"
    assert "vllm-omni v0.16.0 is not known to serve videos" in problem.message
    assert compiled(document(engine=None, command=None), tmp_path).stacks


def test_fields_of_images_are_refused_with_those_of_videos(tmp_path: Path) -> None:
    load = {"requests_per_second": RATE, "images": {"mean": "832x480", "steps": 50}}
    problems = compiled(document(load=load), tmp_path).problems
    assert any("needs 'load.videos'" in p.label for p in problems)
    load = {"requests_per_second": RATE, "videos": VIDEOS}
    flux = document(model="black-forest-labs/FLUX.1-dev", engine=None, command=None, load=load)
    problems = compiled(flux, tmp_path).problems
    assert any("needs 'load.images'" in p.label for p in problems)
    assert any("video service, video batch" in p.help for p in problems)


def test_a_batch_makes_one_video_at_a_time(tmp_path: Path) -> None:
    load = {"requests": 4000, "videos": VIDEOS}
    tree = document(task="batch", load=load, slo={"finish_within": "2 d"})
    work = planned(tree, tmp_path).workloads[0]
    assert work.image_generation is not None
    assert work.image_generation.max_num_seqs == 1
    finish = next(m for m in work.metrics if m.name == "time_to_finish")
    assert finish.estimate.value <= 2 * 86_400


def test_other_video_models_are_refused_with_those_that_are_planned(tmp_path: Path) -> None:
    tree = document(model="genmo/mochi-1-preview")
    (problem,) = compiled(tree, tmp_path).problems
    assert problem.rule == "GP012"
    assert "name Wan-AI/" in problem.help
    names = problem.help.removeprefix("name ").partition(",")[0].split(" or ")
    assert all(isinstance(bundled(name), Diffusion) for name in names)
