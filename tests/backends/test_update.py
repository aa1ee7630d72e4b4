"""A stack compiled over the one that is there can be applied."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.kubernetes.lower import lower
from gpuplan.kubernetes.naming import amount
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.pipeline import Compiled, Result, Standing, compile_files
from gpuplan.plan.diff import diff
from gpuplan.plan.model import Plan
from gpuplan.render import yaml
from tests.support.changing_manifests import (
    INVENTORY,
    MODELS,
    manifest,
    notebooks,
    random_manifest,
    serving,
    tuning,
)

PAIRS = 40


def compile_over(folder: Path, document: dict[str, Any], there: Plan | None = None) -> Result:
    (folder / "rack.yaml").write_text(INVENTORY, encoding="utf-8")
    path = folder / "m.yaml"
    path.write_text(yaml.dumps(document), encoding="utf-8")
    return compile_files([path], standing=lambda _: Standing(there))


def only(result: Result) -> Compiled:
    assert [p.message for p in result.problems if p.severity.value == "error"] == []
    return result.stacks[0]


def objects(plan: Plan) -> dict[tuple[str, str | None, str], KubernetesObject]:
    return {(o.kind, o.namespace, o.name): o for o in lower(plan).objects if not o.patch}


def at(tree: Any, path: str) -> Any:
    for name in path.split("."):
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    return tree


# Spelled out once more, from the same functions of Kubernetes, so that a slip in the compiler's own
# table is seen.
FIXED = {
    "PersistentVolumeClaim": ("spec.accessModes", "spec.storageClassName"),
    "StatefulSet": (
        "spec.selector",
        "spec.serviceName",
        "spec.podManagementPolicy",
        "spec.volumeClaimTemplates",
    ),
    "Deployment": ("spec.selector",),
    "Job": ("spec.selector", "spec.template", "spec.completionMode", "spec.podFailurePolicy"),
    "Service": ("spec.clusterIP",),
    "PriorityClass": ("value", "preemptionPolicy"),
    "Secret": ("type",),
}


def assert_applicable(before: Plan, after: Plan) -> None:
    was, now = objects(before), objects(after)
    for where in was.keys() & now.keys():
        for path in FIXED.get(where[0], ()):
            assert at(was[where].tree, path) == at(now[where].tree, path), (where, path)
        if where[0] == "PersistentVolumeClaim":
            sizes = [
                amount(at(o[where].tree, "spec.resources.requests.storage")) for o in (was, now)
            ]
            assert None not in sizes
            assert sizes[0] <= sizes[1]  # type: ignore[operator]
    for where, item in was.items():
        if item.protect:  # an engine refuses to delete it, or to put another in its place
            assert where in now
            kept = now[where]
            assert item.identity in (kept.identity, *kept.former)
            assert kept.protect


@pytest.mark.parametrize("seed", [3, 11])
def test_any_manifest_can_follow_any_other(tmp_path: Path, seed: int) -> None:
    """A chain of random manifests: each over the stack that the one before left."""
    chance = random.Random(seed)
    there: Plan | None = None
    moved = refused = 0
    for _ in range(PAIRS):
        document = random_manifest(chance)
        result = compile_over(tmp_path, document, there)
        codes = {p.rule for p in result.problems if p.severity.value == "error"}
        if there is not None and codes == {"GP020"}:
            refused += 1
            continue
        plan = only(result).plan
        if there is not None:
            assert_applicable(there, plan)
        assert only(compile_over(tmp_path, document, plan)).plan == plan, "it changes no more"
        moved += bool(plan.retained_claims)
        there = plan
    assert moved > PAIRS / 4
    assert refused < PAIRS / 4


def codes(result: Result) -> list[str]:
    return [p.rule for p in result.problems if p.rule.startswith("GP02")]


def test_the_second_replica_gets_a_claim_that_several_nodes_mount(tmp_path: Path) -> None:
    one = only(compile_over(tmp_path, manifest(serving("chat", MODELS[1], 0.5, "a")))).plan
    assert (one.workloads[0].replicas, one.workloads[0].volumes[0].shared) == (1, False)
    result = compile_over(tmp_path, manifest(serving("chat", MODELS[1], 120, "a")), one)
    two = only(result).plan
    assert two.workloads[0].replicas > 1
    [claim] = [o for o in objects(two).values() if o.name == "chat-models-2"]
    assert claim.tree["spec"]["accessModes"] == ["ReadWriteMany"]
    [kept] = [o for o in objects(two).values() if o.name == "chat-models"]
    assert (kept.protect, kept.tree["spec"]["accessModes"]) == (True, ["ReadWriteOnce"])
    pod = objects(two)["Deployment", "shop-a", "chat"].tree["spec"]["template"]["spec"]
    assert pod["volumes"][0]["persistentVolumeClaim"] == {"claimName": "chat-models-2"}
    assert "GP022" in codes(result)
    back = only(compile_over(tmp_path, manifest(serving("chat", MODELS[1], 0.5, "a")), two)).plan
    assert back.workloads[0].volumes[0].generation == 2, "one pod mounts what several can"


def test_a_smaller_model_keeps_the_claim_of_the_larger_one(tmp_path: Path) -> None:
    """A claim never shrinks: Kubernetes refuses it."""
    small, large = (manifest(serving("chat", model, 0.5, "a")) for model in MODELS)
    there = only(compile_over(tmp_path, large)).plan
    (fresh,) = only(compile_over(tmp_path, small)).plan.workloads[0].volumes
    plan = only(compile_over(tmp_path, small, there)).plan
    (kept,) = plan.workloads[0].volumes
    assert fresh.size_bytes < kept.size_bytes == there.workloads[0].volumes[0].size_bytes
    assert_applicable(there, plan)


def test_users_who_stay_keep_their_node_as_it_is_cut(tmp_path: Path) -> None:
    fourteen = only(compile_over(tmp_path, manifest(notebooks("desks", 14, "a")))).plan
    result = compile_over(tmp_path, manifest(notebooks("desks", 12, "a")), fourteen)
    assert only(result).plan.node_pools[0].layouts == fourteen.node_pools[0].layouts


def with_nodes(document: dict[str, Any], tmp_path: Path, names: str) -> dict[str, Any]:
    """The document on another rack."""
    (tmp_path / "own.yaml").write_text(INVENTORY.replace("n1, n2, n3, n4", names), "utf-8")
    return document | {"platform": document["platform"] | {"inventory": "own.yaml"}}


def small_and_large(users: int, large: int) -> dict[str, Any]:
    bigger = notebooks("studios", large, "a")
    bigger["notebook"]["gpu_memory"] = "30 GiB"
    return manifest(notebooks("desks", users, "a"), *([bigger] if large else []))


def test_another_node_takes_what_a_live_one_would_be_cut_anew_for(tmp_path: Path) -> None:
    few = only(compile_over(tmp_path, small_and_large(5, 0))).plan
    result = compile_over(tmp_path, small_and_large(5, 3), few)
    plan = only(result).plan
    (former,), (pool,) = few.node_pools, plan.node_pools
    assert (former.node_names, pool.node_names) == (("n1",), ("n1", "n2"))
    assert pool.layouts[0] == former.layouts[0]
    assert pool.layouts[1].node_names == ("n2",)
    [said] = [p for p in result.problems if p.rule == "GP023"]
    assert said.severity.value == "info"
    assert "node n1 stays cut as it is, and n2 takes what is new" in said.message
    assert only(compile_over(tmp_path, small_and_large(5, 3), plan)).plan == plan
    fresh = only(compile_over(tmp_path, small_and_large(5, 3))).plan
    assert fresh.node_pools[0].node_names == ("n1",)


def test_a_live_node_that_is_cut_anew_is_said(tmp_path: Path) -> None:
    """Where there is no other."""
    few = only(compile_over(tmp_path, with_nodes(small_and_large(5, 0), tmp_path, "n1"))).plan
    more = with_nodes(small_and_large(5, 3), tmp_path, "n1")
    result = compile_over(tmp_path, more, few)
    [said] = [p for p in result.problems if p.rule == "GP023"]
    assert said.severity.value == "warning"
    assert "node n1 is cut anew" in said.message
    risks = [r.message for r in diff(few, only(result).plan).risks]
    assert [r for r in risks if r.startswith("node n1 is cut anew")]


def test_a_new_pool_does_not_push_another_off_its_nodes(tmp_path: Path) -> None:
    desks = notebooks("desks", 5, "a")
    alone = only(compile_over(tmp_path, manifest(desks))).plan
    whole = serving("first", MODELS[1], 300, "b")
    whole["tenancy"]["isolation"] = "node"
    plan = only(compile_over(tmp_path, manifest(whole, desks), alone)).plan
    pools = {p.name: p for p in plan.node_pools}
    own = pools[next(w.node_pool for w in plan.workloads if w.name == "desks")]
    assert own.node_names == ("n1",)
    assert own.layouts == alone.node_pools[0].layouts
    others = [n for p in plan.node_pools if p is not own for n in p.node_names]
    assert others
    assert "n1" not in others


def test_a_changed_run_is_another_job(tmp_path: Path) -> None:
    short = only(compile_over(tmp_path, manifest(tuning("tuner", 1, "a")))).plan
    assert ("Job", "shop-a", "tuner") in objects(short)
    result = compile_over(tmp_path, manifest(tuning("tuner", 3, "a")), short)
    long = only(result).plan
    assert ("Job", "shop-a", "tuner-2") in objects(long)
    assert ("Job", "shop-a", "tuner") not in objects(long)
    assert "GP022" in codes(result)


def test_another_kind_of_workload_under_the_name_is_refused(tmp_path: Path) -> None:
    served = only(compile_over(tmp_path, manifest(serving("chat", MODELS[0], 1, "a")))).plan
    result = compile_over(tmp_path, manifest(notebooks("chat", 3, "a")), served)
    assert result.stacks == ()
    assert "Service chat is there and cannot change: spec.clusterIP" in [
        p.message for p in result.problems
    ]


def test_who_moves_to_another_team_is_told_what_stands_in_the_way(tmp_path: Path) -> None:
    here = only(compile_over(tmp_path, manifest(serving("chat", MODELS[1], 30, "a")))).plan
    result = compile_over(tmp_path, manifest(serving("chat", MODELS[1], 30, "b")), here)
    [said] = [p for p in result.problems if p.rule == "GP024"]
    assert said.message.startswith(
        "deployment shop-b/chat waits for the GPUs of deployment shop-a/"
    )
    assert said.help == "before `pulumi up`: kubectl -n shop-a delete deployment chat"
    assert_applicable(here, only(result).plan)


@pytest.mark.parametrize("storage", [{}, {"shared": True}, {"class": "nfs", "shared": True}])
@pytest.mark.parametrize("users", [1, 20])
def test_a_home_is_one_person_s(tmp_path: Path, users: int, storage: dict[str, Any]) -> None:
    """Also where the storage class has volumes that all of them could mount."""
    plan = only(compile_over(tmp_path, manifest(notebooks("desks", users, "a"), **storage))).plan
    (desks,) = (o.tree["spec"] for o in lower(plan).objects if o.kind == "StatefulSet")
    assert desks["replicas"] == users
    assert [t["metadata"]["name"] for t in desks["volumeClaimTemplates"]] == ["home"]
    assert not [o for o in lower(plan).objects if o.kind == "PersistentVolumeClaim"]
    mounted = desks["template"]["spec"]["containers"][0]["volumeMounts"]
    assert [m["mountPath"] for m in mounted if m["name"] == "home"] == ["/home/jovyan"]


def test_a_home_that_many_had_is_not_cut_up_in_silence(tmp_path: Path) -> None:
    document = manifest(notebooks("desks", 20, "a"))
    plan = only(compile_over(tmp_path, document)).plan
    (desks,) = plan.workloads
    (home,) = desks.volumes
    shared = replace(desks, volumes=(replace(home, shared=True, per_replica=False),))
    result = compile_over(tmp_path, document, replace(plan, workloads=(shared,)))
    (refusal,) = (p for p in result.problems if p.severity.value == "error")
    assert "cannot change: spec.volumeClaimTemplates" in refusal.message
    assert "give the workload another name" in refusal.help


def test_a_larger_home_is_grown_by_hand(tmp_path: Path) -> None:
    def homes(size: str) -> dict[str, Any]:
        work = notebooks("desks", 3, "a") | {"overrides": {"home_storage": size}}
        return manifest(work)

    small = only(compile_over(tmp_path, homes("20 GiB"))).plan
    result = compile_over(tmp_path, homes("40 GiB"), small)
    [said] = [p for p in result.problems if p.rule == "GP021"]
    assert "keeps its 20 GiB" in said.message
    assert "patch pvc home-desks-0" in said.help
    assert '"storage":"40Gi"' in said.help
    assert only(result).plan.tenants[0].storage_quota_bytes == 3 * 40 * 2**30, "room to grow"


def test_homes_of_users_who_left_keep_room_in_the_quota(tmp_path: Path) -> None:
    """A quota below what a namespace holds refuses its next claim."""
    home = 50 * 2**30
    five = only(compile_over(tmp_path, manifest(notebooks("desks", 5, "a")))).plan
    assert five.tenants[0].storage_quota_bytes == 5 * home
    result = compile_over(tmp_path, manifest(notebooks("desks", 2, "a")), five)
    two = only(result).plan
    assert two.tenants[0].storage_quota_bytes == 5 * home
    [said] = [p for p in result.problems if p.rule == "GP022"]
    assert said.message.startswith("claims 'home-desks-2' to 'home-desks-4' (50 GiB each) are kept")
    assert said.help == "without need for them: `gpuplan compile --forget shop-a/home-desks`"
    assert [r.message for r in diff(five, two).risks if "volume" in r.resource] == [
        "volume home of desks (50 GiB) is kept of 3 pods and no longer mounted there"
    ]
    back = only(compile_over(tmp_path, manifest(notebooks("desks", 4, "a")), two)).plan
    assert [c.pods for c in back.retained_claims] == [1]
    served = manifest(serving("chat", MODELS[0], 1, "a"))
    other = only(compile_over(tmp_path, served, back)).plan
    models = other.workloads[0].storage_bytes
    assert other.tenants[0].storage_quota_bytes == 5 * home + models
    assert not [o for o in objects(other) if "home" in o[2]], "the StatefulSet's own, not ours"


def test_homes_that_are_left_keep_the_room_of_the_largest_among_them(tmp_path: Path) -> None:
    """All three leave, and one comes back to a smaller one: what is there stays as large."""

    def homes(users: int, size: str) -> dict[str, Any]:
        work = notebooks("desks", users, "a") | {"overrides": {"home_storage": size}}
        return manifest(work)

    served = manifest(serving("chat", MODELS[0], 1, "a"))
    plan: Plan | None = None
    for document in (homes(3, "50 GiB"), served, homes(1, "20 GiB"), served):
        result = compile_over(tmp_path, document, plan)
        plan = only(result).plan
    assert plan is not None
    (kept,) = (p for p in result.problems if p.rule == "GP022" and "home-desks" in p.message)
    assert kept.message.startswith("claims 'home-desks-0' to 'home-desks-2' (50 GiB each) are kept")
    models = sum(w.storage_bytes for w in plan.workloads)
    assert plan.tenants[0].storage_quota_bytes == 3 * 50 * 2**30 + models


@pytest.fixture
def stacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("rack.yaml").write_text(INVENTORY, encoding="utf-8")
    desks, tuner = notebooks("desks", 3, "a"), tuning("tuner", 1, "b")
    Path("both.yaml").write_text(yaml.dumps(manifest(desks, tuner)), encoding="utf-8")
    Path("one.yaml").write_text(yaml.dumps(manifest(desks)), encoding="utf-8")
    assert main(["compile", "both.yaml"]) == 0
    return tmp_path / "stacks/shop"


def test_volumes_stay_until_they_are_let_go(
    stacks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["compile", "one.yaml"]) == 0
    assert "--forget shop-b" in capsys.readouterr().err
    listed = (stacks / "urns.txt").read_text("utf-8")
    assert "Namespace::tenant-b  protect" in listed
    assert "PersistentVolumeClaim::tuner-checkpoints  protect" in listed
    assert main(["compile", "one.yaml", "--check"]) == 0
    assert main(["compile", "one.yaml", "--forget", "shop-b/typo"]) == 2
    assert "it keeps shop-b" in capsys.readouterr().err
    assert main(["compile", "one.yaml", "--forget", "shop-b"]) == 0
    assert "tenant-b" not in (stacks / "urns.txt").read_text("utf-8")


def test_fresh_knows_nothing_of_the_stack_that_is_there(stacks: Path) -> None:
    assert main(["compile", "one.yaml", "--fresh"]) == 0
    assert "tenant-b" not in (stacks / "urns.txt").read_text("utf-8")


def test_a_stack_that_cannot_be_read_is_said(
    stacks: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (stacks / "plan.yaml").write_text("api_version: gpuplan.dev/plan/v0\n", encoding="utf-8")
    assert main(["compile", "one.yaml", "--force"]) == 0
    assert "warning[GP020]" in capsys.readouterr().err
