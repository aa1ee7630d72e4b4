"""A batch as its owner meets it: room for its files, held until they are there, let go, run."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

from gpuplan.kubernetes.lower import lower
from gpuplan.kubernetes.naming import amount
from gpuplan.pipeline import Compiled, Standing, compile_files, emit
from gpuplan.plan.model import Plan
from gpuplan.render import yaml
from gpuplan.units import GIB
from tests.support.changing_manifests import INVENTORY, manifest
from tests.support.require import require

REQUESTS, INPUT, OUTPUT = 1_000_000, 700, 250
NIGHTLY = {
    "name": "nightly",
    "task": "batch",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "precision": "bf16",
    "load": {"requests": REQUESTS, "input_tokens": INPUT, "output_tokens": OUTPUT},
    "slo": {"finish_within": "8 h"},
    "tenancy": {"team": "a"},
}


@pytest.fixture
def nightly(tmp_path: Path) -> Compiled:
    return compiled(tmp_path, manifest(NIGHTLY))


def compiled(folder: Path, document: dict[str, Any], there: Plan | None = None) -> Compiled:
    (folder / "rack.yaml").write_text(INVENTORY, encoding="utf-8")
    path = folder / "m.yaml"
    path.write_text(yaml.dumps(document), encoding="utf-8")
    result = compile_files([path], standing=lambda _: Standing(there))
    assert [p.message for p in result.problems if p.severity.value == "error"] == []
    return result.stacks[0]


def test_one_that_recurs_is_held_as_a_whole_and_never_runs_twice_at_once(tmp_path: Path) -> None:
    recurring = {**NIGHTLY, "schedule": "30 2 * * 1-5"}
    plan = compiled(tmp_path, manifest(recurring)).plan
    assert objects(plan, "Job") == {}
    (spec,) = objects(plan, "CronJob").values()
    once = objects(compiled(tmp_path, manifest(NIGHTLY)).plan, "Job")["nightly"]
    held = once.pop("suspend")
    assert spec["suspend"] == held
    assert spec["jobTemplate"]["spec"] == once
    assert (spec["schedule"], spec["timeZone"]) == ("30 2 * * 1-5", "Etc/UTC")
    assert spec["concurrencyPolicy"] == "Forbid"


def test_what_recurs_is_started_by_hand_as_the_readme_says(tmp_path: Path) -> None:
    plan = compiled(tmp_path, manifest({**NIGHTLY, "schedule": "30 2 * * 1-5"})).plan
    readme = text(plan, "README.md")
    assert "`nightly` starts at `30 2 * * 1-5` in UTC" in readme
    assert "kubectl -n shop-a create job nightly-now --from=cronjob/nightly" in readme
    assert "--replace" not in readme


def objects(plan: Plan, kind: str) -> dict[str, Any]:
    return {o.name: o.tree["spec"] for o in lower(plan).objects if o.kind == kind}


def text(plan: Plan, path: str) -> str:
    return next(f.text for f in emit(plan).files if f.path == path)


def test_its_volumes_hold_all_requests_and_all_results(nightly: Compiled) -> None:
    claims = objects(nightly.plan, "PersistentVolumeClaim")
    room = {n: amount(c["resources"]["requests"]["storage"]) for n, c in claims.items()}
    for name, tokens in (("nightly-requests", INPUT), ("nightly-results", OUTPUT)):
        lines = REQUESTS * (4 * tokens + 1024)  # 4 bytes a token, a KiB for each line's own fields
        assert 1.1 * lines <= int(room[name] or 0) <= 1.1 * lines + GIB
    mounted = objects(nightly.plan, "Job")["nightly"]["template"]["spec"]["containers"][0]
    where = {m["name"]: m["mountPath"] for m in mounted["volumeMounts"]}
    assert (where["requests"], where["results"]) == ("/requests", "/results")
    (tenant,) = nightly.plan.tenants
    assert tenant.storage_quota_bytes >= sum(int(size or 0) for size in room.values())


def test_images_are_larger_than_their_prompts(tmp_path: Path) -> None:
    painted = NIGHTLY | {
        "model": "black-forest-labs/FLUX.1-dev",
        "engine": "vllm-omni",
        "load": {"requests": 1000, "images": {"mean": "1024x1024", "steps": 28}},
        "environment": {"NOTE": "own"},
        "command": ["python3", "paint.py"],
    }
    plan = compiled(tmp_path, manifest(painted)).plan
    size = {v.name: v.size_bytes for v in plan.workloads[0].volumes}
    assert size["results"] > 1000 * 1024 * 1024 * 4 > size["requests"]


def test_it_waits_for_its_requests_without_a_gpu(nightly: Compiled, tmp_path: Path) -> None:
    try:
        import pulumi_kubernetes  # noqa: F401 - whether the SDK is there
    except ImportError:
        require("sdk", "the Pulumi SDK is not installed: pip install gpuplan[pulumi]")
    from gpuplan.preview.running.run import preview

    stack = tmp_path / "stack"
    for file in emit(nightly.plan).files:
        (stack / file.path).parent.mkdir(parents=True, exist_ok=True)
        (stack / file.path).write_text(file.text, encoding="utf-8")

    def suspended(**config: str) -> bool:
        made = {r.type: r for r in preview(stack, config=config).resources}
        answer: bool = made["kubernetes:batch/v1:Job"].inputs["spec"]["suspend"]
        return answer

    assert suspended() is True
    assert suspended(**{"hold-nightly": "false"}) is False


def test_its_owner_fills_it_with_what_the_stack_has(nightly: Compiled) -> None:
    plan = nightly.plan
    start = text(plan, "README.md").partition("## Start")[2].partition("\n## ")[0]
    lines = [shlex.split(line) for line in start.split("```")[1].splitlines()[1:]]
    assert [" ".join(line[:4]) for line in lines[-2:]] == [
        "pulumi config set hold-nightly",
        "pulumi up",
    ]
    apply, wait, copy, delete = lines[:4]
    pod = YAML(typ="safe", pure=True).load(text(plan, apply[-1]))
    name = pod["metadata"]["name"]
    assert f"pod/{name}" in wait
    assert copy[-1] == f"{name}:/requests/"
    assert delete[-1] == name
    spec = pod["spec"]
    claims = [v["persistentVolumeClaim"]["claimName"] for v in spec["volumes"]]
    assert claims == ["nightly-requests", "nightly-results"]
    assert set(claims) <= objects(plan, "PersistentVolumeClaim").keys()
    # Its own namespace, rights and network; and the quota admits it beside the run's own pods.
    (account,) = (o for o in lower(plan).objects if o.kind == "ServiceAccount")
    assert (pod["metadata"]["namespace"], spec["serviceAccountName"]) == (
        account.namespace,
        account.name,
    )
    allowed = objects(plan, "NetworkPolicy")["nightly"]["podSelector"]["matchLabels"]
    assert allowed.items() <= pod["metadata"]["labels"].items()
    (quota,) = objects(plan, "ResourceQuota").values()
    (run,) = objects(plan, "Job").values()
    for resource in ("cpu", "memory"):
        each = run["template"]["spec"]["containers"][0]["resources"]["requests"][resource]
        own = run["completions"] * (amount(each) or 0)
        copying = amount(spec["containers"][0]["resources"]["requests"][resource]) or 0
        assert own + copying <= (amount(quota["hard"][f"requests.{resource}"]) or 0)
    assert not [k for k in spec["containers"][0]["resources"]["limits"] if "gpu" in k]


def test_a_stack_from_before_gets_the_volumes_beside_its_own(
    nightly: Compiled, tmp_path: Path
) -> None:
    (work,) = nightly.plan.workloads
    weights = tuple(v for v in work.volumes if v.purpose == "models")
    before = replace(nightly.plan, workloads=(replace(work, volumes=weights),))
    after = compiled(tmp_path, manifest(NIGHTLY), before).plan
    kept, claims = (objects(p, "PersistentVolumeClaim") for p in (before, after))
    assert kept.items() <= claims.items()
    assert {"nightly-requests", "nightly-results"} <= claims.keys()
