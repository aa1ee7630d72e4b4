"""Prompts and answers with pods of their own in a cluster, and the router before them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.diagnostics import Severity
from gpuplan.kubernetes.lower import lower
from gpuplan.kubernetes.objects import KubernetesObject
from gpuplan.plan.model import Plan
from tests.support.plans import read_plan
from tests.tools.program import ROOT

NAME = "documents"
ROLES = ("prefill", "decode")


@pytest.fixture(scope="module")
def plan() -> Plan:
    return read_plan(ROOT / "stacks" / "pools")


def one(plan: Plan, identity: str) -> dict[str, Any]:
    (item,) = (o for o in lower(plan).objects if o.identity == identity)
    return dict(item.tree)


def words(pod: dict[str, Any]) -> list[str]:
    (container,) = pod["containers"]
    return list(container["args"])


def pod(tree: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = tree["spec"]["template"]["spec"]
    return found


def test_each_role_has_its_pods_and_the_router_asks_every_one_of_them(plan: Plan) -> None:
    (work,) = plan.workloads
    pools = work.disaggregation
    assert pools is not None
    told = words(pod(one(plan, f"Deployment/{NAME}-router")))
    for role, count in zip(ROLES, (pools.prefill_replicas, pools.decode_replicas), strict=True):
        sets = one(plan, f"StatefulSet/{NAME}-{role}")
        assert sets["spec"]["replicas"] == count
        service = one(plan, f"Service/{NAME}-{role}")
        assert service["spec"]["clusterIP"] == "None"
        assert service["metadata"]["name"] == sets["spec"]["serviceName"]
        assert service["spec"]["selector"] == sets["spec"]["selector"]["matchLabels"]
        name, space = sets["metadata"]["name"], sets["metadata"]["namespace"]
        port = work.serving.port if work.serving else 0
        urls = [f"http://{name}-{n}.{name}.{space}.svc:{port}" for n in range(count)]
        # The program of the image reads `--prefill URL` before its other arguments: as two words.
        flags = [place for place, word in enumerate(told) if word == f"--{role}"]
        assert [told[place + 1] for place in flags] == urls


def test_pods_of_both_kinds_say_where_their_caches_are_read(plan: Plan) -> None:
    for role, kind in zip(ROLES, ("kv_producer", "kv_consumer"), strict=True):
        spec = pod(one(plan, f"StatefulSet/{NAME}-{role}"))
        (told,) = (w for w in words(spec) if w.startswith("--kv-transfer-config="))
        transfer = json.loads(told.partition("=")[2])
        assert transfer == {"kv_connector": "NixlConnector", "kv_role": kind}
        (container,) = spec["containers"]
        names = {e["name"]: e for e in container["env"]}
        host = names["VLLM_NIXL_SIDE_CHANNEL_HOST"]
        assert host["valueFrom"] == {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.podIP"}}
        assert names["VLLM_NIXL_SIDE_CHANNEL_PORT"]["value"] == "5600"
        assert names["HF_TOKEN"]["valueFrom"]["secretKeyRef"]["name"] == "huggingface"
        limits = container["resources"]["limits"]
        assert limits["rdma/rdma_shared_device_a"] == limits["nvidia.com/gpu"]
        assert "IPC_LOCK" in container["securityContext"]["capabilities"]["add"]


def test_clients_reach_the_router_and_nothing_selects_pods_of_two_kinds(plan: Plan) -> None:
    service = one(plan, f"Service/{NAME}")
    router = one(plan, f"Deployment/{NAME}-router")
    assert service["spec"]["selector"] == router["spec"]["selector"]["matchLabels"]
    kinds = [one(plan, f"StatefulSet/{NAME}-{role}") for role in ROLES]
    labels = [t["spec"]["template"]["metadata"]["labels"] for t in (*kinds, router)]
    for tree in (*kinds, router):
        wanted = tree["spec"]["selector"]["matchLabels"].items()
        assert sum(wanted <= own.items() for own in labels) == 1


def test_pods_talk_to_each_other_on_every_port_and_the_router_has_no_gpu(plan: Plan) -> None:
    policy = one(plan, f"NetworkPolicy/{NAME}")["spec"]
    own = {"podSelector": policy["podSelector"]}
    assert {"from": [own]} in policy["ingress"]
    assert {"to": [own]} in policy["egress"]
    spec = pod(one(plan, f"Deployment/{NAME}-router"))
    assert set(spec["containers"][0]["resources"]["limits"]) == {"cpu", "memory"}
    assert spec["securityContext"]["runAsNonRoot"]
    assert not spec["automountServiceAccountToken"]


def quota(plan: Plan) -> dict[str, str]:
    (found,) = (o for o in lower(plan).objects if o.kind == "ResourceQuota")
    return dict(found.tree["spec"]["hard"])


def test_the_tenants_quota_has_room_for_the_routers(plan: Plan) -> None:
    (work,) = plan.workloads
    both = replace(plan, workloads=(replace(work, disaggregation=None),))
    assert int(quota(plan)["requests.cpu"]) == int(quota(both)["requests.cpu"]) + 4
    assert quota(plan)["requests.nvidia.com/gpu"] == quota(both)["requests.nvidia.com/gpu"]


def test_a_budget_of_each_kind_that_has_several_pods(plan: Plan) -> None:
    budgets: list[KubernetesObject] = [
        o for o in lower(plan).objects if o.kind == "PodDisruptionBudget"
    ]
    assert {o.key for o in budgets} == {f"{NAME}-prefill", f"{NAME}-router"}


def test_volumes_of_one_node_are_refused(plan: Plan) -> None:
    (work,) = plan.workloads
    volumes = tuple(replace(v, shared=False) for v in work.volumes)
    changed = replace(plan, workloads=(replace(work, volumes=volumes),))
    problems = [d for d in lower(changed).diagnostics if d.severity is Severity.ERROR]
    assert any("one node only" in d.message for d in problems)


def test_a_renamed_workload_keeps_its_pods_names(plan: Plan) -> None:
    (work,) = plan.workloads
    changed = replace(plan, workloads=(replace(work, name="papers", renamed_from=(NAME,)),))
    (item,) = (o for o in lower(changed).objects if o.identity == "StatefulSet/papers-prefill")
    assert item.name == f"{NAME}-prefill"
    assert f"StatefulSet/{NAME}-prefill" in item.former


MANIFEST = (ROOT / "examples" / "pools.yaml").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("target: kubernetes", "target: docker", "target 'docker' has no pools"),
        ("target: kubernetes", "target: eks", "target 'eks' has no pools"),
        ("kind: infiniband", "kind: efa", "over EFA"),
        ("  fabric:", "  # fabric:", "no `platform.fabric`"),
    ],
)
def test_platforms_without_pools_are_told_so(
    old: str, new: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "pools.yaml"
    path.write_text(MANIFEST.replace(old, new), encoding="utf-8")
    assert main(["compile", str(path), "-o", str(tmp_path / "stacks")]) == 2
    told = capsys.readouterr().err
    assert said in " ".join(told.split())
    assert not (tmp_path / "stacks").exists()


def test_replay_says_that_it_does_not_play_them(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["replay", str(ROOT / "stacks" / "pools")]) == 2
    assert "only prefill or decode are not played (documents)" in " ".join(
        capsys.readouterr().err.split()
    )


def test_without_pools_the_stack_that_is_there_is_replaced_whole(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both ways: the volume stays, the Service keeps its name."""
    path, stacks = tmp_path / "pools.yaml", tmp_path / "stacks"
    names = []
    for text in (MANIFEST, MANIFEST.replace("  disaggregation: prefill_decode\n", ""), MANIFEST):
        path.write_text(text, encoding="utf-8")
        assert main(["compile", str(path), "-o", str(stacks)]) == 0, capsys.readouterr().err
        objects = lower(read_plan(stacks / "pools")).objects
        names.append(
            {o.identity for o in objects if o.kind in ("PersistentVolumeClaim", "Service")}
        )
    assert names[0] == names[2]
    assert names[1] < names[0]
