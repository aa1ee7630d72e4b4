"""Engines that read texts are told to write none, and where their weights are."""

from __future__ import annotations

from dataclasses import replace
from typing import Literal

import pytest

from gpuplan.diagnostics import Diagnostic
from gpuplan.engines.start import start
from gpuplan.kubernetes.lower import lower
from gpuplan.plan.model import Engine, Plan, Workload
from tests.engines.test_engines import launch_of, texts
from tests.support.samples import serving_plan, serving_workload

TEI = Engine(name="tei", version="1.9.3", image="example/tei:1.9.3", digest=None, source="a test")


def reader(pooling: Literal["embed", "score"] = "embed", **changes: object) -> Workload:
    work = serving_workload(**changes)
    assert work.serving is not None
    return replace(work, serving=replace(work.serving, pooling=pooling, texts=50))


def test_vllm_reads_with_its_pooling_runner() -> None:
    said = texts(launch_of(reader()))
    assert {"--runner=pooling", "--convert=embed"} <= set(said)
    assert not [a for a in said if a.startswith("--kv-cache-dtype")]
    assert "--convert=classify" in texts(launch_of(reader("score")))
    plain = texts(launch_of(serving_workload()))
    assert not [a for a in plain if a.startswith(("--runner", "--convert"))]


def test_tei_is_started_by_its_image() -> None:
    launch = launch_of(reader("score", engine=TEI, precision="fp16"))
    said = texts(launch)
    assert launch.command == ()
    assert {"--dtype=float16", "--hostname=0.0.0.0", "--auto-truncate=false"} <= set(said)
    assert "--max-client-batch-size=50" in said  # the router refuses larger requests
    assert "--huggingface-hub-cache=/models/hub" in said
    assert launch.health == "/health"
    assert not launch.python


def test_an_engine_that_reads_writes_nothing() -> None:
    problem = start(serving_workload(engine=TEI), first="first-host")
    assert isinstance(problem, Diagnostic)
    assert "tei has no known start" in problem.message


@pytest.mark.parametrize("engine", ["sglang"])
def test_an_engine_that_writes_is_not_told_to_read(engine: str) -> None:
    other = replace(serving_workload().engine, name=engine)
    assert isinstance(start(reader(engine=other), first="first-host"), Diagnostic)


def test_a_reader_is_a_server_of_kubernetes() -> None:
    plan: Plan = serving_plan(workloads=(reader(engine=TEI),))
    (item,) = (o for o in lower(plan).objects if o.kind == "Deployment")
    (container,) = item.tree["spec"]["template"]["spec"]["containers"]
    assert "command" not in container or container["command"] is None
    assert container["readinessProbe"]["httpGet"]["path"] == "/health"
