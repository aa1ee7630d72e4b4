"""Folders that may not be read: each verb names them, and leaves nothing out in silence."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CHAT = ROOT / "stacks" / "chat"
# Root reads everything but without these two capabilities (linux/capability.h), which a process
# drops for those it starts (PR_CAPBSET_DROP of linux/prctl.h).
RUN = """
import ctypes, os, sys
for capability in (1, 2):  # CAP_DAC_OVERRIDE, CAP_DAC_READ_SEARCH
    ctypes.CDLL(None).prctl(24, capability, 0, 0, 0)
os.execv(sys.executable, [sys.executable, "-m", "gpuplan", *sys.argv[1:]])
"""


def ran(*arguments: str | Path) -> tuple[int, str]:
    words = [sys.executable, "-c", RUN, *map(str, arguments)]
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, check=False)
    return done.returncode, " ".join(done.stderr.split())


@pytest.fixture
def closed(tmp_path: Path) -> Path:
    """A folder that nobody may read."""
    folder = tmp_path / "closed"
    folder.mkdir()
    folder.chmod(0)
    code = "import os, sys; os.listdir(sys.argv[1])"
    probe = RUN.replace('"-m", "gpuplan"', f'"-c", {code!r}')
    done = subprocess.run(
        [sys.executable, "-c", probe, str(folder)], capture_output=True, check=False
    )
    if not done.returncode or sys.platform != "linux":
        pytest.skip("everything may be read here")
    return folder


def test_a_folder_that_may_not_be_read_is_named(closed: Path, tmp_path: Path) -> None:
    points = tmp_path / "points.csv"
    points.write_text("model\n", encoding="utf-8")
    for words in (
        ("inventory", "import", closed),
        ("inventory", "import", closed.parent),
        ("inventory", "show", closed / "rack.yaml"),
        ("check", closed),
        ("explain", closed),
        ("replay", closed),
        ("diff", CHAT, closed),
        ("diff", closed, CHAT),
        ("preview", closed),
        ("compile", closed / "chat.yaml", "-o", tmp_path / "out"),
        ("compile", ROOT / "examples" / "chat.yaml", "-o", closed),
        ("compile", ROOT / "examples" / "chat.yaml", "-o", closed / "out"),
        ("pack", ROOT / "examples" / "chat.yaml", "--keep", closed / "result.json"),
        ("accuracy", closed / "points.csv"),
    ):
        code, said = ran(*words)
        assert code == 2, words
        assert f"{closed}" in said, words
        assert "permission denied" in said, words


def test_a_host_in_a_closed_folder_is_not_left_out(closed: Path, tmp_path: Path) -> None:
    texts = tmp_path / "hosts"
    sample = ROOT / "tests" / "inventory" / "inventory_samples"
    (first,) = sorted(p for p in sample.rglob("*") if p.is_file() and "lscpu" in p.name)[:1]
    (texts / "one").mkdir(parents=True)
    shutil.copy(first, texts / "one" / "lscpu.txt")
    os.rename(closed, texts / "two")  # noqa: PTH104
    code, said = ran("inventory", "import", texts, "-o", tmp_path / "rack.yaml")
    assert code == 2
    assert f"cannot read {texts / 'two'}: permission denied" in said


def test_a_closed_folder_in_a_stack_is_no_stack_without_it(closed: Path, tmp_path: Path) -> None:
    stack = tmp_path / "chat"
    shutil.copytree(CHAT, stack)
    os.rename(closed, stack / "values")  # noqa: PTH104
    for words in (("check", stack), ("diff", CHAT, stack)):
        code, said = ran(*words)
        assert code == 2
        assert f"cannot read {stack / 'values'}: permission denied" in said
