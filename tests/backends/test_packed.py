"""Pods that fill nodes one after the other, so that larger ones find whole nodes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from gpuplan.cli.main import main
from gpuplan.kubernetes.affinity import PREFERRED
from gpuplan.kubernetes.lower import lower
from gpuplan.plan.model import Plan
from gpuplan.plan.partitions import MIG_CONFIG_LABEL
from gpuplan.render import yaml
from gpuplan.render.commented import strip
from tests.support.changing_manifests import INVENTORY, manifest, notebooks, serving, tuning
from tests.support.plans import read_plan

SMALL = "meta-llama/Llama-3.1-8B-Instruct"


def service(name: str, gpus: int, replicas: int = 1) -> dict[str, Any]:
    layout = {"tensor_parallel_size": gpus, "replicas": replicas}
    return serving(name, SMALL, 0.5, "a") | {"overrides": layout}


def run(epochs: int = 1) -> dict[str, Any]:
    return tuning("tuner", epochs, "a") | {"overrides": {"gpu_count": 4}}


def compiled(folder: Path, *works: dict[str, Any]) -> Plan:
    """Over what the folder has already."""
    (folder / "rack.yaml").write_text(INVENTORY, encoding="utf-8")
    (folder / "m.yaml").write_text(yaml.dumps(manifest(*works, shared=True)), encoding="utf-8")
    assert main(["compile", str(folder / "m.yaml"), "-o", str(folder / "stacks")]) == 0
    return read_plan(folder / "stacks" / "shop")


def pod(plan: Plan, key: str) -> Any:
    kinds = ("Deployment", "StatefulSet", "Job")
    (found,) = (o for o in lower(plan).objects if o.key == key and o.kind in kinds)
    tree, _ = strip(found.tree)
    return tree["spec"]["template"]["spec"]


def sought(plan: Plan, key: str) -> tuple[list[Any], list[Any]]:
    """The nodes that its pods prefer, by labels and by the pods on them."""
    affinity = pod(plan, key).get("affinity") or {}
    nodes, pods = (affinity.get(f"{kind}Affinity") or {} for kind in ("node", "pod"))
    return nodes.get(PREFERRED, []), pods.get(PREFERRED, [])


def skew(plan: Plan, key: str) -> int | None:
    rules = pod(plan, key).get("topologySpreadConstraints")
    return rules[0]["maxSkew"] if rules else None


def test_they_seek_nodes_that_others_are_on_and_those_that_are_cut(tmp_path: Path) -> None:
    plan = compiled(tmp_path, service("small", 2, 4), service("big", 8), run())
    for key in ("small", "tuner"):
        (nodes,), (pods,) = sought(plan, key)
        rules = [(e["key"], e["operator"]) for e in nodes["preference"]["matchExpressions"]]
        assert rules == [(MIG_CONFIG_LABEL, "Exists"), (MIG_CONFIG_LABEL, "NotIn")]
        term = pods["podAffinityTerm"]
        assert term["topologyKey"] == "kubernetes.io/hostname"
        assert term["namespaceSelector"] == {}, "other tenants' pods are on the nodes too"
    assert (skew(plan, "small") or 0) > 1000, "nor does the cluster's own rule spread them"
    assert sought(plan, "big") == ([], [])


def test_rules_name_no_other_workload(tmp_path: Path) -> None:
    """What comes and goes beside them would restart them."""
    before = compiled(tmp_path, service("small", 2, 4), service("big", 8))
    after = compiled(tmp_path, service("small", 2, 4), service("large", 8), service("four", 4))
    assert pod(before, "small") == pod(after, "small")


def test_replicas_are_spread_where_all_pods_find_nodes_anyway(tmp_path: Path) -> None:
    plan = compiled(tmp_path, service("small", 2, 4), service("other", 2, 4))
    assert (skew(plan, "small"), sought(plan, "small")) == (1, ([], []))


def test_users_of_whole_gpus_are_packed_too(tmp_path: Path) -> None:
    desks = notebooks("desks", 3, "a")
    desks["notebook"]["gpu_memory"] = "60 GiB"
    plan = compiled(tmp_path, desks, service("big", 8))
    assert (skew(plan, "desks") or 0) > 1000
    assert [len(rules) for rules in sought(plan, "desks")] == [1, 1]


def test_a_run_that_is_there_is_not_begun_anew_for_what_comes_beside_it(tmp_path: Path) -> None:
    before = compiled(tmp_path, run())
    beside = compiled(tmp_path, run(), service("big", 8), service("small", 2, 2))
    assert pod(before, "tuner") == pod(beside, "tuner")
    assert [w.generation for w in beside.workloads if w.name == "tuner"] == [None]
    assert [w.name for w in beside.workloads if w.packed] == ["small"]
    again = compiled(tmp_path, run(), service("big", 8), service("small", 2, 2))
    assert again == beside


def test_a_service_is_not_restarted_when_what_was_beside_it_goes(tmp_path: Path) -> None:
    before = compiled(tmp_path, service("small", 2, 4), service("big", 8))
    after = compiled(tmp_path, service("small", 2, 4))
    assert pod(before, "small") == pod(after, "small")
    assert [w.packed for w in after.workloads] == [True]
