"""Audio that is written down: as a simulated replica does it; refused where nothing predicts."""

from __future__ import annotations

import random
from collections import deque
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from gpuplan.models.load import bundled
from gpuplan.models.model import Speech
from gpuplan.pipeline import compile_files
from gpuplan.plan.model import Workload
from gpuplan.plan.times import STATISTICS, TIMES, Statistic
from gpuplan.sizing.kinds.speech import search
from gpuplan.sizing.physics.speech.sharing import between, latencies

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


Latency = Callable[[float], float]
KINDS: dict[str, Latency] = {
    "little slower together": lambda n: 1 + 0.03 * (n - 1),
    "half slower": lambda n: 0.5 + 0.5 * n,
    "evenly shared": lambda n: n,
    "from some on": lambda n: max(1.0, n / 4),
}


def simulated(rate: float, latency: Latency, places: int) -> dict[Statistic, float]:
    """Seconds of requests of one length that share a server evenly, the others in a line."""
    chance, now, done = random.Random(3), 0.0, 0.0
    running, line, seconds = list[tuple[float, float]](), deque[float](), list[float]()
    following = chance.expovariate(rate)
    while len(seconds) < 40_000:
        speed = 1 / latency(len(running)) if running else 0.0
        end = now + (running[0][0] - done) / speed if running else float("inf")
        until = min(end, following)
        done += (until - now) * speed
        now = until
        if end <= following:
            seconds.append(now - running.pop(0)[1])
            if line:
                running.append((done + 1, line.popleft()))
        else:
            (running.append((done + 1, now)) if len(running) < places else line.append(now))
            following = now + chance.expovariate(rate)
    kept = sorted(seconds[2_000:])
    found: dict[Statistic, float] = {"mean": sum(kept) / len(kept)}
    parts: dict[Statistic, float] = {"p50": 0.5, "p95": 0.95, "p99": 0.99}
    return found | {name: kept[int(len(kept) * part)] for name, part in parts.items()}


@pytest.mark.parametrize("load", [0.1, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("places", [1, 2, 8, 64])
@pytest.mark.parametrize("kind", KINDS)
def test_latencies_are_those_of_a_simulated_replica(kind: str, places: int, load: float) -> None:
    latency = KINDS[kind]
    rate = load * places / latency(places)
    found, true = latencies(rate, latency, places), simulated(rate, latency, places)
    assert found["mean"] == pytest.approx(true["mean"], rel=0.07)
    assert found["p50"] == pytest.approx(true["p50"], rel=0.3)
    assert found["p95"] == pytest.approx(true["p95"], rel=0.2)
    assert found["p99"] == pytest.approx(true["p99"], rel=0.35)


def test_latencies_grow_with_the_load() -> None:
    rising = [latencies(rate, lambda n: 1 + 0.2 * n, 12) for rate in (0.01, 0.9, 2.0, 3.0, 3.5)]
    for statistic in STATISTICS:
        values = [found[statistic] for found in rising]
        assert values == sorted(values)
    for found in rising:
        assert found["p50"] <= found["mean"]
        assert found["p50"] <= found["p95"] <= found["p99"]


def test_more_than_a_full_replica_answers_has_no_latency() -> None:
    assert set(latencies(6.0, lambda n: 1.0 + 0.2 * n, 400).values()) == {float("inf")}


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


def test_every_percentile_is_held(tmp_path: Path) -> None:
    text = "  overrides: {gpu: l4}\n  load: {requests_per_second: 6, audio: 70 s}\n  slo: "
    limits = "mean: 9 s, p50: 9 s, p95: 12 s, p99: 14 s"
    made = workload(tmp_path, f"{text}{{request_latency: {{{limits}}}}}\n")
    times = {m.name: m for m in made.metrics if m.name in TIMES}
    assert [m.statistic for m in times.values()] == list(STATISTICS)
    assert all(m.limit is not None and m.estimate.value <= m.limit for m in times.values())
    alone = workload(tmp_path, text + "{request_latency: 9 s}\n")
    tight = workload(tmp_path, text + "{request_latency: {mean: 9 s, p99: 5 s}}\n")
    assert alone.replicas < tight.replicas


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


@pytest.mark.parametrize(("audio", "windows"), [("30 s", 1), ("31 s", 2), ("90 s", 3)])
def test_a_batch_takes_as_long_as_all_its_windows(audio: str, windows: int, tmp_path: Path) -> None:
    path = tmp_path / "batch.yaml"
    text = HEAD.replace("task: inference", "task: batch") + "  overrides: {gpu: l4, replicas: 2}\n"
    path.write_text(f"{text}  load: {{requests: 90000, audio: {audio}}}\n", encoding="utf-8")
    (stack,) = compile_files([path], plan_only=True).stacks
    known = {e.quantity: e.value for e in stack.plan.evidence}
    seconds = 90_000 * windows * known["calls.window_seconds"] / 2
    assert known["calls.time_to_finish"] == pytest.approx(seconds)


@pytest.mark.parametrize("windows", [1.0, 3.0])
@pytest.mark.parametrize("part", [0.2, 0.6, 0.9])
def test_requests_beside_each_other_take_what_their_windows_do_at_powers_of_two(
    windows: float, part: float
) -> None:
    """And between these on straight lines: 40 places, of which a request takes its windows."""
    seconds = {1.0: 1.0, 2.0: 1.1, 4.0: 1.5, 8.0: 3.0, 16.0: 3.5, 32.0: 9.0, 40.0: 20.0}

    class Writing:
        def at(self, places: float) -> dict[str, float]:
            return {"windows": windows, "window_latency": seconds[places]}

    told = search.times_of(Writing(), 40.0)  # type: ignore[arg-type]
    requests = int(40 // windows)

    def shared(count: float) -> float:
        return float(np.interp(count * windows, [*seconds], [*seconds.values()]))

    rate = part * requests / shared(requests)
    expected = latencies(rate, shared, requests)
    assert told(rate) == pytest.approx(
        {
            "request_latency": expected["mean"],
            **{f"request_latency_{s}": expected[s] for s in ("p50", "p95", "p99")},
        }
    )
