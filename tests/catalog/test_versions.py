"""Versions that sources state together, and what is said of all others."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from ruamel.yaml import YAML

from gpuplan.catalog.load import load_catalog
from gpuplan.diagnostics import Diagnostic
from gpuplan.pipeline import Compiled, Result, compile_files
from gpuplan.policy.reading import Stack
from gpuplan.policy.review import run_compiled
from gpuplan.resolve.untested import nearest_version

CATALOG = load_catalog()
OLD_DRIVER = "vllm 0.27.1 is built on cuda-13, which needs driver 580 or newer: "
MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: chat
platform:
  target: kubernetes
  gpus: [l40s]
  versions: {versions}
workloads:
- name: assistant
  task: inference
  model: Qwen/Qwen3-8B
  load: {{requests_per_second: 1, input_tokens: 500, output_tokens: 100}}
"""


def compiled(folder: Path, versions: str) -> Result:
    path = folder / "chat.yaml"
    path.write_text(MANIFEST.format(versions=versions), encoding="utf-8")
    return compile_files([path])


def stack(folder: Path, versions: str) -> Compiled:
    result = compiled(folder, versions)
    assert result.stacks, [p.message for p in result.problems]
    return result.stacks[0]


def refused(folder: Path, versions: str) -> Diagnostic:
    result = compiled(folder, versions)
    assert not result.stacks
    (problem,) = (p for p in result.problems if p.rule == "GP015")
    return problem


def text(result: Compiled, path: str) -> str:
    return next(f.text for f in result.files if f.path == path)


@pytest.mark.parametrize(
    ("versions", "message", "label", "field"),
    [
        (
            "{gpu-operator: v99.1.2}",
            "no source states gpu-operator v99.1.2",
            "the nearest that is known is v26.7.0",
            "gpu-operator",
        ),
        (
            "{gpu-operator: v25.9.7}",
            "no source states gpu-operator v25.9.7",
            "the nearest that is known is v25.3.4",
            "gpu-operator",
        ),
        (
            "{gpu-operator: v25.3.0}",
            OLD_DRIVER + "gpu-operator v25.3.0 is to install 570.124.06",
            "gpu-operator v25.3.4 is the oldest that will do",
            "gpu-operator",
        ),
        (
            "{driver: 570.211.01}",
            OLD_DRIVER + "gpu-operator v26.3.3 is to install 570.211.01",
            "driver 580.126.20 is the oldest that will do",
            "driver",
        ),
        (
            "{driver: 610.57.04}",
            "no source states driver 610.57.04 for gpu-operator v26.3.3",
            "the nearest is 595.71.05",
            "driver",
        ),
        (
            '{kubernetes: "1.31"}',
            "gpu-operator v26.3.3 is not tested with Kubernetes 1.31",
            "with 1.32 to 1.36; the nearest is 1.32",
            "kubernetes",
        ),
        (
            '{gpu-operator: v25.10.1, kubernetes: "1.36.2"}',
            "gpu-operator v25.10.1 is not tested with Kubernetes 1.36.2",
            "with 1.30 to 1.35; the nearest is 1.35",
            "kubernetes",
        ),
    ],
)
def test_versions_that_no_source_states_together_are_refused(
    tmp_path: Path, versions: str, message: str, label: str, field: str
) -> None:
    problem = refused(tmp_path, versions)
    assert (problem.message, problem.label) == (message, label)
    assert str(problem.origin).endswith(f"platform.versions.{field}")


def test_a_reason_takes_what_no_source_states_and_everybody_sees_it(tmp_path: Path) -> None:
    result = stack(tmp_path, "{gpu-operator: {version: v99.1.2, untested: our own build}}")
    (operator,) = result.plan.components
    assert operator.untested == "gpu-operator v99.1.2: our own build"
    assert (operator.driver, operator.digest, operator.kubernetes_tested) == (None, None, ())
    assert operator.source == "manifest: platform.versions.gpu-operator"
    assert "not tested so: gpu-operator v99.1.2: our own build" in text(result, "README.md")
    plan_text = text(result, "plan.yaml")
    judged = Stack(place="chat", plan=result.plan, plan_text=plan_text, files=result.files)
    report = run_compiled([judged], as_of=date(2026, 11, 23))
    assert "GP605" in {v.rule for v in report.verdicts}


def test_a_reason_at_one_version_excuses_that_one_alone(tmp_path: Path) -> None:
    excused = "{version: v25.10.1, untested: it is there}"
    problem = refused(
        tmp_path, '{gpu-operator: v25.3.0, kubernetes: {version: "1.36", untested: x}}'
    )
    assert "is built on cuda-13" in problem.message
    assert stack(tmp_path, f'{{gpu-operator: {excused}, kubernetes: "1.36"}}')


