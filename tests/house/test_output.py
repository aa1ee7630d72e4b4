"""Writing a stack: whole or not at all, and nothing of the user's is lost."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

import pytest

from gpuplan import output
from gpuplan.render.checksums import checksums, parse
from gpuplan.render.tree import File, FileTree


def stack(**files: str) -> FileTree:
    tree = FileTree(tuple(File(n.replace("__", "/"), t) for n, t in files.items()))
    return FileTree((*tree.files, File("checksums.txt", checksums(tree))))


def contents(folder: Path) -> dict[str, str]:
    return {
        p.relative_to(folder).as_posix(): p.read_text() for p in folder.rglob("*") if p.is_file()
    }


@pytest.fixture
def target(tmp_path: Path) -> Path:
    return tmp_path / "stacks" / "chat"


def test_a_stack_is_replaced_whole(target: Path) -> None:
    assert output.write_stack(target, stack(a="1", d__b="2")) == ()
    assert output.write_stack(target, stack(a="3")) == ()
    assert contents(target) == {"a": "3", "checksums.txt": checksums(stack(a="3"))}
    assert [p.name for p in target.parent.iterdir()] == ["chat"]


def test_an_unchanged_stack_is_not_touched(target: Path) -> None:
    output.write_stack(target, stack(a="1"))
    before = (target / "a").stat().st_ino
    output.write_stack(target, stack(a="1"))
    assert (target / "a").stat().st_ino == before


def test_an_edit_by_hand_stops_the_write(target: Path) -> None:
    output.write_stack(target, stack(a="1", b="2"))
    (target / "a").write_text("edited")
    problems = output.write_stack(target, stack(a="9", b="9"))
    assert [p.rule for p in problems] == ["GP013"]
    assert "a" in problems[0].message
    assert contents(target)["a"] == "edited"
    assert contents(target)["b"] == "2"
    assert output.write_stack(target, stack(a="9", b="9"), force=True) == ()
    assert contents(target)["a"] == "9"


def test_the_users_own_files_stay(target: Path) -> None:
    seeded = FileTree((File("a", "1"), File("Pulumi.dev.yaml", "seed", seed=True)))
    tree = FileTree((*seeded.files, File("checksums.txt", checksums(seeded))))
    output.write_stack(target, tree)
    (target / "Pulumi.dev.yaml").write_text("mine")
    (target / "notes.md").write_text("mine")
    (target / "venv" / "lib").mkdir(parents=True)
    (target / "venv" / "lib" / "x").write_text("mine")
    changed = FileTree((File("a", "2"), File("Pulumi.dev.yaml", "seed", seed=True)))
    output.write_stack(
        target, FileTree((*changed.files, File("checksums.txt", checksums(changed))))
    )
    after = contents(target)
    assert after.pop("checksums.txt")
    assert after == {"a": "2", "Pulumi.dev.yaml": "mine", "notes.md": "mine", "venv/lib/x": "mine"}


def test_the_users_links_and_empty_folders_stay(target: Path, tmp_path: Path) -> None:
    output.write_stack(target, stack(a="1"))
    (tmp_path / "elsewhere").mkdir()
    (target / "linked").symlink_to(tmp_path / "elsewhere")
    (target / "broken").symlink_to("nowhere")
    (target / "state" / "empty").mkdir(parents=True)
    assert output.write_stack(target, stack(a="2")) == ()
    assert (target / "linked").readlink() == tmp_path / "elsewhere"
    assert (target / "broken").readlink() == Path("nowhere")
    assert (target / "state" / "empty").is_dir()


def test_a_folder_that_is_no_stack_is_refused(target: Path) -> None:
    target.mkdir(parents=True)
    (target / "thesis.txt").write_text("years of work")
    problems = output.write_stack(target, stack(a="1"))
    assert [p.rule for p in problems] == ["GP013"]
    assert contents(target) == {"thesis.txt": "years of work"}


def test_modes_do_not_depend_on_the_umask(target: Path) -> None:
    previous = os.umask(0o077)
    try:
        output.write_stack(target, stack(a="1", d__b="2"))
    finally:
        os.umask(previous)
    assert target.stat().st_mode & 0o777 == 0o755
    assert (target / "a").stat().st_mode & 0o777 == 0o644
    assert (target / "d").stat().st_mode & 0o777 == 0o755


@pytest.mark.parametrize("swap", [True, False], ids=["exchange", "rename"])
@pytest.mark.parametrize("step", range(1, 12))
def test_a_run_killed_at_any_step_leaves_the_old_or_the_new_stack(
    target: Path, monkeypatch: pytest.MonkeyPatch, step: int, swap: bool
) -> None:
    class Killed(BaseException):
        pass

    old, new = stack(a="old", d__b="old"), stack(a="new", d__c="new")
    output.write_stack(target, old)
    (target / "venv").mkdir()
    (target / "venv" / "x").write_text("mine")
    if not swap:
        monkeypatch.setattr(output, "_swap", lambda *_: False)
    count = 0

    def dying(original: object) -> object:
        def call(*args: object, **more: object) -> object:
            nonlocal count
            count += 1
            if count == step:
                raise Killed
            return original(*args, **more)  # type: ignore[operator]

        return call

    with monkeypatch.context() as patch:
        for name in ("mkdir", "rename", "write_bytes"):
            patch.setattr(Path, name, dying(getattr(Path, name)))
        patch.setattr(output.shutil, "rmtree", dying(output.shutil.rmtree))
        with contextlib.suppress(Killed):
            output.write_stack(target, new)
    if target.exists():
        files = {k: v for k, v in contents(target).items() if not k.startswith("venv")}
        assert files in (
            {f.path: f.text for f in old},
            {f.path: f.text for f in new},
        )
    else:
        assert not swap, "an exchange never leaves a gap"
    assert output.write_stack(target, new) == ()
    assert contents(target) == {f.path: f.text for f in new} | {"venv/x": "mine"}
    assert [p.name for p in target.parent.iterdir()] == ["chat"]


@pytest.mark.parametrize("there", [True, False], ids=["a stack", "nothing yet"])
def test_a_link_stays_and_what_it_leads_to_is_written(
    target: Path, tmp_path: Path, there: bool
) -> None:
    real = tmp_path / "real" / "other"
    if there:
        output.write_stack(real, stack(a="1"))
    target.parent.mkdir()
    target.symlink_to("../real/other")
    assert output.write_stack(target, stack(a="2")) == ()
    assert target.readlink() == Path("../real/other")
    assert contents(real)["a"] == "2"
    assert [p.name for f in (real, target) for p in f.parent.iterdir()] == ["other", "chat"]
    (real / "a").write_text("edited")
    assert [p.rule for p in output.write_stack(target, stack(a="3"))] == ["GP013"]


def test_a_link_to_what_is_no_stack_is_refused(target: Path, tmp_path: Path) -> None:
    (tmp_path / "thesis").mkdir()
    (tmp_path / "thesis" / "text").write_text("years of work")
    target.parent.mkdir()
    target.symlink_to(tmp_path / "thesis")
    assert [p.rule for p in output.write_stack(target, stack(a="1"))] == ["GP013"]
    assert contents(tmp_path / "thesis") == {"text": "years of work"}


def test_hidden_folders_of_the_user_move_whole(target: Path) -> None:
    output.write_stack(target, stack(a="1"))
    (target / ".git").mkdir()
    (target / ".git" / "HEAD").write_text("ref")
    (target / ".env").write_text("mine")
    before = (target / ".git").stat().st_ino
    assert output.write_stack(target, stack(a="2")) == ()
    assert (target / ".git").stat().st_ino == before
    assert (target / ".env").read_text() == "mine"


def test_a_record_that_is_no_text_protects_everything(target: Path) -> None:
    output.write_stack(target, stack(a="1"))
    (target / "checksums.txt").write_bytes(b"\xff")
    assert [p.rule for p in output.write_stack(target, stack(a="2"))] == ["GP013"]
    assert (target / "a").read_text() == "1"


def test_a_file_of_the_user_where_one_is_to_be_generated_stops_the_write(target: Path) -> None:
    output.write_stack(target, stack(a="1"))
    (target / "b").write_text("mine")
    (problem,) = output.write_stack(target, stack(a="1", b="2"))
    assert "edited by hand: b" in problem.message
    assert (target / "b").read_text() == "mine"
    assert output.write_stack(target, stack(a="1", b="mine")) == ()


@pytest.mark.parametrize("name", [".chat.staging", ".chat.previous"])
@pytest.mark.parametrize("leads_to", ["a folder", "a stack", "a file", "nothing"])
def test_what_a_link_at_a_staging_name_leads_to_is_left_alone(
    name: str, leads_to: str, target: Path, tmp_path: Path
) -> None:
    foreign = tmp_path / "foreign"
    if leads_to == "a file":
        foreign.write_text("mine", encoding="utf-8")
    elif leads_to != "nothing":
        foreign.mkdir()
        (foreign / ".git").mkdir()
        (foreign / "mine.txt").write_text("mine", encoding="utf-8")
    if leads_to == "a stack":
        output.write_stack(foreign, stack(a="1"), force=True)
    before = contents(foreign) if foreign.is_dir() else None
    target.parent.mkdir(exist_ok=True)
    target.with_name(name).symlink_to(foreign)
    assert output.write_stack(target, stack(a="2")) == ()
    assert not target.is_symlink()
    assert (target / "a").read_text(encoding="utf-8") == "2"
    assert (contents(foreign) if foreign.is_dir() else None) == before
    assert leads_to != "a stack" or (foreign / ".git").is_dir()


@pytest.mark.parametrize("path", ["/etc/hostname", "../foreign.txt", "a/../../foreign.txt", "C:/x"])
def test_a_record_of_files_elsewhere_names_nothing(path: str, target: Path) -> None:
    output.write_stack(target, stack(a="1"))
    (target.parent / "foreign.txt").write_text("mine", encoding="utf-8")
    record = target / "checksums.txt"
    with record.open("a", encoding="utf-8") as file:
        file.write(f"{'0' * 64}  {path}\n")
    assert path not in parse(record.read_text(encoding="utf-8"))
    assert output.write_stack(target, stack(a="2")) == ()
    assert (target.parent / "foreign.txt").read_text(encoding="utf-8") == "mine"
