"""The nodes that are bought where nobody says which there are: shapes, prices and where from."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest

from gpuplan.catalog.load import load_catalog
from gpuplan.catalog.shapes import SIZES, Wanted, shapes
from gpuplan.pipeline import Result, compile_files
from gpuplan.plan.model import Plan

SMALL = """
- name: small
  task: inference
  model: meta-llama/Llama-3.2-3B-Instruct
  load: {requests_per_second: 0.5, input_tokens: 300, output_tokens: 100}
"""
RUN = """
- name: run
  task: finetuning
  model: meta-llama/Llama-3.1-8B
  preemptible: true
  training: {sequence_length: 4096, global_batch: 64, tokens: 1e8}
  checkpoint: {interval: 1 h}
"""


def compiled(folder: Path, platform: str, workloads: str = SMALL) -> Result:
    path = folder / "stack.yaml"
    path.write_text(
        f"apiVersion: gpuplan.dev/v1\nname: stack\n"
        f"platform: {{target: kubernetes, {platform}}}\nworkloads:{workloads}"
    )
    return compile_files([path])


def plan(folder: Path, platform: str, workloads: str = SMALL) -> Plan:
    result = compiled(folder, platform, workloads)
    assert result.stacks, [d.message for d in result.problems]
    return result.stacks[0].plan


def test_one_gpu_is_paid_as_one(tmp_path: Path) -> None:
    """Not as the eight of the only node that was known."""
    (pool,) = plan(tmp_path, "gpus: [h100-sxm-80gb]").node_pools
    assert (pool.node_type, pool.gpus_per_node, pool.node_count) == ("p5.4xlarge", 1, 1)
    assert pool.usd_per_hour == Decimal("6.88")
    assert pool.rented == "aws, us-east-1"
    assert pool.priced_at is not None
    assert "price table" in pool.priced_at


def test_what_was_assumed_is_said_and_a_provider_ends_it(tmp_path: Path) -> None:
    said = [d.message for d in compiled(tmp_path, "gpus: [a10]").problems]
    assert any("names no nodes" in m and "Standard_NC8ads_A10_v4" in m for m in said)
    named = compiled(tmp_path, "gpus: [a10], provider: azure, region: eastus")
    assert not [d for d in named.problems if "names no nodes" in d.message]
    (pool,) = named.stacks[0].plan.node_pools
    assert pool.node_type == "Standard_NV36ads_A10_v5", "the other sizes are not in that region"
    assert pool.rented == "azure, eastus"


def test_nodes_of_several_places_are_named(tmp_path: Path) -> None:
    workloads = SMALL + "  overrides: {gpu: l4}\n" + SMALL.lstrip().replace("small", "other")
    workloads += "  overrides: {gpu: l40s}\n"
    said = [d.message for d in compiled(tmp_path, "gpus: [l4, l40s]", workloads).problems]
    (place,) = [m for m in said if "not in one place" in m]
    assert "gcp, us-central1" in place
    assert "aws, us-east-1" in place
    one = compiled(tmp_path, "gpus: [l4, l40s], provider: aws, region: us-east-1", workloads)
    assert not [d for d in one.problems if "not in one place" in d.message]


def test_nodes_restrict_the_shapes(tmp_path: Path) -> None:
    (pool,) = plan(tmp_path, "nodes: [p5.48xlarge, g6.12xlarge]").node_pools
    assert (pool.node_type, pool.gpus_per_node) == ("g6.12xlarge", 4)
    (server,) = plan(tmp_path, "nodes: [dgx-h100]").node_pools
    assert (server.node_type, server.usd_per_hour) == ("dgx-h100", None)
    assert (server.watts, server.boards_only) == (10_200, False)


@pytest.mark.parametrize(
    ("platform", "message"),
    [
        ("nodes: [p5.49xlarge]", "unknown node 'p5.49xlarge'"),
        ("provider: gpc", "unknown provider 'gpc'"),
        ("provider: gcp, region: us-nowhere", "unknown region 'us-nowhere'"),
        ("region: us-east-1", "target 'kubernetes' has no regions"),
        ("nodes: [p5.48xlarge], node: {gpus: 8}", "the nodes are described twice"),
        ("nodes: [p5.48xlarge], gpus: [l4]", "none of the nodes has l4"),
        ("provider: aws, gpus: [h100-nvl-94gb]", "no node of aws is known for 'h100-nvl-94gb'"),
    ],
)
def test_what_does_not_exist_is_refused(tmp_path: Path, platform: str, message: str) -> None:
    result = compiled(tmp_path, platform)
    assert not result.stacks
    assert any(message in d.message for d in result.problems)


def test_every_shape_is_one_of_its_size_and_priced_by_its_own_list() -> None:
    catalog = load_catalog()
    for gpu in catalog.gpu_ids:
        found = shapes(catalog, gpu, Wanted())
        assert len({s.gpus for s in found}) == len(found)
        assert {s.gpus for s in found} <= set(SIZES)
        for shape in found:
            assert (shape.price is None) or shape.price.capacity == "on-demand"
            assert (shape.provider is None) <= (shape.price is None), "nobody lists servers"


def test_machines_that_are_sold_as_spot_alone_are_not_on_demand() -> None:
    """Of a3-highgpu, one to four GPUs."""
    catalog, where = load_catalog(), Wanted("gcp", "us-central1")
    kept = shapes(catalog, "h100-sxm-80gb", where)
    spare = shapes(catalog, "h100-sxm-80gb", where._replace(capacity="spot"))
    assert [s.gpus for s in kept] == [8]
    assert [s.gpus for s in spare] == [8, 4, 2, 1]


def test_work_that_may_be_stopped_takes_spare_capacity_and_says_what_that_costs(
    tmp_path: Path,
) -> None:
    where = "gpus: [h100-sxm-80gb], provider: gcp"
    result = compiled(tmp_path, where, RUN)
    (pool,) = result.stacks[0].plan.node_pools
    kept = plan(tmp_path, where, RUN.replace("true", "false")).node_pools[0]
    assert pool.rented is not None
    assert pool.rented.endswith("spot")
    assert pool.usd_per_hour is not None
    assert kept.usd_per_hour is not None
    assert pool.usd_per_hour / pool.gpus_per_node < kept.usd_per_hour / kept.gpus_per_node
    (note,) = [d.message for d in result.problems if "spare capacity" in d.message]
    assert "30 min of work" in note, "half of an hour between two checkpoints"
    values = {e.quantity: e.value for e in result.stacks[0].plan.evidence}
    assert values["run.usd_per_interruption"] == pytest.approx(values["run.usd_per_hour"] / 2)


def test_a_run_has_its_own_price_and_none_of_a_month(tmp_path: Path) -> None:
    cost = plan(tmp_path, "gpus: [h100-sxm-80gb], budget: $5000/month", RUN).cost
    assert cost.usd_per_hour is not None
    assert cost.usd_of_runs is not None
    assert cost.staying_usd_per_month == 0
    assert cost.usd_per_month == cost.usd_of_runs, "it takes less than a month"
    assert cost.usd_per_hour * 730 > 5000 > cost.usd_of_runs
    assert not cost.over_budget
    both = plan(tmp_path, "gpus: [h100-sxm-80gb]", RUN + SMALL.lstrip("\n")).cost
    assert both.usd_per_month is not None
    assert both.staying_usd_per_month is not None
    assert both.usd_per_month == both.staying_usd_per_month + both.runs_usd_per_month
    assert both.staying_usd_per_month > 0


def test_power_says_whose_it_is(tmp_path: Path) -> None:
    servers = plan(tmp_path, "nodes: [dgx-h100]").cost
    assert servers.power == "10.2 kW at most, whole servers"
    boards = plan(tmp_path, "gpus: [h100-sxm-80gb]").cost
    assert boards.power == "700 W at most, GPU boards only in h100-sxm-80gb-x1"
