"""`custom.py`: a stack's own additions reach every object, survive compilations, and are judged."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.preview.objects import kubernetes_objects
from gpuplan.preview.running.run import preview
from tests.preview.programs import need_sdk

ROOT = Path(__file__).parents[2]
IMPORT = "import pulumi_kubernetes as k8s\n\n\ndef change("
CHANGE = """\
    if kind == "kubernetes:core/v1:ServiceAccount":
        props["image_pull_secrets"] = [k8s.core.v1.LocalObjectReferenceArgs(name="registry")]
    if "metadata" in props:
        own = {**(props["metadata"].annotations or {}), "example.org/owner": "platform"}
        props["metadata"].annotations = own
    if kind == "kubernetes:apps/v1:Deployment":
        pod = props["spec"].template.spec
        pod.tolerations = [*pod.tolerations, k8s.core.v1.TolerationArgs(key="team")]
        sidecar = k8s.core.v1.ContainerArgs(name="logs", image="IMAGE")
        pod.containers = [*pod.containers, sidecar]


def transform("""
OWN = """
import cluster

k8s.core.v1.ConfigMap(
    "mine",
    metadata=k8s.meta.v1.ObjectMetaArgs(name="mine", namespace="chat"),
    data={"a": "b"},
    opts=pulumi.ResourceOptions(provider=cluster.provider),
)
"""


def compile_chat(folder: Path, *more: str) -> Path:
    assert main(["compile", str(ROOT / "examples/chat.yaml"), "-o", str(folder), *more]) == 0
    return folder / "chat"


def customized(folder: Path, image: str = "example.org/logs:1.2.3", own: str = "") -> Path:
    stack = compile_chat(folder)
    seed = stack / "custom.py"
    text = seed.read_text(encoding="utf-8").replace("\n\ndef change(", IMPORT, 1)
    head, _, tail = text.partition("\n\ndef transform(")
    changed = f"{head}\n{CHANGE.replace('IMAGE', image)}{tail}{own}"
    seed.write_text(changed, encoding="utf-8")
    return stack


def manifests(stack: Path) -> dict[str, Any]:
    need_sdk()
    found = kubernetes_objects(preview(stack))
    return {f"{o.manifest['kind']}/{o.identity[3]}": o.manifest for o in found}


@pytest.mark.sdk
def test_the_seed_alone_changes_no_object(tmp_path: Path) -> None:
    stack = compile_chat(tmp_path)
    before = manifests(stack)
    main_text = (stack / "__main__.py").read_text(encoding="utf-8")
    without = "".join(r for r in main_text.splitlines(keepends=True) if "import custom" not in r)
    (stack / "__main__.py").write_text(without, encoding="utf-8")
    assert manifests(stack) == before


@pytest.mark.sdk
def test_every_object_goes_through_the_hook(tmp_path: Path) -> None:
    found = manifests(customized(tmp_path))
    for name, manifest in found.items():
        assert manifest["metadata"]["annotations"]["example.org/owner"] == "platform", name
    pod = found["Deployment/assistant"]["spec"]["template"]["spec"]
    assert [c["name"] for c in pod["containers"]] == ["engine", "logs"]
    assert pod["tolerations"][-1] == {"key": "team"}
    assert pod["tolerations"][0]["key"] == "nvidia.com/gpu"
    assert found["ServiceAccount/assistant"]["imagePullSecrets"] == [{"name": "registry"}]
    kept = found["Service/assistant"]["metadata"]["annotations"]
    assert kept["pulumi.com/skipAwait"] == "true"


def test_a_compilation_keeps_it_and_brings_it_back(tmp_path: Path) -> None:
    stack = customized(tmp_path)
    own = (stack / "custom.py").read_text(encoding="utf-8")
    compile_chat(tmp_path)
    compile_chat(tmp_path, "--check")
    assert (stack / "custom.py").read_text(encoding="utf-8") == own
    assert main(["check", str(stack), "--fail-on", "warning"]) == 0
    (stack / "custom.py").unlink()
    compile_chat(tmp_path)
    assert "register_stack_transformation" in (stack / "custom.py").read_text(encoding="utf-8")


def test_check_reads_what_stands_in_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    stack = customized(tmp_path, image="example.org/logs:latest")
    assert main(["check", str(stack)]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "custom.py" in said
    assert "moving tag 'latest'" in said


@pytest.mark.sdk
def test_check_judges_what_only_a_run_shows(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The image is assigned in parts, which no reader of the text sees."""
    need_sdk()
    stack = customized(tmp_path)
    seed = stack / "custom.py"
    text = seed.read_text(encoding="utf-8")
    last = "        pod.containers = "
    assigned = '        sidecar.image = "logs:" + "latest"\n' + last
    joined = text.replace(last, assigned)
    seed.write_text(joined, encoding="utf-8")
    assert main(["check", str(stack)]) == 0
    capsys.readouterr()
    assert main(["check", str(stack), "--preview"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert "Deployment-assistant.json" in said
    assert "moving tag 'latest'" in said


@pytest.mark.sdk
def test_the_preview_judges_a_sound_stack_as_the_files_do(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_sdk()
    stack = compile_chat(tmp_path)
    capsys.readouterr()
    assert main(["check", str(stack)]) == 0
    files = capsys.readouterr().out
    assert main(["check", str(stack), "--preview"]) == 0
    assert capsys.readouterr().out == files


@pytest.mark.sdk
def test_resources_of_ones_own_are_previewed_and_noted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_sdk()
    stack = customized(tmp_path, own=OWN)
    capsys.readouterr()
    assert main(["preview", str(stack)]) == 0
    told = capsys.readouterr()
    assert "mine" in told.out
    assert "GP03" in told.err


def test_a_program_that_fails_is_a_message_of_check(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    need_sdk()
    stack = customized(tmp_path, own="\nraise ValueError('mine')\n")
    capsys.readouterr()
    assert main(["check", str(stack), "--preview"]) == 2
    assert "ValueError: mine" in " ".join(capsys.readouterr().err.split())
