"""What a workload meets first, and what is offered for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpuplan.diagnostics import Severity
from gpuplan.pipeline import Compiled, Result, compile_files
from gpuplan.plan.model import ResourceUse, Workload
from gpuplan.plan.serialize import to_tree
from gpuplan.report import balance
from gpuplan.sizing.evidence.formula import evaluate
from tests.sizing.test_needs import TRAINING as RUN

PLATFORM = """\
apiVersion: gpuplan.dev/v1
name: balanced
platform:
  target: kubernetes
  gpus: [h100-sxm-80gb]
  node: {gpus: 8, cpu_cores: 112, memory: 2 TiB, count: 8}
  fabric: {kind: infiniband, bandwidth_per_gpu: 50 GB/s, resource: rdma/hca}
  storage: {bandwidth: 10 GB/s, shared: true}
workloads:
"""
SERVICE = """\
- name: chat
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  load: {requests_per_second: 4, input_tokens: 500, output_tokens: 100}
"""


def compiled(tmp_path: Path, text: str) -> Result:
    path = tmp_path / "m.yaml"
    path.write_text(text, encoding="utf-8")
    return compile_files([path])


def stack(tmp_path: Path, text: str) -> Compiled:
    result = compiled(tmp_path, text)
    assert [p.message for p in result.problems if p.severity is Severity.ERROR] == []
    return result.stacks[0]


def by_resource(work: Workload) -> dict[str, ResourceUse]:
    return {row.resource: row for row in work.balance}


@pytest.mark.parametrize("workload", [RUN, SERVICE])
def test_what_is_nearest_to_its_limit_stands_first_and_what_is_unknown_last(
    tmp_path: Path, workload: str
) -> None:
    rows = stack(tmp_path, PLATFORM + workload).plan.workloads[0].balance
    known = [row for row in rows if row.share is not None]
    limits = [row.share or 0.0 for row in known if row.resource != "cpu_cores"]
    assert len(limits) >= 3
    assert limits == sorted(limits, reverse=True)
    assert known[-1].resource == "cpu_cores"  # advice
    assert all(row.share is None and row.unknown for row in rows[len(known) :])
    assert all((row.remedy is None) == (row.share is None) for row in rows)


def test_each_part_of_a_limit_is_evidence_that_can_be_worked_out_again(tmp_path: Path) -> None:
    plan = stack(tmp_path, PLATFORM + RUN).plan
    evidence = {e.quantity: e for e in plan.evidence}
    for row in plan.workloads[0].balance:
        if row.share is not None:
            entry = evidence[f"run.balance.{row.resource}"]
            inputs = {i.name: i.value for i in entry.inputs}
            assert evaluate(entry.formula, inputs) == entry.value == pytest.approx(row.share)
            assert list(inputs.values()) == [row.need, row.supply]


def test_it_says_what_is_emitted(tmp_path: Path) -> None:
    plan = stack(tmp_path, PLATFORM + RUN).plan
    work, pool = plan.workloads[0], plan.node_pools[0]
    rows = by_resource(work)
    assert rows["gpu_memory"].supply == work.memory.usable_bytes
    assert rows["time_to_finish" if work.deadline_seconds else "gpu_time"].need
    assert rows["power"].need == pool.node_count * (pool.watts or 0)
    assert rows["network"].supply == 8 * 50e9
    assert (rows["cpu_cores"].need or 0) <= work.resources.cpu_cores
    assert work.resources.cpu_cores <= (rows["cpu_cores"].supply or 0)


def test_a_slow_disk_is_met_first_and_the_remedy_is_a_disk_not_nodes(tmp_path: Path) -> None:
    slow = PLATFORM.replace("bandwidth: 10 GB/s", "bandwidth: 500 MB/s")
    first = stack(tmp_path, slow + RUN.replace("interval: 1 h", "interval: 5 min")).plan
    row = first.workloads[0].balance[0]
    assert row.resource == "checkpoint"
    assert (row.share or 0) > 1
    assert "interval" in (row.remedy or "")  # free, before a disk
    derived = RUN.replace("  checkpoint: {interval: 1 h}\n", "")
    row = by_resource(stack(tmp_path, slow + derived).plan.workloads[0])["checkpoint"]
    assert "platform.storage.bandwidth" in (row.remedy or "")
    assert "before more nodes" in (row.remedy or "")


def test_twice_the_disk_halves_what_is_used_of_it(tmp_path: Path) -> None:
    shares = [
        by_resource(stack(tmp_path, PLATFORM.replace("10 GB/s", rate) + RUN).plan.workloads[0])[
            "dataset"
        ].share
        for rate in ("10 GB/s", "20 GB/s")
    ]
    assert shares[0] == pytest.approx(2 * (shares[1] or 0), rel=1e-3)


def test_what_nobody_states_is_said_and_not_guessed(tmp_path: Path) -> None:
    bare = PLATFORM.replace("  storage: {bandwidth: 10 GB/s, shared: true}\n", "").replace(
        "cpu_cores: 112, ", ""
    )
    rows = by_resource(stack(tmp_path, bare + RUN).plan.workloads[0])
    for name, field in (
        ("dataset", "platform.storage.bandwidth"),
        ("checkpoint", "platform.storage.bandwidth"),
        ("cpu_cores", "platform.node.cpu_cores"),
        ("power", "platform.rack_power"),
    ):
        assert rows[name].supply is None
        assert rows[name].need
        assert field in (rows[name].unknown or "")


def test_a_rack_holds_whole_nodes_and_one_that_feeds_none_is_an_error(tmp_path: Path) -> None:
    fed = PLATFORM.replace("  storage:", "  rack_power: 12 kW\n  storage:")
    row = by_resource(stack(tmp_path, fed + RUN).plan.workloads[0])["power"]
    assert row.need == 2 * 5600  # two nodes of 8 boards of 700 W
    assert row.share == pytest.approx(11200 / 12000)
    assert "2 of 2 nodes" in row.of

    weak = compiled(tmp_path, fed.replace("12 kW", "5 kW") + RUN)
    errors = [p for p in weak.problems if p.severity is Severity.ERROR]
    assert [p.rule for p in errors] == ["GP041"]
    assert "5.6 kW" in errors[0].message


def test_explain_shows_the_table_with_the_remedy_of_the_first(tmp_path: Path) -> None:
    plan = to_tree(stack(tmp_path, PLATFORM + SERVICE).plan)
    short = "\n".join(balance.short(plan["workloads"][0]))
    assert short.count("→") == 1
    assert all(len(line) <= 80 for line in short.splitlines())
    rows = balance.rows(plan)
    assert [row["workload"] for row in rows] == ["chat"] * len(rows)
    assert balance.whole(plan).count("→") == len([r for r in rows if r["share"] is not None])


def test_cores_are_advice_below_the_limits_though_a_node_has_fewer(tmp_path: Path) -> None:
    few = PLATFORM.replace("cpu_cores: 112", "cpu_cores: 20")
    made = stack(tmp_path, few + SERVICE).plan
    work = made.workloads[0]
    row = by_resource(work)["cpu_cores"]
    assert (row.need, row.supply) == (4, 2)
    assert work.resources.cpu_cores <= (row.supply or 0)  # what the pod gets, it has
    assert work.balance[0].resource in ("gpu_memory", "gpu_time")
    assert "CPU cores, advised" in balance.whole(to_tree(made))


@pytest.mark.parametrize(("gpu", "offered"), [("a100-sxm-80gb", False), ("h100-sxm-80gb", True)])
def test_a_cache_in_fp8_is_offered_where_compiling_takes_it(
    gpu: str, offered: bool, tmp_path: Path
) -> None:
    text = PLATFORM.replace("h100-sxm-80gb", gpu) + SERVICE
    row = by_resource(stack(tmp_path, text).plan.workloads[0])["gpu_memory"]
    assert ("kv_cache_dtype: fp8" in (row.remedy or "")) is offered
    taken = compiled(tmp_path, text + "  overrides: {kv_cache_dtype: fp8}\n")
    assert bool(taken.stacks) is offered


def test_a_second_forward_pass_is_offered_only_where_the_run_still_ends_in_time(
    tmp_path: Path,
) -> None:
    run = PLATFORM + RUN.replace("epochs: 1,", "epochs: 1, recompute: selective,")
    fast = stack(tmp_path, run).plan.workloads[0]
    high = next(m.estimate.high for m in fast.metrics if m.name == "time_to_finish")
    assert "recompute: full" in (by_resource(fast)["gpu_memory"].remedy or "")
    for part, offered in ((1.5, True), (1.2, False)):
        bounded = f"{run}  slo: {{finish_within: {high * part:.0f} s}}\n"
        work = stack(tmp_path, bounded).plan.workloads[0]
        said = by_resource(work)["gpu_memory"].remedy or ""
        assert ("recompute: full" in said) is offered


IMAGES = """\
- name: learn
  task: finetuning
  model: google/vit-large-patch16-224
  command: [torchrun, --nproc-per-node=8, /data/train.py]
  training: {epochs: 30, global_batch: 1024}
  dataset: {name: uploads, images: 1300000, pixels: 500x375, size: 150 GB}
  overrides: {gpu_count: 8}
