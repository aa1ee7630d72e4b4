"""Objectives at percentiles and accepted misses, as people write and read them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from gpuplan.pipeline import Result, compile_files
from tests.support.plans import read_plan

BASE = """\
apiVersion: gpuplan.dev/v1
name: chat
platform: {target: kubernetes, gpus: [l40s], node: {gpus: 4}}
workloads:
- name: assistant
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  load: {requests_per_second: 5, input_tokens: {mean: 500, p95: 1500}, output_tokens: 100}
"""
IMAGES = """\
apiVersion: gpuplan.dev/v1
name: pictures
platform: {target: kubernetes, gpus: [h100-sxm-80gb], node: {gpus: 8}}
workloads:
- name: pictures
  task: inference
  model: black-forest-labs/FLUX.1-dev
  load: {requests_per_second: 1, images: {mean: 1024x1024, steps: 28}}
"""
PERCENTILES = "{time_to_first_token: {p50: 1 s, p99: 3 s}, time_per_output_token: {p95: 90 ms}}"


def manifest(folder: Path, slo: str, overrides: str = "", base: str = BASE) -> Path:
    path = folder / "m.yaml"
    more = f"  overrides: {{accepted_misses: {overrides}}}\n" if overrides else ""
    path.write_text(f"{base}  slo: {slo}\n{more}", encoding="utf-8")
    return path


def compiled(folder: Path, slo: str, overrides: str = "", base: str = BASE) -> Result:
    return compile_files([manifest(folder, slo, overrides, base)])


def said(capsys: pytest.CaptureFixture[str]) -> str:
    captured = capsys.readouterr()
    return " ".join((captured.out + captured.err).split())


def test_percentiles_are_named_wherever_they_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = str(tmp_path / "o")
    assert main(["compile", str(manifest(tmp_path, PERCENTILES)), "-o", out]) == 0
    shown = said(capsys)
    for text in ("TTFT p50 ≤ 1 s", "TTFT p99 ≤ 3 s", "TPOT p95 ≤ 90 ms", "mean TPOT "):
        assert text in shown
    stack = tmp_path / "o" / "chat"
    assert (
        "- name: time_to_first_token_p99\n    statistic: p99" in (stack / "plan.yaml").read_text()
    )
    assert "time to first token p99 " in (stack / "README.md").read_text("utf-8")
    assert main(["explain", str(stack), "time_to_first_token_p99"]) == 0
    assert "assistant.time_to_first_token_p99 =" in said(capsys)
    assert main(["explain", str(stack)]) == 0
    assert "time per output token p95 " in said(capsys)
    assert main(["replay", str(stack), "--requests", "300"]) == 0
    shown = said(capsys)
    assert "first token, p99" in shown
    assert "output token, p95" in shown


def test_a_diff_names_the_percentile(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name, limit in (("old", "3 s"), ("new", "2 s")):
        path = manifest(tmp_path, f"{{time_to_first_token: {{p99: {limit}}}}}")
        assert main(["compile", str(path), "-o", str(tmp_path / name)]) == 0
    capsys.readouterr()
    assert main(["diff", str(tmp_path / "old" / "chat"), str(tmp_path / "new" / "chat")]) == 0
    assert "time to first token p99" in said(capsys)


@pytest.mark.parametrize(
    ("slo", "message", "caret"),
    [
        ("{time_to_first_token: {}}", "no limit is written: one of mean, p50, p95, p99", ":9:"),
        ("{time_to_first_token: {p90: 1 s}}", "unknown field 'p90'", "did you mean 'p99'?"),
        ("{request_latency: {p99: 4}}", "'p99': a duration needs a unit", "for example `p99: 2 s`"),
        (
            "{request_latency: [4 s]}",
            "must be a duration, or {mean, p50, p95, p99}",
            "found a list",
        ),
    ],
)
def test_a_wrong_limit_is_one_message_at_its_place(
    slo: str, message: str, caret: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", str(manifest(tmp_path, slo)), "-o", str(tmp_path / "o")]) == 2
    shown = said(capsys)
    assert shown.count("error[") == 1
    assert message in shown
    assert caret in shown


def test_an_accepted_miss_compiles_and_is_marked_everywhere(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slo, out = "{time_to_first_token: {p95: 1 ms}, time_per_output_token: 90 ms}", tmp_path / "o"
    refused = compiled(tmp_path, slo)
    assert refused.stacks == ()
    path = manifest(tmp_path, slo, "[time_to_first_token]")
    assert main(["compile", str(path), "-o", str(out)]) == 0
    shown = said(capsys)
    assert "accepted miss TTFT p95 " in shown
    assert " of 1 ms" in shown
    assert "TTFT p95 ≤ 1 ms (a miss is accepted)" in shown
    assert "accepted_misses time_to_first_token" in shown
    stack = out / "chat"
    marks = {m.name: m.accepted_miss for m in read_plan(stack).workloads[0].metrics}
    assert marks["time_to_first_token"]
    assert not marks["time_per_output_token"]
    assert "an accepted miss" in (stack / "README.md").read_text("utf-8")
    assert main(["check", str(stack)]) == 0
    assert "info[GP205]: assistant: accepted miss: time to first token p95" in said(capsys)
    assert main(["explain", str(stack)]) == 0
    assert "an accepted miss" in said(capsys)
    program = (stack / "workload.py").read_text("utf-8")
    assert "meets mean time per output token" in program
    assert "time to first token" not in program


def test_one_statistic_is_accepted_and_the_others_are_kept(tmp_path: Path) -> None:
    slo = "{time_to_first_token: {p50: 1 s, p99: 1 ms}}"
    (stack,) = compiled(tmp_path, slo, "[time_to_first_token.p99]").stacks
    metrics = {m.name: m for m in stack.plan.workloads[0].metrics}
    assert metrics["time_to_first_token_p99"].accepted_miss
    kept = metrics["time_to_first_token_p50"]
    assert kept.limit == 1
    assert not kept.accepted_miss
    assert compiled(tmp_path, slo, "[time_to_first_token.p50]").stacks == ()


def test_what_is_accepted_and_met_is_a_note(tmp_path: Path) -> None:
    result = compiled(tmp_path, "{time_to_first_token: {p99: 60 s}}", "[time_to_first_token]")
    (stack,) = result.stacks
    assert not any(m.accepted_miss for m in stack.plan.workloads[0].metrics)
    (note,) = [p for p in result.problems if "is accepted" in p.message]
    assert note.severity.value == "info"
    assert note.message == "a miss of 'time_to_first_token.p99' is accepted, and it is met"


def test_what_is_accepted_decides_nothing(tmp_path: Path) -> None:
    slo = "{time_per_output_token: {p99: 24 ms}}"
    kept = compiled(tmp_path, slo.replace("24 ms", "60 s")).stacks
    may = compiled(tmp_path, slo, "[time_per_output_token.p99]").stacks
    assert may[0].plan.workloads[0].gpu_count == kept[0].plan.workloads[0].gpu_count


def test_a_miss_of_no_objective_is_refused_where_it_stands(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = manifest(tmp_path, "{time_to_first_token: {p99: 1 s}}", "[time_to_first_token.p95]")
    assert main(["compile", str(path), "-o", str(tmp_path / "o")]) == 2
    shown = said(capsys)
    assert "a miss of 'time_to_first_token.p95' is accepted, and it has no objective" in shown
    assert "objectives are time_to_first_token.p99" in shown
    assert "m.yaml:10:" in shown
    path = manifest(tmp_path, "{time_to_first_token: 1 s}", "[time_to_first_tokens]")
    assert main(["compile", str(path), "-o", str(tmp_path / "o")]) == 2
    assert "did you mean 'time_to_first_token'?" in said(capsys)


def test_images_have_percentiles_and_accepted_misses(tmp_path: Path) -> None:
    slo = "{request_latency: {mean: 20 s, p99: 1 s}}"
    assert compiled(tmp_path, slo, base=IMAGES).stacks == ()
    (stack,) = compiled(tmp_path, slo, "[request_latency.p99]", IMAGES).stacks
    metrics = {m.name: m for m in stack.plan.workloads[0].metrics}
    assert metrics["request_latency_p99"].accepted_miss
    assert metrics["request_latency_p99"].estimate.value > 1
    assert not metrics["request_latency"].accepted_miss


def test_capacity_names_percentiles_as_every_other_answer_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["capacity", str(manifest(tmp_path, PERCENTILES))]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "time to first token p50 ≤ 1 s, time to first token p99 ≤ 3 s" in shown
    assert "time per output token p95 ≤ 90 ms" in shown


def test_a_replay_does_not_call_an_accepted_miss_met(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slo = "{time_to_first_token: {p95: 1 ms}, time_per_output_token: 90 ms}"
    path, out = manifest(tmp_path, slo, "[time_to_first_token]"), tmp_path / "o"
    assert main(["compile", str(path), "-o", str(out)]) == 0
    capsys.readouterr()
    assert main(["replay", str(out / "chat"), "--requests", "200", "--exit-code"]) == 0
    shown = capsys.readouterr().out
    assert "keeps up; an accepted miss: first token, p95" in shown
    assert "every objective" not in shown


RUN = """\
apiVersion: gpuplan.dev/v1
name: runs
platform: {target: kubernetes, gpus: [h100-sxm-80gb], node: {gpus: 8}}
workloads:
- name: tune
  task: finetuning
  model: meta-llama/Llama-3.1-8B-Instruct
  dataset: {name: mine}
  training: {tokens: 2e8, sequence_length: 4096, global_batch: 64, lora: {rank: 16}}
