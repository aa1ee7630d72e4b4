"""Nodes that stand by for a run: bought, paid, counted, emitted, and no waste."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pytest

from gpuplan.diagnostics import Severity
from gpuplan.pipeline import Compiled, Result, compile_files
from gpuplan.plan.model import Evidence
from gpuplan.sizing.ask.demand import TrainingDemand
from gpuplan.sizing.ask.given import Given
from gpuplan.sizing.kinds.training import failures
from tests.support.policy_samples import judge, rules
from tests.support.sizing_cases import wanted

MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: spared
platform:
  target: TARGET
  gpus: [h100-sxm-80gb]
  node: {gpus: 8, cpu_cores: 112, memory: 2 TiB, count: 4}
  fabric: {kind: infiniband, bandwidth_per_gpu: 50 GB/s, resource: rdma/hca}
  storage: {bandwidth: 10 GB/s, shared: true}
workloads:
- name: run
  task: finetuning
  model: meta-llama/Llama-3.1-8B
  dataset: {name: corpus, tokens: 1e9}
  training: {epochs: 4, sequence_length: 8192, global_batch: 64SPARES}
  overrides: {gpu_count: 16}
"""
RUN_405B = """
    task: training
    model: meta-llama/Llama-3.1-405B
    precision: bf16
    training: {global_batch: 1024, sequence_length: 8192, tokens: 2e12}
"""


def result(tmp_path: Path, spares: int | None, target: str = "kubernetes") -> Result:
    path = tmp_path / "m.yaml"
    asked = "" if spares is None else f", spare_nodes: {spares}"
    text = MANIFEST.replace("SPARES", asked).replace("TARGET", target)
    path.write_text(text, encoding="utf-8")
    return compile_files([path])


def stack(tmp_path: Path, spares: int | None) -> Compiled:
    found = result(tmp_path, spares)
    assert [p.message for p in found.problems if p.severity is Severity.ERROR] == []
    return found.stacks[0]


def evidence(of: Compiled) -> dict[str, Evidence]:
    return {e.quantity.partition(".")[2]: e for e in of.plan.evidence}


def lost(demand: TrainingDemand, nodes: float, spares: int) -> float:
    """The part that checkpoints and failures add, on so many nodes."""
    asked = replace(demand, spare_nodes=_stated(demand, spares))
    scope = {
        "parameters": 405e9,
        "optimizer_bytes_each": 12.0,
        "nodes": nodes,
        "storage_bytes_per_s": 5e9,
        "node_failures": failures.FAILURES.value,
        "failure_detection": failures.DETECTION.value,
        "warm_up": 300.0,
        "checkpoint_interval": 3600.0,
        "repair_time": failures.REPAIR.value,
        "bf16_bytes": 2.0,
    }
    return failures.losses(asked)(scope)["lost_share"]


def _stated(demand: TrainingDemand, spares: int) -> Given:
    return replace(demand.checkpoint_interval, value=float(spares), unit="1")


@pytest.mark.parametrize("nodes", [2, 16, 128, 1024, 8192])
def test_one_more_spare_never_makes_a_run_longer(nodes: int) -> None:
    demand = wanted(RUN_405B)
    assert isinstance(demand, TrainingDemand)
    shares = [lost(demand, nodes, spares) for spares in range(65)]
    assert shares == sorted(shares, reverse=True)
    # None: what each failure waits, a day for each; many: nothing but what is lost anyway.
    days = nodes * failures.FAILURES.value * failures.REPAIR.value
    assert shares[0] - shares[64] == pytest.approx(days, rel=1e-6, abs=0.02 * days)


@pytest.mark.parametrize("nodes", [16, 400, 8192])
def test_what_a_run_waits_for_repairs_is_erlangs_loss(nodes: int) -> None:
    """By its sum, not its recursion: the run waits while one node more is away than stands by."""
    demand = wanted(RUN_405B)
    assert isinstance(demand, TrainingDemand)
    away = nodes * failures.FAILURES.value * failures.REPAIR.value
    without = lost(demand, nodes, 64)
    for spares in range(9):
        parts = [away**number / math.factorial(number) for number in range(spares + 2)]
        waits = parts[-1] / sum(parts[:-1])
        assert lost(demand, nodes, spares) - without == pytest.approx(waits, rel=1e-6), spares


def test_spares_are_bought_and_counted_in_time_price_power_and_pool(tmp_path: Path) -> None:
    none, two = stack(tmp_path, 0), stack(tmp_path, 2)
    (pool,), (work,) = two.plan.node_pools, two.plan.workloads
    assert (pool.node_count, pool.spare_nodes, pool.idle_gpus) == (4, 2, 0)
    assert work.gpu_count == 16
    assert work.usd_per_hour == 2 * (none.plan.workloads[0].usd_per_hour or 0)
    assert two.plan.cost.usd_per_hour == work.usd_per_hour
    assert two.plan.cost.watts == 4 * (pool.watts or 0)
    slow, fast = (
        next(m.estimate.value for m in s.plan.workloads[0].metrics if m.name == "time_to_finish")
        for s in (none, two)
    )
    assert fast < slow
    said = evidence(two)
    assert said["goodput"].value > evidence(none)["goodput"].value
    hourly = said["usd_per_hour"]
    assert Decimal(repr(hourly.value)) == work.usd_per_hour
    assert said["balance.gpu_time"].value > 0
    assert next(r.need for r in work.balance if r.resource == "power") == two.plan.cost.watts


