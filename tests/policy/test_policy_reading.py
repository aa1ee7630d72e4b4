"""What lies where stacks are looked for: which are found, which files they have, what is told."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from gpuplan.errors import Rejected
from gpuplan.policy.reading import default_waivers, read_side, read_stacks
from tests.support.policy_samples import write
from tests.support.samples import libvirt_plan, serving_plan


def refused(path: Path) -> list[str]:
    with pytest.raises(Rejected) as raised:
        read_stacks(path)
    return [d.message for d in raised.value.diagnostics]


def test_a_folder_that_cannot_be_read_is_named_and_not_the_stack(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose path is longer than the system takes."""
    root = write(tmp_path, serving_plan())
    monkeypatch.chdir(root)
    for _ in range(18):
        Path("d" * 250).mkdir()
        os.chdir("d" * 250)
    monkeypatch.chdir(tmp_path)
    [message] = refused(root)
    assert message.startswith(f"cannot read {root}/ddd")
    assert message.endswith(": file name too long")


def test_a_file_that_fails_without_saying_its_name_is_the_one_asked_for() -> None:
    memory = Path("/proc/self/mem")
    if not memory.is_file():
        pytest.skip("no /proc here")
    assert refused(memory) == ["cannot read /proc/self/mem: input/output error"]


def test_a_folder_of_stacks_has_those_that_stand_in_it(tmp_path: Path) -> None:
    assert refused(tmp_path)[0].startswith(f"{tmp_path} holds no stack")
    write(tmp_path / "deep", serving_plan())
    (tmp_path / "plan.yaml.d").mkdir()
    (tmp_path / "file").write_text("x", "utf-8")
    assert refused(tmp_path)[0].startswith(f"{tmp_path} holds no stack")
    assert [s.place for s in read_stacks(tmp_path / "deep")] == [f"{tmp_path}/deep/chat"]
    root = write(tmp_path, libvirt_plan())
    assert [s.place for s in read_stacks(tmp_path)] == [str(root)]


def test_a_plan_alone_is_read_with_the_evidence_beside_it(tmp_path: Path) -> None:
    root = write(tmp_path, serving_plan())
    (stack,) = read_stacks(root / "plan.yaml")
    assert stack.plan.evidence == serving_plan().evidence
    assert not stack.files.files
    assert stack.file("plan.yaml") == stack.file("x.py") == f"{root}/plan.yaml"
    (whole,) = read_stacks(root)
    assert whole.plan == stack.plan
    assert whole.file("x.py") == f"{root}/x.py"
    (root / "evidence.yaml").unlink()
    (without,) = read_stacks(root / "plan.yaml")
    assert without.plan.evidence == ()
    assert [s.plan.evidence for s in read_stacks(root)] == [()]


@pytest.mark.parametrize(
    "text", ["", "name: chat\n", "api_version: gpuplan.dev/plan/v1\nname: [\n"]
)
def test_a_plan_that_is_none_is_named_by_its_file(tmp_path: Path, text: str) -> None:
    root = write(tmp_path, serving_plan())
    (root / "plan.yaml").write_text(text, "utf-8")
    said = refused(root)
    assert said == refused(root / "plan.yaml")
    assert {f"{root}/plan.yaml" in message for message in said} == {True}
    assert {f"{root}/plan.yaml/" in message for message in said} == {False}


@pytest.mark.parametrize(
    ("path", "kept"),
    [
        ("x.py", True),
        ("sub/x.py", True),
        ("sub/.x", True),
        ("sub/.git/x", True),
        ("sub/venv/x", True),
        (".git/x", False),
        ("venv/x", False),
        ("sub/__pycache__/x", False),
        ("__pycache__/x", False),
    ],
)
def test_files_of_a_stack_are_all_but_the_users_own(tmp_path: Path, path: str, kept: bool) -> None:
    root = write(tmp_path, serving_plan())
    (root / path).parent.mkdir(parents=True, exist_ok=True)
    (root / path).write_text("text", "utf-8")
    (stack,) = read_stacks(root)
    assert [f.text for f in stack.files if f.path == path] == (["text"] if kept else [])


def test_links_are_read_as_where_they_lead(tmp_path: Path) -> None:
    root = write(tmp_path, serving_plan())
    (root / "to").symlink_to("README.md")
    (root / "folder").symlink_to("..")
    (root / "__pycache__").symlink_to("..")
    os.mkfifo(root / "pipe")
    (stack,) = read_stacks(root)
    own = {f.path: f.text for f in stack.files}
    assert (own["to"], own["folder"], own["pipe"]) == ("README.md", "..", "")
    assert own["__pycache__"] == ".."
    assert "folder/chat/plan.yaml" not in own


def test_configuration_of_an_environment_is_the_users(tmp_path: Path) -> None:
    root = write(tmp_path, serving_plan(), **{"Pulumi.dev.yaml": "a: 1\n", "Pulumi.yaml": "b: 1\n"})
    (stack,) = read_stacks(root)
    seeds = {f.path: f.seed for f in stack.files}
    assert seeds["Pulumi.dev.yaml"]
    assert not seeds["Pulumi.yaml"]
    assert not seeds["plan.yaml"]


def test_a_side_of_a_comparison_may_be_nothing(tmp_path: Path) -> None:
    assert read_side(Path("/dev/null")) == read_side(tmp_path) == ()
    write(tmp_path, serving_plan())
    assert [s.plan.name for s in read_side(tmp_path)] == ["chat"]
    (tmp_path / "file").mkdir()
    with pytest.raises(Rejected, match="no such file or directory"):
        read_side(tmp_path / "absent")


def test_waivers_are_those_of_the_folder_where_the_command_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert default_waivers() is None
    Path("policies/waivers.yaml").mkdir(parents=True)
    assert default_waivers() is None
    Path("policies/waivers.yaml").rmdir()
    Path("policies/waivers.yaml").write_text("waivers: []\n", "utf-8")
    assert default_waivers() == Path("policies/waivers.yaml")
