"""What is made from other files of the repository and checked in is what would be made now."""

from __future__ import annotations

import importlib.util
import shutil
import sys
from pathlib import Path

from tests.house.test_house import ROOT, repository_files
from tests.support.require import require
from tests.tools.program import difference, files, run


def copies(folder: Path) -> tuple[Path, Path]:
    """The repository, twice."""
    was, now = folder / "was", folder / "now"
    for copy in (was, now):
        for file in repository_files():
            target = copy / file.relative_to(ROOT)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(file, target)
    return was, now


def test_generated_files_are_fresh_and_a_gpu_is_its_own_file_and_the_compiled_catalogue(
    tmp_path: Path,
) -> None:
    """Made anew beside one more GPU: nothing else that is made from other files says which GPUs
    there are. That the compiled catalogue is fresh, tests of the catalogue hold."""
    if not shutil.which("make"):
        require("make", "make is not installed")
    if not importlib.util.find_spec("pulumi_kubernetes"):
        require("sdk", "the Pulumi SDK is not installed: pip install 'gpuplan[pulumi]'")
    was, now = copies(tmp_path)
    shutil.rmtree(now / "stacks", ignore_errors=True)
    gpus = now / "gpuplan/catalog/data/gpus"
    text = (gpus / "l4.yaml").read_text(encoding="utf-8")
    text = text.replace("id: l4\n", "id: example\n").replace(
        "architecture: ada", "architecture: new"
    )
    (gpus / "example.yaml").write_text(text, encoding="utf-8")
    run("make", "generate", f"PYTHON={sys.executable} -B", cwd=now)
    of_the_gpu = ["gpuplan/catalog/compiled.json", "gpuplan/catalog/data/gpus/example.yaml"]
    stale = difference(files(was), files(now))
    assert stale == of_the_gpu, "`make generate` makes these anew; look at them and commit them"
