"""What is made from other files of the repository and checked in is what would be made now."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

from tests.house.test_house import ROOT, repository_files
from tests.support.require import require
from tests.tools.program import difference, files, run


def test_generated_files_are_fresh(tmp_path: Path) -> None:
    if not shutil.which("make"):
        require("make", "make is not installed")
    if not importlib.util.find_spec("pulumi_kubernetes"):
        require("sdk", "the Pulumi SDK is not installed: pip install 'gpuplan[pulumi]'")
    was, now = tmp_path / "was", tmp_path / "now"
    for copy in (was, now):
        for file in repository_files():
            target = copy / file.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    shutil.rmtree(now / "stacks", ignore_errors=True)
    run("make", "generate", f"PYTHON={sys.executable} -B", cwd=now)
    stale = difference(files(was), files(now))
    assert stale == [], "`make generate` makes these anew; look at them and commit them"
