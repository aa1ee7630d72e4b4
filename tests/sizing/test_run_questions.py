"""Inverse questions of a run, failures at scale, and the nearest answer to what cannot be."""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.candidates.sized import Sized
from gpuplan.sizing.evidence.formula import Quantity
from gpuplan.sizing.kinds.training import failures
from gpuplan.sizing.kinds.training.inverse import assured, nodes_in_time, runs, runs_on
from tests.sizing.test_parallel_runs import LLAMA_405B, demand
from tests.support.sizing_cases import FULL_8B, site, size, sized, wanted

STORED = Quantity(10e9, "B/s", "test")
MANIFEST = """apiVersion: gpuplan.dev/v1
name: large
platform:
  target: kubernetes
  gpus: [h100-sxm-80gb]
  node: {gpus: 8, count: 128}
  fabric: {kind: infiniband, bandwidth_per_gpu: 400 Gb/s}
  storage: {bandwidth: 10 GB/s}
  prices: {h100-sxm-80gb: $4/hour}
workloads:
- name: pretrain
  task: training
  model: meta-llama/Llama-3.1-405B
  precision: bf16
  training: {sequence_length: 8192, global_batch: 1024, tokens: 2e12}
  slo: {finish_within: 21 d}
"""


@pytest.fixture
def manifest(tmp_path: Path) -> str:
    path = tmp_path / "large.yaml"
    path.write_text(MANIFEST, "utf-8")
    return str(path)