"""
BULK = """\
apiVersion: gpuplan.dev/v1
name: runs
platform: {target: kubernetes, gpus: [h100-sxm-80gb], node: {gpus: 8}}
workloads:
- name: bulk
  task: batch
  model: meta-llama/Llama-3.1-8B-Instruct
  load: {requests: 1000000, input_tokens: 500, output_tokens: 100}
"""
PICTURES = (
    BULK.replace("Llama-3.1-8B-Instruct", "")
    .replace("model: meta-llama/", "model: black-forest-labs/FLUX.1-dev")
    .replace("input_tokens: 500, output_tokens: 100", "images: {mean: 1024x1024, steps: 28}")
    + "  command: [python, make.py]\n"
)


@pytest.mark.parametrize(
    ("base", "limit", "figure"),
    [
        (RUN, "finish_within: 1 min", "time_to_finish"),
        (RUN, "tokens_per_second: 9e9", "tokens_per_second"),
        (BULK, "finish_within: 1 min", "time_to_finish"),
        (BULK, "tokens_per_second: 9e9", "output_tokens_per_second"),
        (BASE, "tokens_per_second: 9e9", "output_tokens_per_second"),
        (PICTURES, "finish_within: 1 min", "time_to_finish"),
    ],
)
def test_every_objective_may_be_missed_where_that_is_accepted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], base: str, limit: str, figure: str
) -> None:
    (free,) = compiled(tmp_path, "{confidence: 0.8}", "", base).stacks
    path = manifest(tmp_path, f"\n    {limit}", f"[{limit.partition(':')[0]}]", base)
    assert main(["compile", str(path), "-o", str(tmp_path / "o")]) == 0
    shown = said(capsys)
    assert "(a miss is accepted)" in shown
    assert "accepted miss" in shown
    line = path.read_text("utf-8").splitlines().index(f"    {limit}") + 1
    assert f"m.yaml:{line}:" in shown[shown.index("info[GP205]") :]
    stack = next((tmp_path / "o").iterdir())
    work = read_plan(stack).workloads[0]
    assert [m.name for m in work.metrics if m.accepted_miss] == [figure]
    assert work.gpu_count == free.plan.workloads[0].gpu_count  # it decides nothing
    assert main(["explain", str(stack)]) == 0
    assert "an accepted miss" in said(capsys)


def test_a_deadline_is_kept_where_a_later_objective_may_be_missed(tmp_path: Path) -> None:
    base = RUN + "  deadline: 2 h\n"
    (stack,) = compiled(tmp_path, "{finish_within: 1 h}", "[finish_within]", base).stacks
    metric = next(m for m in stack.plan.workloads[0].metrics if m.name == "time_to_finish")
    assert metric.estimate.value < 7200
    assert metric.limit == 3600


def test_findings_about_objectives_stand_at_their_own_lines(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    slo = "\n    time_to_first_token: 1 s\n    request_latency: {p50: 1 min, p99: 1 ms}"
    path, out = manifest(tmp_path, slo, "[request_latency.p99]"), str(tmp_path / "o")
    assert main(["compile", str(path), "-o", out]) == 0
    text = capsys.readouterr().err
    found = text[text.index("info[GP205]") :].splitlines()
    assert found[1].endswith("m.yaml:11:40")
    assert found[3] == "11 |     request_latency: {p50: 1 min, p99: 1 ms}"
    main(["check", f"{out}/chat", "--manifest", str(path)])
    assert "m.yaml:11:40" in capsys.readouterr().out


def test_capacity_says_finish_within_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["capacity", str(manifest(tmp_path, "{finish_within: 10 h}", "", BULK))]) == 0
    assert "finish within 10 h" in said(capsys)


def test_a_split_keeps_percentiles_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The stricter the statistic, the less two pools serve."""
    rates = []
    for slo in (
        "{time_to_first_token: {p50: 500 ms}}",
        "{time_to_first_token: {p95: 500 ms}}",
        "{time_to_first_token: {p99: 500 ms}}",
        "{time_to_first_token: {p99: 500 ms}, request_latency: {p99: 3 s}}",
    ):
        assert main(["capacity", str(manifest(tmp_path, slo)), "--split", "--json"]) == 0
        (answer,) = json.loads(capsys.readouterr().out)["workloads"]
        rates.append(answer["capacities"][0]["split"]["assured"])
    assert rates == sorted(rates, reverse=True)
    assert len(set(rates)) == len(rates)


@pytest.mark.parametrize("name", ["tencent/HunyuanVideo", "Wan-AI/Wan2.1-T2V-14B"])
def test_videos_are_refused_in_so_many_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    base = IMAGES.replace("black-forest-labs/FLUX.1-dev", name)
    path = manifest(tmp_path, "{request_latency: 600 s}", "", base)
    assert main(["compile", str(path), "-o", str(tmp_path / "o")]) == 2
    shown = said(capsys)
    assert f"error[GP012]: '{name}' makes videos, and what its modules hold is not known" in shown
    assert "name Wan-AI/Wan2.1-T2V-1.3B-Diffusers or Wan-AI/Wan2.1-T2V-14B-Diffusers" in shown
    assert "unknown model" not in shown
    path.write_text(path.read_text("utf-8").replace("steps: 28", "steps: 28, frames: 49"), "utf-8")
    assert main(["compile", str(path), "-o", str(tmp_path / "o")]) == 2
    assert "this is a field of 'videos'" in said(capsys)
