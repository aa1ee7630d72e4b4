"""The generated Pulumi programs, as the type checker reads them beside the SDKs."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.backends import test_clouds_aws as aws
from tests.backends import test_clouds_azure as azure
from tests.backends import test_clouds_google as google
from tests.backends.test_pulumi_program import SAMPLES, sdk, write
from tests.support.clouds import compiled_all
from tests.support.require import require

CLOUDS = {
    "aws": (aws.need_aws, aws.MANIFESTS, 5),
    "azure": (azure.need_azure, azure.MANIFESTS, 4),
    "google": (google.need_google, google.MANIFESTS, 5),
}


@pytest.mark.sdk
@pytest.mark.aws
@pytest.mark.azure
@pytest.mark.gcp
def test_types_are_right(tmp_path: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    """One run for all, since most of it is reading the SDKs; a cloud's needs its own."""
    sdk()
    least, folders = len(SAMPLES), [write(make(), tmp_path / n) for n, make in SAMPLES.items()]
    absent: list[Callable[[], None]] = []
    for cloud, (need, manifests, programs) in CLOUDS.items():
        try:
            need()
        except pytest.skip.Exception:
            absent.append(need)
            continue
        stacks = compiled_all(tmp_path_factory, cloud, manifests)
        folders.append(stacks["example"].parents[2])
        least += programs * len(manifests)
    command = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--outputjson"]
    root = os.path.commonpath(folders)  # what lies outside finds no module beside it
    done = subprocess.run(
        [*command, *folders], cwd=root, capture_output=True, text=True, check=False
    )
    if "No module named pyright" in done.stderr:
        require("sdk", "pyright is not installed")
    report = json.loads(done.stdout)
    assert report["summary"]["filesAnalyzed"] > least
    assert [d["message"] for d in report["generalDiagnostics"]] == []
    for need in absent:
        need()
