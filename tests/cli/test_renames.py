"""A workload that gets another name keeps what exists of it, on every target that keeps data."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from gpuplan.pipeline import Compiled, compile_files
from gpuplan.plan.diff import diff

EXAMPLES = Path(__file__).parents[2] / "examples"
Kept = Callable[[Compiled], set[str]]


def compiled(folder: Path, example: str, old: str, new: str = "") -> Compiled:
    """An example, with a workload under another name."""
    text = (EXAMPLES / f"{example}.yaml").read_text()
    text = text.replace("inventory: ", f"inventory: {EXAMPLES}/")
    assert f"- name: {old}\n" in text
    if new:
        text = text.replace(f"- name: {old}\n", f"- name: {new}\n  renamed_from: [{old}]\n")
    path = folder / f"{example}.yaml"
    path.write_text(text)
    (stack,) = compile_files([path]).stacks
    return stack


def texts(stack: Compiled, folder: str) -> list[str]:
    return [f.text for f in stack.files if f.path.startswith(folder)]


def volumes_of_docker(stack: Compiled) -> set[str]:
    """But for caches, which fill again."""
    (compose,) = texts(stack, "compose.yaml")
    named = re.findall(r"^  ([a-z0-9-]+): {}$", compose.partition("\nvolumes:\n")[2], re.M)
    return {name for name in named if not name.endswith("-scratch")}


def folders_of_slurm(stack: Compiled) -> set[str]:
    return {found for t in texts(stack, "jobs/") for found in re.findall(r"/volumes/[\w-]+", t)}


def disks_of_guests(stack: Compiled) -> set[str]:
    return {f"{m.name} {d.source}" for m in stack.plan.virtual_machines for d in m.disks}


@pytest.mark.parametrize(
    ("example", "workload", "kept"),
    [
        ("box", "lab", volumes_of_docker),
        ("slurm", "desks", folders_of_slurm),
        ("notebooks", "notebook", disks_of_guests),
    ],
)
def test_what_exists_of_a_renamed_workload_is_kept(
    example: str, workload: str, kept: Kept, tmp_path: Path
) -> None:
    before = compiled(tmp_path, example, workload)
    after = compiled(tmp_path, example, workload, "people")
    assert {w.name for w in after.plan.workloads} - {w.name for w in before.plan.workloads} == {
        "people"
    }
    assert any(workload in name for name in kept(before))
    assert kept(after) == kept(before)
    assert not diff(before.plan, after.plan).risks