"""


def test_a_network_of_images_is_not_offered_what_its_runs_do_not_take(tmp_path: Path) -> None:
    row = by_resource(stack(tmp_path, PLATFORM + IMAGES).plan.workloads[0])["gpu_memory"]
    assert row.remedy == "a GPU with more memory"


SPANNING = """\
- name: reader
  task: inference
  model: meta-llama/Llama-3.1-405B-Instruct
  precision: fp8
  load: {requests_per_second: 1, input_tokens: 2000, output_tokens: 200}
"""


def test_a_replica_over_nodes_shows_the_fabric_and_says_what_is_not_counted(
    tmp_path: Path,
) -> None:
    plan = stack(tmp_path, PLATFORM.replace("gpus: 8", "gpus: 4") + SPANNING).plan
    work = plan.workloads[0]
    assert work.nodes_per_replica > 1
    row = by_resource(work)["network"]
    assert row.need is None
    assert row.supply == pytest.approx(work.replicas * work.nodes_per_replica * 4 * 50e9)
    assert "not counted" in (row.unknown or "")


def test_a_service_inside_a_node_counts_on_no_fabric(tmp_path: Path) -> None:
    row = by_resource(stack(tmp_path, PLATFORM + SERVICE).plan.workloads[0])["network"]
    assert row.need
    assert row.supply is None


TWO = PLATFORM.replace("[h100-sxm-80gb]", "[h100-sxm-80gb, l40s]").replace(
    "  storage:", "  rack_power: 5 kW\n  storage:"
)


def test_a_gpu_whose_node_no_rack_feeds_gives_way_to_the_next(tmp_path: Path) -> None:
    large = SERVICE.replace("3.1-8B", "3.3-70B").replace("second: 4", "second: 40")
    large += "  precision: fp8\n"
    free = stack(tmp_path, TWO.replace("5 kW", "50 kW") + large).plan.workloads[0]
    fed = stack(tmp_path, TWO + large).plan.workloads[0]
    assert (free.gpu, fed.gpu) == ("h100-sxm-80gb", "l40s")
    (other,) = [a for a in fed.alternatives if a.gpu == "h100-sxm-80gb"]
    assert [(s.resource, s.requested, s.capacity) for s in other.shortfalls] == [
        ("rack_power", 5600, 5000)
    ]


def test_racks_of_a_cloud_are_no_limit_and_the_field_is_named(tmp_path: Path) -> None:
    text = """\
apiVersion: gpuplan.dev/v1
name: cloud
platform:
  target: eks
  region: us-east-1
  cluster: {zones: [us-east-1a, us-east-1b], scaling: autoscaler}
  nodes: [p4d.24xlarge]
  rack_power: 2 kW
  storage: {class: fsx-lustre, type: aws-fsx-lustre-125, shared: true, bandwidth: 1 GB/s}
workloads:
"""
    result = compiled(tmp_path, text + SERVICE)
    row = by_resource(result.stacks[0].plan.workloads[0])["power"]
    assert row.need
    assert row.supply is None
    assert "cloud" in (row.unknown or "")
    (told,) = [p for p in result.problems if "platform.rack_power has no effect" in p.message]
    assert told.severity is not Severity.ERROR


def test_a_forced_gpu_that_no_rack_feeds_is_blamed_where_another_would_stand(
    tmp_path: Path,
) -> None:
    forced = TWO + SERVICE + "  overrides: {gpu: h100-sxm-80gb}\n"
    (error,) = [p for p in compiled(tmp_path, forced).problems if p.severity is Severity.ERROR]
    assert error.rule == "GP011"
    assert "rack_power" in (error.label or "")
    assert "l40s" in (error.help or "")
