"""Everything that a plan names by a word that somebody else could move is in its lock."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from gpuplan.plan.model import Plan, Speculative
from gpuplan.plan.outside.pins import pinned, pins
from tests.support.boxes import CHAT, stack, text
from tests.support.plans import read_plan
from tests.support.stack_plans import serving_plan

COMMIT, DIGEST = "a" * 40, "sha256:" + "b" * 64


def with_drafts() -> Plan:
    plan = serving_plan()
    workload = plan.workloads[0]
    assert workload.serving
    drafts = Speculative(method="eagle3", model="example/head", tokens=3)
    serving = replace(workload.serving, speculative=drafts)
    return replace(plan, workloads=(replace(workload, serving=serving),))


def test_a_draft_model_is_pinned_as_its_model_is() -> None:
    plan = with_drafts()
    (pin,) = (p for p in pins(plan) if p.name == "example/head")
    assert (pin.kind, pin.value) == ("model", None)
    known = pinned(plan, {("model", "example/head"): COMMIT})
    serving = known.workloads[0].serving
    assert serving
    assert serving.speculative
    assert serving.speculative.revision == COMMIT
    assert pinned(known, {("model", "example/head"): "c" * 40}) == known


def test_what_stands_beside_the_workloads_is_pinned_too(tmp_path: Path) -> None:
    plan = read_plan(stack(tmp_path, text(CHAT)))
    images = {p.name: p.value for p in pins(plan) if p.kind == "image"}
    assert plan.balancer
    assert images[plan.balancer.image] == plan.balancer.digest
    grafana = next(e.image for e in plan.monitors if e.name == "grafana")
    assert images[grafana] is None
    known = pinned(plan, {("image", grafana): DIGEST})
    assert {e.name: e.digest for e in known.monitors}["grafana"] == DIGEST