def test_without_the_field_they_are_recommended_with_number_and_price(tmp_path: Path) -> None:
    plain = stack(tmp_path, None)
    (pool,) = plain.plan.node_pools
    assert (pool.node_count, pool.spare_nodes) == (2, None)
    said = evidence(plain)
    assert "waiting_share" not in said
    each = said["usd_per_hour"].value / 2
    assert said["spare_usd_per_hour"].value == pytest.approx(said["spare_nodes"].value * each)


def test_the_stack_has_the_nodes_and_says_which_are_spare(tmp_path: Path) -> None:
    files = {f.path: f.text for f in stack(tmp_path, 1).files.files}
    assert "3 × node with 8 × h100-sxm-80gb (1 of them spare)" in files["README.md"]
    assert re.search(r"spare_nodes: 1\b", files["plan.yaml"])


def test_no_policy_calls_a_spare_idle(tmp_path: Path) -> None:
    plan = stack(tmp_path, 2).plan
    assert "GP203" not in rules(judge(plan))
    for spares, idle in ((6, False), (None, True)):
        pool = replace(plan.node_pools[0], node_count=8, spare_nodes=spares)
        assert ("GP203" in rules(judge(replace(plan, node_pools=(pool,))))) == idle


def test_more_spares_than_there_are_nodes_are_refused_with_the_number(tmp_path: Path) -> None:
    errors = [p for p in result(tmp_path, 3).problems if p.severity is Severity.ERROR]
    assert len(errors) == 1
    assert "needs 5, has 4" in errors[0].label


def test_fewer_spares_are_a_remedy_where_the_nodes_do_not_suffice(tmp_path: Path) -> None:
    text = MANIFEST.replace("SPARES", ", spare_nodes: 3").replace("TARGET", "kubernetes")
    text = text.replace("Llama-3.1-8B", "Llama-3.1-70B").partition("  overrides")[0]
    path = tmp_path / "short.yaml"
    path.write_text(text, encoding="utf-8")
    (found,) = (p for p in compile_files([path]).problems if p.severity is Severity.ERROR)
    less = re.search(r"`training.spare_nodes: (\d+)` instead of 3", found.help or "")
    assert less is not None, found
    path.write_text(text.replace("spare_nodes: 3", f"spare_nodes: {less[1]}"), encoding="utf-8")
    assert compile_files([path]).stacks


def _told(tmp_path: Path, text: str, word: str) -> list[str]:
    path = tmp_path / "told.yaml"
    path.write_text(text, encoding="utf-8")
    found = compile_files([path]).problems
    return [f"{p.message}: {p.help}" for p in found if word in p.message]


def test_spares_whose_worth_is_not_counted_are_told(tmp_path: Path) -> None:
    text = MANIFEST.replace("SPARES", ", spare_nodes: 1").replace("TARGET", "kubernetes")
    assert _told(tmp_path, text, "is not counted") == []
    for given, other, why in (
        ("bandwidth: 10 GB/s, ", "", "`platform.storage.bandwidth` is not stated"),
        ("gpu_count: 16", "gpu_count: 8", "it runs on one node"),
        ("spare_nodes: 1", "spare_nodes: 1, lora: {rank: 8}", "its checkpoints are adapters"),
    ):
        (said,) = _told(tmp_path, text.replace(given, other), "is not counted")
        assert "pays for 1 spare node" in said
        assert why in said
    none = text.replace("spare_nodes: 1", "spare_nodes: 0").replace("bandwidth: 10 GB/s, ", "")
    assert _told(tmp_path, none, "is not counted") == []


def test_no_machine_stands_by_on_docker(tmp_path: Path) -> None:
    text = MANIFEST.replace("TARGET", "docker").replace("count: 4", "count: 1")
    text = text.replace("gpu_count: 16", "gpu_count: 8")
    asked = text.replace("SPARES", ", spare_nodes: 1")
    (said,) = _told(tmp_path, asked, "stands by")
    assert "leave it out" in said
    assert _told(tmp_path, text.replace("SPARES", ""), "stands by") == []


def test_power_is_of_all_spares_of_a_pool_that_two_runs_share(tmp_path: Path) -> None:
    text = MANIFEST.replace("SPARES", ", spare_nodes: 1").replace("TARGET", "kubernetes")
    head, run = text.replace("count: 4", "count: 8").split("- name: run")
    path = tmp_path / "two.yaml"
    path.write_text(f"{head}- name: run{run}- name: other{run}", encoding="utf-8")
    plan = compile_files([path]).stacks[0].plan
    (pool,) = plan.node_pools
    assert (pool.node_count, pool.spare_nodes) == (6, 2)
    for work in plan.workloads:
        assert next(r.need for r in work.balance if r.resource == "power") == plan.cost.watts


def test_a_long_run_is_told_what_it_waits_and_whether_more_spares_help(tmp_path: Path) -> None:
    def told(spares: int | None) -> tuple[str, str]:
        path = tmp_path / "long.yaml"
        asked = "" if spares is None else f", spare_nodes: {spares}"
        text = MANIFEST.replace("SPARES", asked).replace("TARGET", "kubernetes")
        path.write_text(text.replace("epochs: 4", "epochs: 4000"), encoding="utf-8")
        notes = compile_files([path]).problems
        (found,) = (p for p in notes if "is interrupted about" in p.message)
        return found.message, found.help

    message, remedy = told(None)
    assert "waiting for repairs" not in message
    assert "write `training: {spare_nodes: 1}` to buy 1 spare node" in remedy
    message, remedy = told(0)
    assert "waiting for repairs" in message
    assert "spare_nodes: 1" in remedy
    assert "no more are needed" in told(1)[1]