def test_what_is_stated_together_is_taken_with_its_own_facts(tmp_path: Path) -> None:
    result = stack(tmp_path, '{gpu-operator: v25.10.1, driver: 580.126.16, kubernetes: "1.34"}')
    (operator,) = result.plan.components
    assert (operator.version, operator.driver) == ("v25.10.1", "580.126.16")
    assert "v25.10.1, 2025-12-03" in operator.source
    assert result.plan.kubernetes_version == "1.34"
    values = YAML(typ="safe", pure=True).load(text(result, "helm/10-gpu-operator/values.yaml"))
    assert values["driver"]["version"] == "580.126.16"
    assert "components/gpu-operator.yaml v25.10.1" in text(result, "gpuplan.lock")


def test_a_cluster_too_old_for_the_objects_is_refused(tmp_path: Path) -> None:
    """That operator worked with Kubernetes 1.29; a pod that waits in preStop does not."""
    versions = '{gpu-operator: v25.3.4, driver: 580.82.07, kubernetes: "1.29"}'
    (problem,) = (p for p in compiled(tmp_path, versions).problems if p.rule == "GP016")
    assert problem.message == (
        "the cluster is to have Kubernetes 1.29, and the stack needs 1.30 or newer"
    )
    assert "preStop.sleep" in problem.help


def test_an_image_of_ones_own_needs_no_driver_that_is_known(tmp_path: Path) -> None:
    own = "  engine: {name: vllm, image: registry.example.org/vllm:cu128}\n  load"
    path = tmp_path / "own.yaml"
    written = MANIFEST.format(versions="{gpu-operator: v25.3.0}").replace("  load", own)
    path.write_text(written, encoding="utf-8")
    assert compile_files([path]).stacks


def test_another_release_of_an_engine_names_the_one_that_is_known(tmp_path: Path) -> None:
    path = tmp_path / "own.yaml"
    written = MANIFEST.format(versions="{}").replace(
        "  load", "  engine: {name: vllm, version: 0.19.0}\n  load"
    )
    path.write_text(written, encoding="utf-8")
    (problem,) = compile_files([path]).problems
    assert problem.rule == "GP015"
    assert problem.message == "no source states an image of vllm 0.19.0"
    assert problem.label == "the version that is known is 0.27.1"


def test_no_release_of_kubernetes_is_read_into_other_words(tmp_path: Path) -> None:
    (problem,) = compiled(tmp_path, "{kubernetes: newest}").problems
    assert (problem.rule, problem.message) == ("GP005", "'newest' is no release of Kubernetes")


@pytest.mark.parametrize(
    ("version", "near"), [("v27", "v2.0"), ("v1.5", "v1.4"), ("v0.1", "v1.3"), ("v1.10", "v1.10")]
)
def test_the_nearest_is_the_newest_that_is_not_newer(version: str, near: str) -> None:
    assert nearest_version(version, ("v1.4", "v1.10", "v2.0", "v1.3")) == near


def test_the_pin_is_stated_with_the_engines_that_are_chosen() -> None:
    """What is installed by default must be a combination that would be accepted."""
    pin = CATALOG.component("gpu-operator")
    assert pin is not None
    assert pin.driver in pin.drivers
    for engine in map(CATALOG.engine, CATALOG.ids("engines")):
        assert engine is not None
        cuda = CATALOG.cuda(engine.cuda) if engine.cuda else None
        assert cuda is None or int(pin.driver.split(".")[0]) >= int(cuda.driver)


@pytest.mark.parametrize(
    ("versions", "message"),
    [
        ('{keda: 2.20.2, kubernetes: "1.36"}', "keda 2.20.2 is not tested with Kubernetes 1.36"),
        ("{keda: 2.99.0}", "no source states keda 2.99.0"),
        ("{kube-prometheus-stack: 1.0.0}", "no source states kube-prometheus-stack 1.0.0"),
    ],
)
def test_what_the_cluster_has_is_in_the_matrix(tmp_path: Path, versions: str, message: str) -> None:
    assert refused(tmp_path, versions).message == message


def test_a_chart_is_not_for_an_older_kubernetes(tmp_path: Path) -> None:
    """Beside the operator, which is not tested with it either."""
    versions = '{kube-prometheus-stack: 88.5.3, kubernetes: "1.24"}'
    found = [p.message for p in compiled(tmp_path, versions).problems if p.rule == "GP015"]
    assert "kube-prometheus-stack 88.5.3 is not for Kubernetes 1.24" in found


@pytest.mark.parametrize(
    "versions",
    [
        '{keda: 2.20.2, kube-prometheus-stack: 88.5.3, kubernetes: "1.34"}',
        "{keda: {version: 2.99.0, untested: our own build}}",
    ],
)
def test_what_the_cluster_has_is_not_installed(tmp_path: Path, versions: str) -> None:
    made = stack(tmp_path, versions)
    assert [c.name for c in made.plan.components] == ["gpu-operator"]
