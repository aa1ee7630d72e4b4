"""Audio that is written down: as a simulated replica does it; refused where nothing predicts."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from gpuplan.models.load import bundled
from gpuplan.models.model import Speech
from gpuplan.pipeline import compile_files
from gpuplan.plan.model import Workload
from gpuplan.sizing.physics.speech.sharing import between, mean_latency

HEAD = """\
apiVersion: gpuplan.dev/v1
name: speech
platform: {target: kubernetes, provider: aws, gpus: [l4, l40s, h100-sxm-80gb]}
workloads:
- name: calls
  task: inference
  model: openai/whisper-large-v3
"""


def compiled(folder: Path, text: str, *, plan_only: bool = True) -> Any:
    path = folder / "speech.yaml"
    path.write_text(HEAD + text, encoding="utf-8")
    return compile_files([path], plan_only=plan_only)


def workload(folder: Path, text: str) -> Workload:
    (stack,) = compiled(folder, text).stacks
    one: Workload = stack.plan.workloads[0]
    return one


@pytest.mark.parametrize(
    ("name", "parameters"),
    [("openai/whisper-large-v3", 1_543_490_560), ("openai/whisper-large-v3-turbo", 808_878_080)],
)
def test_parameters_are_those_published(name: str, parameters: int) -> None:
    found = bundled(name)
    assert isinstance(found, Speech)
    assert found.parameters == parameters


def simulated(rate: float, alone: float, more: float) -> float:
    """Mean seconds of requests that share a server evenly, of which `n` take alone + more * n."""
    chance, now, done = random.Random(3), 0.0, 0.0
    running, seconds = list[tuple[float, float]](), list[float]()
    following = chance.expovariate(rate)
    while len(seconds) < 30_000:
        count = len(running)
        latency = alone + more * count
        end = now + (running[0][0] - done) * latency if running else float("inf")
        until = min(end, following)
        done += (until - now) / latency if running else 0.0
        now = until
        if end <= following:
            seconds.append(now - running.pop(0)[1])
        else:
            running.append((done + 1, now))
            following = now + chance.expovariate(rate)
    return sum(seconds[3_000:]) / len(seconds[3_000:])


@pytest.mark.parametrize("rate", [0.5, 2.0, 4.0, 4.7])
def test_the_latency_is_that_of_a_simulated_replica(rate: float) -> None:
    """A full replica of many places answers five requests a second."""
    found = mean_latency(rate, lambda n: 1.0 + 0.2 * n, 400)
    assert found == pytest.approx(simulated(rate, 1.0, 0.2), rel=0.1)


def test_more_than_a_full_replica_answers_has_no_latency() -> None:
    assert mean_latency(6.0, lambda n: 1.0 + 0.2 * n, 400) == float("inf")


def test_straight_lines_go_through_their_points() -> None:
    line = between({1.0: 2.0, 4.0: 8.0})
    assert [line(x) for x in (1.0, 2.0, 4.0, 6.0)] == [2.0, 4.0, 8.0, 12.0]


def test_a_service_of_speech_is_planned_whole(tmp_path: Path) -> None:
    load = "  load: {requests_per_second: 2, audio: 70 s}\n  slo: {request_latency: 4 s}\n"
    made = workload(tmp_path, load)
    assert made.serving is not None
    assert made.serving.audio
    assert made.serving.max_model_len == 448
    assert made.serving.max_num_batched_tokens >= 1500
    assert {m.name for m in made.metrics} >= {"request_latency", "audio_rate"}
    assert made.memory.kv_cache_bytes > 0.2e9 * made.serving.max_num_seqs  # the encoder's positions


def test_longer_audio_never_takes_less(tmp_path: Path) -> None:
    text = (
        "  overrides: {gpu: l4}\n  slo: {request_latency: 20 s}\n  load: {requests_per_second: 6, "
    )
    counts = [workload(tmp_path, f"{text}audio: {s} s}}\n").replicas for s in (20, 31, 100, 400)]
    assert counts == sorted(counts)
    assert counts[-1] > counts[0]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("  load: {requests_per_second: 2}\n", "missing field 'audio'"),
        (
            "  load: {requests_per_second: 2, audio: 9 s}\n  slo: {request_latency: {p95: 2 s}}\n",
            "the percentiles of a transcription's latency",
        ),
        (
            "  load: {requests_per_second: 2, audio: 1 min}\n  precision: fp8\n",
            "no engine serves openai/whisper-large-v3 in fp8",
        ),
        (
            "  load: {requests_per_second: 2, audio: 1 min}\n  engine: sglang\n",
            "engine 'sglang' does not do speech",
        ),
    ],
)
def test_what_nothing_does_is_refused(tmp_path: Path, text: str, said: str) -> None:
    found = compiled(tmp_path, text)
    assert not found.stacks
    assert said in "\n".join(d.message for d in found.problems)


def test_an_image_without_audio_is_named(tmp_path: Path) -> None:
    found = compiled(tmp_path, "  load: {requests_per_second: 2, audio: 1 min}\n", plan_only=False)
    (problem,) = (d for d in found.problems if "libraries for audio" in d.message)
    assert "vllm[audio]" in (problem.help or "")


def test_a_batch_of_audio_needs_a_program(tmp_path: Path) -> None:
    path = tmp_path / "batch.yaml"
    text = HEAD.replace("task: inference", "task: batch") + "  load: {requests: 99, audio: 1 min}\n"
    path.write_text(text, encoding="utf-8")
    found = compile_files([path])
    assert "no command for a file of requests" in "".join(d.message for d in found.problems)
