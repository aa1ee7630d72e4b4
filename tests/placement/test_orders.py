"""What has to hold between the costs of two manifests that differ in one thing: a small sample of
what `make orders` asks."""

from __future__ import annotations

from pathlib import Path

import pytest

from bench.orders import EASIER, Tree, cost_of, dearer, manifest, planned, tried
from gpuplan.catalog.load import load_catalog
from gpuplan.diagnostics import Severity
from gpuplan.manifest.load import Loaded, load_text
from gpuplan.pipeline import plan_manifest
from gpuplan.plan.model import Plan
from gpuplan.render import yaml
from gpuplan.source import Origin

# Each but 12 once broke one: more types, a deadline (both), a load, one less, a budget, pack.
NUMBERS = (24, 32, 12, 116, 10, 1, 54, 21)


def test_a_manifest_is_its_number() -> None:
    assert manifest(3) == manifest(3)
    assert manifest(3) != manifest(3, seed=2)
    assert dearer(2.0, 1.0)
    assert not dearer(1.0, 1.0)


@pytest.mark.parametrize("number", NUMBERS)
def test_costs_are_in_order(number: int) -> None:
    answers = list(tried(number))
    assert {name for name, _ in answers} & set(EASIER), "something is asked of it"
    assert [f"{name}: {wrong}" for name, wrong in answers if wrong] == []


SERVICE = {
    "task": "inference",
    "name": "chat",
    "model": "Qwen/Qwen2.5-7B-Instruct",
    "load": {"requests_per_second": 1, "input_tokens": 500, "output_tokens": 200},
}


def plan_of(**platform: object) -> Plan:
    plan = planned(
        {
            "apiVersion": "gpuplan.dev/v1",
            "name": "one",
            "platform": {"target": "kubernetes", **platform},
            "workloads": [SERVICE],
        }
    )
    assert plan is not None
    return plan


def test_a_small_service_takes_no_instance_of_a_node_of_eight() -> None:
    """The instance is the smallest part of a GPU; the node is what is paid."""
    plan = plan_of(gpus=["h100-sxm-80gb", "l40s"], nodes=["p5.48xlarge", "g6e.2xlarge"])
    (pool,) = plan.node_pools
    assert (pool.gpu, pool.gpus_per_node) == ("l40s", 1)
    assert plan.cost.usd_per_hour == pool.usd_per_hour


def test_a_type_without_nodes_is_left_out_and_said() -> None:
    """One more choice does not refuse everything."""
    tree = {
        "apiVersion": "gpuplan.dev/v1",
        "name": "one",
        "platform": {"target": "kubernetes", "gpus": ["l40s", "a16"]},
        "workloads": [SERVICE],
    }
    reading = load_text(yaml.dumps(tree), "manifest.yaml")
    loaded = Loaded(reading.manifests[0].manifest, "manifest.yaml", Path())
    compiled = plan_manifest(loaded, reading.sources, load_catalog())
    assert [p.gpu for p in compiled.plan.node_pools] == ["l40s"]
    (left,) = (d for d in compiled.diagnostics if d.rule == "GP012")
    assert left.severity is Severity.WARNING
    assert left.message == "no node is known for 'a16': it is left out"
    assert left.origin == Origin("manifest.yaml", ("platform", "gpus", 1))
    tree["platform"] = {"target": "kubernetes", "gpus": ["a16"]}
    assert planned(tree) is None


def beside_small(tree: Tree) -> Tree:
    """With a model that those GPUs hold: one of 70B in 16 bits finds no room on four of 40 GB."""
    tree["workloads"][2] |= {"model": "Qwen/Qwen2.5-32B-Instruct"}
    return tree


def test_a_run_takes_the_room_of_nodes_that_are_paid_for_others() -> None:
    """With fewest replicas it would have nodes of its own for long; beside what stays it has more
    of them and ends sooner. What is printed of them is what they are counted as."""
    tree = beside_small(manifest(11))
    tree["workloads"][0]["slo"]["finish_within"] = "24 h"
    plan = planned(tree)
    assert plan is not None
    run, notebooks, _ = plan.workloads
    assert run.node_pool == notebooks.node_pool
    (said,) = (e for e in plan.evidence if e.quantity == "w0.replicas")
    assert said.value == run.replicas
    assert "beside the other work" in said.source
    alone = beside_small(manifest(11))
    alone["workloads"][0]["slo"]["finish_within"] = "24 h"
    alone["workloads"][0]["overrides"] = {"replicas": run.replicas - 1}
    fewer = planned(alone)
    assert fewer is not None
    assert cost_of(plan) < cost_of(fewer)  # type: ignore[operator]