def test_a_run_that_cannot_end_in_time_gets_the_nearest_answer(
    manifest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not a refusal for memory: so many days instead, what they cost and draw."""
    assert main(["compile", manifest, "--plan-only"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "gpu_memory" not in said
    needs = re.search(r"time_to_finish: needs ([\d.]+) d", said)
    within = re.search(r"`slo.finish_within: (\d+) d` instead of 21 d takes 1024 × h100", said)
    assert needs is not None, said
    assert within is not None, said
    assert 100 < float(needs[1]) <= int(within[1]) < 160
    assert "717 kW of GPUs" in said
    priced = re.search(r"at \$4,096/h, \$([\d,]+) in ([\d.]+) d, 717 kW of GPUs", said)
    assert priced is not None
    paid = float(priced[1].replace(",", ""))
    assert paid == pytest.approx(4096 * 24 * float(priced[2]), rel=0.01)


FABRIC = "  fabric: {kind: infiniband, bandwidth_per_gpu: 400 Gb/s}\n"


def test_without_a_fabric_that_is_said_with_what_one_would_give(
    manifest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    Path(manifest).write_text(MANIFEST.replace(FABRIC, ""), "utf-8")
    assert main(["compile", manifest, "--plan-only"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "not used without `platform.fabric`" in said
    assert re.search(r"and `slo.finish_within: 1[34]\d d", said)
    assert "takes 1024 × h100-sxm-80gb" in said
    assert main(["capacity", manifest]) in (0, 1)
    said = " ".join(capsys.readouterr().out.split())
    assert "none of them holds it" in said
    assert "not used without `platform.fabric`" in said


def test_nodes_that_stand_by_are_none_of_those_that_a_run_takes() -> None:
    """Of four nodes two stand by: the soonest run has two, as without those two."""
    text = FULL_8B.replace("tokens: 1e9", "tokens: 1e9, spare_nodes: SPARES")
    with_spares, without = (wanted(text.replace("SPARES", str(count))) for count in (2, 0))
    assert isinstance(with_spares, TrainingDemand)
    assert isinstance(without, TrainingDemand)
    for count, asked in ((4, with_spares), (2, without)):
        (group,) = runs_on(asked, site("h100-sxm-80gb", node_count=count))
        assert max(c.nodes for c in group) == 2
    (answer,) = runs(with_spares, site("h100-sxm-80gb", node_count=4), None, None)
    (fastest,) = (r for r in answer.runs if r.purpose == "fastest")
    assert fastest.nodes == 2


def test_nothing_is_cheaper_than_the_cheapest(
    manifest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["capacity", manifest, "--json"])
    (answer,) = json.loads(capsys.readouterr().out)["workloads"]
    runs = [r for item in answer["runs"] for r in item["runs"]]
    cheapest = next(r["usd"] for r in runs if r["purpose"] == "cheapest")
    assert cheapest == min(r["usd"] for r in runs)


def test_the_questions_of_a_run_are_answered(
    manifest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["capacity", manifest, "--budget", "$2,000,000", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["workloads"]
    (found,) = answer["runs"]
    told = {run["purpose"]: run for run in found["runs"]}
    fastest, cheapest = told["fastest"], told["cheapest"]
    assert (fastest["gpus"], fastest["nodes"]) == (1024, 128)
    assert 110 * 86400 < fastest["seconds"]["value"] < 150 * 86400
    assert 0.35 < fastest["utilization"] < 0.5
    assert fastest["checkpoint_bytes"] == pytest.approx(405.85e9 * 14, rel=0.001)
    assert fastest["usd"] == pytest.approx(1024 * 4 * fastest["seconds"]["value"] / 3600, rel=1e-4)
    assert cheapest["usd"] <= 1.25 * fastest["usd"]
    part = 2_000_000 / fastest["usd"]
    assert fastest["tokens_in_budget"] == pytest.approx(part * fastest["tokens"], rel=1e-4)
    assert ("in_time" in told) != ("soonest" in told)
    assert main(["capacity", manifest]) == 0
    assert "a checkpoint takes 5.17 TiB" in capsys.readouterr().out


def test_no_run_of_the_frontier_is_beaten_in_time_and_money(
    manifest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path(manifest).read_text("utf-8")
    text = text.replace("[h100-sxm-80gb]", "[h100-sxm-80gb, h200-sxm-141gb]")
    text = text.replace("$4/hour}", "$4/hour, h200-sxm-141gb: $5/hour}")
    Path(manifest).write_text(text, "utf-8")
    assert main(["capacity", manifest, "--frontier", "--json"]) == 0
    (answer,) = json.loads(capsys.readouterr().out)["workloads"]
    points = [(run["assured"], run["usd"]) for item in answer["runs"] for run in item["runs"]]
    assert len(points) > 1
    assert points == sorted(points)
    assert [usd for _, usd in points] == sorted((usd for _, usd in points), reverse=True)
    assert main(["capacity", manifest, "--frontier"]) == 0
    assert "are beaten by none in time and money" in capsys.readouterr().out


def test_explain_tells_the_layouts_that_lost(
    manifest: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = Path(manifest).read_text("utf-8").replace("21 d", "150 d")
    text = text.replace("400 Gb/s}", "400 Gb/s, resource: rdma/rdma_shared_device_a}")
    Path(manifest).write_text(text, "utf-8")
    assert main(["compile", manifest, "-o", str(tmp_path / "stacks")]) == 0
    capsys.readouterr()
    assert main(["explain", str(tmp_path / "stacks" / "large")]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "other layouts on as many GPUs" in said
    assert "data parallel: 2.3" in said  # TiB on a GPU
    assert "more than fits" in said
    assert " a step " in said
    assert main(["explain", str(tmp_path / "stacks" / "large"), "best_checkpoint_interval"]) == 0
    assert "sqrt(2 * checkpoint_seconds / failures_per_second)" in capsys.readouterr().out


@pytest.mark.parametrize("budget", ["0", "free", "$", "-5", "1e9"])
def test_a_budget_is_an_amount(
    budget: str, manifest: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["capacity", manifest, f"--budget={budget}"])
    assert ended.value.code == 2
    assert "is no amount of USD" in capsys.readouterr().err


def test_the_gpus_that_end_a_run_in_time_do_and_fewer_do_not() -> None:
    asked = wanted(FULL_8B.replace("finish_within: 2 d", "finish_within: 5 h"))
    where = site("h100-sxm-80gb")
    (found,) = runs(asked, where, None, None)  # type: ignore[arg-type]
    in_time = next(run for run in found.runs if run.purpose == "in_time")
    assert in_time.assured <= 5 * 3600
    text = FULL_8B.replace("finish_within: 2 d", "finish_within: 5 h")
    enough = sized(f"{text}    overrides: {{gpu_count: {in_time.gpus}}}\n", where)
    assert enough.workload.gpu_count == in_time.gpus
    few = size(wanted(f"{text}    overrides: {{gpu_count: {in_time.gpus // 2}}}\n"), where)
    assert not isinstance(few, Sized)


@pytest.mark.parametrize("hours", [3, 5, 10, 40])
def test_the_fewest_nodes_that_end_a_run_in_time_do_and_half_of_them_do_not(hours: int) -> None:
    text, where = FULL_8B.replace("2 d", f"{hours} h"), site("h100-sxm-80gb")

    def answer(nodes: int) -> object:
        return size(wanted(f"{text}    overrides: {{gpu_count: {8 * nodes}}}\n"), where)

    asked = wanted(text)
    assert isinstance(asked, TrainingDemand)
    nodes = nodes_in_time(asked, where, where.gpus[0])
    assert nodes is not None
    assert isinstance(answer(nodes), Sized)
    assert nodes == 1 or not isinstance(answer(nodes // 2), Sized)
    asked = wanted(FULL_8B.replace("2 d", "1 min"))
    assert isinstance(asked, TrainingDemand)
    assert nodes_in_time(asked, where, where.gpus[0]) is None


def test_a_run_that_ends_just_at_its_limit_ends_in_time() -> None:
    asked, where = wanted(FULL_8B), site("h100-sxm-80gb")
    assert isinstance(asked, TrainingDemand)
    assert asked.limit.finish_within is not None
    (tried,) = runs_on(asked, where)
    last = next(c for c in tried if c.feasible and c.nodes == 4)
    exactly = replace(asked.limit.finish_within, value=assured(asked, last))
    asked = replace(asked, limit=replace(asked.limit, finish_within=exactly))
    (found,) = runs(asked, where, None, None)
    assert [run.gpus for run in found.runs if run.purpose == "in_time"] == [last.gpus]
    assert nodes_in_time(asked, where, where.gpus[0]) == last.nodes


def test_failures_and_checkpoints_lengthen_a_run_over_nodes() -> None:
    """By Young's interval; 419 interruptions in 54 days of 2,048 nodes."""
    where = replace(site("h100-sxm-80gb", node_count=128), storage_bytes_per_s=STORED)
    asked = demand(LLAMA_405B)
    scope = {
        "parameters": Quantity(405.85e9, "1", "test"),
        "optimizer_bytes_each": Quantity(12, "B", "test"),
    }
    write = 405.85e9 * 14 / (10e9 * 128)
    rate = 419 / (54 * 86400 * 2048) * 128
    every = math.sqrt(2 * write / rate)
    lost = write / every + rate * (every / 2 + 600 + write + 120)
    found = failures.lost_share(asked, where, scope, 128)
    assert found.value == pytest.approx(lost)
    assert 0.005 < lost < 0.02
    hourly = replace(asked, interval_is_written=True)
    assert failures.lost_share(hourly, where, scope, 128).value > lost
    assert failures.lost_share(asked, where, scope, 1).value == 0
    unknown = replace(where, storage_bytes_per_s=None)
    assert failures.lost_share(asked, unknown, scope, 128).value == 0


def test_what_is_recorded_of_failures_is_what_the_search_counted() -> None:
    where = replace(site("h100-sxm-80gb"), storage_bytes_per_s=STORED)
    answer = sized(FULL_8B.replace("finish_within: 2 d", "finish_within: 3 h"), where)
    assert isinstance(answer, Sized)
    assert answer.workload.nodes_per_replica > 1
    got = {e.quantity.partition(".")[2]: e.value for e in answer.evidence}
    finish = got["steps"] * got["step_seconds"] * (1 + got["lost_share"])
    assert got["lost_share"] > 0
    assert got["time_to_finish"] == pytest.approx(finish)
    assert got["goodput"] == pytest.approx(1 / (1 + got["lost_share"]))
    assert got["spare_nodes"] >= 1
    assert answer.workload.training is not None
    assert answer.workload.training.checkpoint_interval_seconds == got["saved_every"]
    told = next(m for m in answer.workload.metrics if m.name == "time_to_finish")
    assert told.estimate.value == pytest.approx(finish)
