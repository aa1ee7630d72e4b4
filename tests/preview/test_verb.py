"""`gpuplan preview` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from gpuplan.cli.main import main
from tests.preview.programs import IMPORTS, write

pytestmark = pytest.mark.sdk

CLAIM = """
k8s.core.v1.PersistentVolumeClaim(
    "models",
    metadata={"name": "models", "namespace": "shop"},
    spec={"storageClassName": "fast"},
    opts=ResourceOptions(protect=PROTECT),
)
"""
LIST = "kubernetes:core/v1:PersistentVolumeClaim::models  protect\n"


def stack(folder: Path, program: str, listed: str = LIST) -> Path:
    return write(folder, IMPORTS + program, files={"urns.txt": listed})


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return stack(tmp_path / "old", CLAIM.replace("PROTECT", "True"))


def test_a_new_stack_is_shown(old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preview", str(old)]) == 0
    text = capsys.readouterr().out
    assert " +   └─ kubernetes:core/v1:PersistentVolumeClaim  models    create  🔒\n" in text
    assert text.endswith("Resources:\n    + 2 to create\n")


def test_a_merge_that_loses_a_volume_fails(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = stack(tmp_path / "new", "", listed="")
    assert main(["preview", str(new), "--against", str(old)]) == 1
    shown = capsys.readouterr()
    assert "protected: this would fail" in shown.out
    assert "it is protected" in shown.err
    assert shown.err.count("error[") == 1


def test_a_merge_as_json(old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    new = stack(tmp_path / "new", CLAIM.replace("PROTECT", "True").replace("fast", "slow"))
    assert main(["preview", str(new), "--against", str(old), "--json"]) == 1
    steps = json.loads(capsys.readouterr().out)["steps"]
    [step] = [s for s in steps if s["operation"] == "replace"]
    assert (step["name"], step["blocked"], step["stateful"]) == ("models", True, True)
    assert step["reasons"] == ["spec.storageClassName"]


def test_a_volume_that_shrinks_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The provider would try it in place, and the API server refuse."""

    def sized(size: str) -> str:
        made = CLAIM.replace("PROTECT", "True")
        spec = 'spec={"resources": {"requests": {"storage": "SIZE"}}, '.replace("SIZE", size)
        return made.replace("spec={", spec)

    old = stack(tmp_path / "old", sized("2Gi"))
    assert (
        main(["preview", str(stack(tmp_path / "same", sized("2048Mi"))), "--against", str(old)])
        == 0
    )
    capsys.readouterr()
    new = stack(tmp_path / "new", sized("1Gi"))
    assert main(["preview", str(new), "--against", str(old)]) == 1
    text = capsys.readouterr().out
    assert "cannot change: spec.resources.requests.storage: this would fail" in text
    assert "error: 1 step would fail: the API server refuses such a change" in text


def test_a_broken_program_ends_with_2(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["preview", str(stack(tmp_path, "print(nothing)\n"))]) == 2
    text = capsys.readouterr().err
    line = len(IMPORTS.splitlines()) + 1
    assert f"the program failed at __main__.py:{line}: NameError" in text
    assert f"{line} | print(nothing)" in text
