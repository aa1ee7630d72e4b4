"""The same manifest gives the same bytes, whatever the machine around it is like."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.tools.program import EXAMPLES, ROOT, difference, files, gpuplan

HERE = {"PYTHONHASHSEED": "0", "LC_ALL": "C.UTF-8", "TZ": "UTC", "COLUMNS": "80"}
ELSEWHERE = {
    "PYTHONHASHSEED": "4242",
    "LC_ALL": "C",
    "PYTHONCOERCECLOCALE": "0",
    "PYTHONUTF8": "0",
    "TZ": "Pacific/Kiritimati",
    "COLUMNS": "200",
}


@pytest.mark.parametrize("manifest", EXAMPLES, ids=lambda m: m.stem)
def test_the_surroundings_change_nothing(manifest: Path, tmp_path: Path) -> None:
    away = tmp_path / "somewhere else"
    shutil.copytree(manifest.parent, away / "manifests")
    gpuplan("compile", f"examples/{manifest.name}", "-o", tmp_path / "one", environment=HERE)
    gpuplan(
        "compile",
        away / "manifests" / manifest.name,
        "-o",
        "two",
        cwd=away,
        environment=ELSEWHERE | {"HOME": str(away)},
        umask=0o077,
    )
    here, there = files(tmp_path / "one"), files(away / "two")
    assert here
    assert difference(here, there) == []
    text = b"".join(content for _, content in here.values())
    assert not [
        place for place in (ROOT, tmp_path, Path.home() / ".cache") if str(place).encode() in text
    ]


def test_compiling_again_writes_nothing(tmp_path: Path) -> None:
    stacks = tmp_path / "stacks"
    gpuplan("compile", EXAMPLES[0], "-o", stacks)
    times = {p: p.stat().st_mtime_ns for p in stacks.rglob("*")}
    gpuplan("compile", EXAMPLES[0], "-o", stacks)
    assert {p: p.stat().st_mtime_ns for p in stacks.rglob("*")} == times
