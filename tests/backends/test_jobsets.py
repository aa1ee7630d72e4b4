"""Runs over nodes as JobSets: what is emitted, and how a stack comes to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuplan.kubernetes.addons import charts
from gpuplan.kubernetes.lower import lower
from gpuplan.kubernetes.runs import gangs
from gpuplan.kubernetes.update.carry import carry_over
from gpuplan.pipeline import Result, compile_files
from gpuplan.plan.model import Plan

EXAMPLE = Path(__file__).parents[2] / "examples" / "tune-70b.yaml"


def compiled(tmp_path: Path, platform: str = "", work: str = "", target: str = "") -> Result:
    text = EXAMPLE.read_text(encoding="utf-8")
    text = text.replace("target: kubernetes\n", f"target: kubernetes\n{platform}", 1) + work
    path = tmp_path / "m.yaml"
    path.write_text(text, encoding="utf-8")
    return compile_files([path])


def plan_of(tmp_path: Path, platform: str = "  jobs: jobset\n", work: str = "") -> Plan:
    return compiled(tmp_path, platform, work).stacks[0].plan


def runs(plan: Plan) -> list[dict[str, Any]]:
    kinds = ("Job", "CronJob", gangs.KIND)
    return [dict(o.tree) for o in lower(plan).objects if o.kind in kinds]


def test_all_pods_come_anew_when_one_fails_and_meet_at_a_name_of_the_set(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    (tree,) = runs(plan)
    assert (tree["apiVersion"], tree["kind"]) == (gangs.API_VERSION, "JobSet")
    (group,) = tree["spec"]["replicatedJobs"]
    job = group["template"]["spec"]
    assert (job["completions"], job["parallelism"], job["backoffLimit"]) == (4, 4, 0)
    assert [r["action"] for r in job["podFailurePolicy"]["rules"]] == ["FailJob"]
    rules = {r["action"]: r["onJobFailureReasons"] for r in tree["spec"]["failurePolicy"]["rules"]}
    assert rules["RestartJobSetAndIgnoreMaxRestarts"] == ["PodFailurePolicy"]
    assert rules["FailJobSet"] == ["DeadlineExceeded"]
    # JobSet's names: SET-GROUP-JOB-INDEX in the Service of its subdomain.
    pod, _, service = "full-70b-nodes-0-0.full-70b-nodes".partition(".")
    assert tree["spec"]["network"]["subdomain"] == service
    (container,) = job["template"]["spec"]["containers"]
    words = " ".join(str(w) for w in (*container.get("command", ()), *container["args"]))
    assert f"--master-addr={pod}.{service}" in words
    kinds = [o.kind for o in lower(plan).objects if o.name == "full-70b"]
    assert "Service" not in kinds  # its controller makes one


def test_a_pod_has_the_gpus_of_a_node_and_the_queue_admits_the_set(tmp_path: Path) -> None:
    (tree,) = runs(plan_of(tmp_path, "  jobs: jobset\n  queue: gpus\n"))
    assert tree["metadata"]["labels"]["kueue.x-k8s.io/queue-name"]
    (group,) = tree["spec"]["replicatedJobs"]
    (container,) = group["template"]["spec"]["template"]["spec"]["containers"]
    assert container["resources"]["limits"]["nvidia.com/gpu"] == "8"


def test_the_operator_comes_with_such_a_run_alone(tmp_path: Path) -> None:
    plan = plan_of(tmp_path)
    with_it = {c.name: c for c in plan.components}
    assert with_it["jobset"].version == "0.12.0"
    (chart,) = (c for c in charts.charts(plan) if c.component.name == "jobset")
    labels = charts.namespace(chart).tree["metadata"]["labels"]
    assert labels["pod-security.kubernetes.io/enforce"] == "baseline", "it touches no node"
    assert "GPU nodes" not in chart.timeout_reason
    assert "jobset" not in {c.name for c in plan_of(tmp_path, "").components}


@pytest.mark.parametrize("schedule", ["", "  schedule: 0 3 1 * *\n"])
def test_what_recurs_stays_a_cronjob_and_that_is_said(tmp_path: Path, schedule: str) -> None:
    found = compiled(tmp_path, "  jobs: jobset\n", schedule)
    (tree,) = runs(found.stacks[0].plan)
    assert tree["kind"] == ("CronJob" if schedule else "JobSet")
    said = any("platform.jobs has no effect" in p.message for p in found.problems)
    assert said == bool(schedule)


def test_a_run_that_is_there_is_not_turned_into_a_set_in_silence(tmp_path: Path) -> None:
    job, gang = plan_of(tmp_path, ""), plan_of(tmp_path)
    for before, after in ((job, gang), (gang, job)):
        _, notes = carry_over(before, after)
        assert any("takes its place and runs from the start" in n.message for n in notes)
    _, none = carry_over(gang, gang)
    assert none == ()


def test_a_set_whose_pods_change_is_a_new_run(tmp_path: Path) -> None:
    before = plan_of(tmp_path)
    after = plan_of(tmp_path, work="  environment: {LOG_LEVEL: debug}\n")
    plan, notes = carry_over(before, after)
    assert any("spec.replicatedJobs" in n.message for n in notes)
    (tree,) = runs(plan)
    assert tree["metadata"]["name"] == "full-70b-2"
    assert tree["spec"]["network"]["subdomain"] == "full-70b-2-nodes"
