"""One target with one backend is one folder and one line: those of docs/adding-a-backend.md, added
to a copy of gpuplan as a contributor would, and used."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from gpuplan.emission import Emission, Section
from gpuplan.plan import serialize
from gpuplan.render import yaml
from gpuplan.render.tree import File, FileTree
from gpuplan.stack.lower import stack
from tests.support.samples import HOSTILE, serving_plan
from tests.tools.program import ROOT

PAGE = ROOT / "docs" / "adding-a-backend.md"
FOLDER = "gpuplan/backends/podman"
MANIFEST = """\
apiVersion: gpuplan.dev/v1
name: chat
platform: {target: podman, gpus: [l40s]}
workloads:
- name: assistant
  task: inference
  model: meta-llama/Llama-3.1-8B-Instruct
  load: {requests_per_second: 1, input_tokens: 500, output_tokens: 100}
"""
CONTRACTS = "from importlinter.cli import lint_imports_command as lint; lint()"


def printed() -> tuple[str, str]:
    """The record and the module that the page shows."""
    record, module = re.findall(r"^```python\n(.*?)^```$", PAGE.read_text("utf-8"), re.M | re.S)
    return record, module


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """gpuplan with the page's target: every file that was changed or made is here."""
    root = tmp_path_factory.mktemp("copy")
    leave = shutil.ignore_patterns("__pycache__")
    for folder in ("gpuplan", "templates", "policies"):
        shutil.copytree(ROOT / folder, root / folder, ignore=leave)
    for file in (".importlinter", "pyproject.toml"):
        shutil.copy(ROOT / file, root / file)
    record, module = printed()
    assert record.count("\n") == 1
    table = root / "gpuplan/targets.py"
    text = table.read_text("utf-8")
    assert text.count("\n    )\n}\n") == 1, "the end of the table"
    table.write_text(
        text.replace("\n    )\n}\n", f"\n        {record.rstrip()},\n    )\n}}\n"), "utf-8"
    )
    (root / FOLDER).mkdir()
    (root / FOLDER / "__init__.py").write_text(module, "utf-8")
    return root


def call(copy: Path, *arguments: str | Path, cwd: Path | None = None) -> tuple[int, str]:
    """Exit code and output of the copy's program, or of Python with it."""
    command = [sys.executable, *map(str, arguments)]
    environment = os.environ | {"PYTHONPATH": str(copy), "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        command, cwd=cwd or copy, env=environment, capture_output=True, text=True, check=False
    )
    return done.returncode, done.stdout + done.stderr


def gpuplan(copy: Path, *arguments: str | Path, code: int = 0, cwd: Path | None = None) -> str:
    done, text = call(copy, "-m", "gpuplan", *arguments, cwd=cwd)
    assert done == code, text
    return text


@pytest.fixture(scope="module")
def compiled(copy: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The stack of `MANIFEST`."""
    folder = tmp_path_factory.mktemp("stacks")
    (folder / "chat.yaml").write_text(MANIFEST, "utf-8")
    text = gpuplan(copy, "compile", "chat.yaml", "-o", "stacks", cwd=folder)
    assert "next: gpuplan check stacks/chat" in text
    assert "assistant: its volumes are not mounted" in text
    return folder / "stacks" / "chat"


def test_the_copy_is_what_runs(copy: Path) -> None:
    code, text = call(copy, "-c", "import gpuplan; print(gpuplan.__file__)")
    assert (code, text.strip()) == (0, str(copy / "gpuplan/__init__.py"))


def test_its_stack_is_whole(compiled: Path) -> None:
    files = {f.relative_to(compiled).as_posix() for f in compiled.rglob("*") if f.is_file()}
    common = {"README.md", "plan.yaml", "evidence.yaml", "gpuplan.lock", "checksums.txt"}
    assert files == common | {".gitattributes", "order.csv", "podman/assistant.sh"}
    plan = serialize.load((compiled / "plan.yaml").read_text("utf-8"))
    assert (plan.target, plan.workloads[0].gpu) == ("podman", "l40s")
    assert plan.workloads[0].engine.image in (compiled / "gpuplan.lock").read_text("utf-8")
    script = (compiled / "podman/assistant.sh").read_text("utf-8")
    words = [shlex.split(line) for line in script.splitlines()[1:]]
    assert len(words) == plan.workloads[0].replicas
    assert words[0][:2] == ["podman", "run"]
    assert f"--max-num-seqs={plan.workloads[0].serving.max_num_seqs}" in words[0]  # type: ignore[union-attr]
    assert "$$" not in script


def test_engines_are_given_texts_as_they_are(copy: Path, tmp_path: Path) -> None:
    text = f"{MANIFEST}  environment: {{NOTE: {yaml.quoted(HOSTILE)}}}\n"
    (tmp_path / "m.yaml").write_text(text, "utf-8")
    gpuplan(copy, "compile", "m.yaml", "-o", "stacks", cwd=tmp_path)
    script = (tmp_path / "stacks/chat/podman/assistant.sh").read_text("utf-8")
    assert f"--env=NOTE={HOSTILE}" in shlex.split(script.partition("\n")[2])


def test_its_readme_has_the_backends_part(compiled: Path) -> None:
    text = (compiled / "README.md").read_text("utf-8")
    headings = re.findall(r"^## (.+)$", text, re.M)
    assert headings == ["What will be built", "Why", "Order", "Apply", "Check"]
    apply = text.partition("\n## Apply\n")[2].partition("\n## ")[0]
    assert "podman/assistant.sh" in apply
    assert "| target | podman |" in text
    assert not re.search(r"pulumi|kubectl|Kubernetes", text, re.I)


def test_verbs_work_on_it(copy: Path, compiled: Path, tmp_path: Path) -> None:
    assert "replicas" in gpuplan(copy, "explain", compiled, "gpu_count")
    report = json.loads(gpuplan(copy, "check", compiled, "--json", "--as-of", "2026-12-01"))
    assert [f for f in report["findings"] if f["severity"] == "error"] == []
    (compiled / "podman/assistant.sh").chmod(0o755)
    edited = tmp_path / "chat"
    shutil.copytree(compiled, edited)
    (edited / "podman/assistant.sh").write_text("#!/bin/sh\n", "utf-8")
    assert "podman/assistant.sh" in gpuplan(copy, "check", edited, code=1)
    assert "holds no Pulumi program" in gpuplan(copy, "preview", compiled, code=2)


def test_it_is_known_by_name(copy: Path, tmp_path: Path) -> None:
    schema = json.loads(gpuplan(copy, "schema", "manifest"))
    targets = schema["$defs"]["Platform"]["properties"]["target"]["oneOf"]
    assert "podman" in [target["const"] for target in targets]
    for wrong in ("podmann", "quadlet"):
        (tmp_path / "m.yaml").write_text(MANIFEST.replace("podman", wrong), "utf-8")
        text = gpuplan(copy, "compile", "m.yaml", cwd=tmp_path, code=2)
        assert "did you mean 'podman'?" in text
    (tmp_path / "m.yaml").write_text(MANIFEST.replace("podman", "vsphere"), "utf-8")
    text = gpuplan(copy, "compile", "m.yaml", cwd=tmp_path, code=2)
    every = "use kubernetes or libvirt or eks or gke or aks or slurm or docker or podman"
    assert every in " ".join(text.split())


def test_init_makes_a_manifest_for_it(copy: Path, tmp_path: Path) -> None:
    assert "podman" in gpuplan(copy, "init", "--help")
    answers = ("--target", "podman", "--requests-per-second", "0.5")
    gpuplan(copy, "init", *answers, "-o", "first.yaml", cwd=tmp_path)
    gpuplan(copy, "compile", "first.yaml", "-o", "stacks", cwd=tmp_path)
    assert (tmp_path / "stacks/first/podman/inference.sh").is_file()


def test_fields_without_effect_are_said(copy: Path, tmp_path: Path) -> None:
    platform = "{target: podman, region: us-east-2, gpus: [l40s]}"
    text = MANIFEST.replace("{target: podman, gpus: [l40s]}", platform)
    (tmp_path / "m.yaml").write_text(text, "utf-8")
    assert "target 'podman' has no regions" in gpuplan(
        copy, "compile", "m.yaml", cwd=tmp_path, code=2
    )
    versions = "{target: podman, versions: {gpu-operator: v1.0.0}, gpus: [l40s]}"
    text = MANIFEST.replace("{target: podman, gpus: [l40s]}", versions)
    (tmp_path / "m.yaml").write_text(text, "utf-8")
    said = gpuplan(copy, "compile", "m.yaml", "-o", "stacks", cwd=tmp_path)
    assert "platform.versions has no effect on target 'podman'" in said


def test_contracts_hold_it_without_a_line(copy: Path) -> None:
    code, text = call(copy, "-c", CONTRACTS)
    assert code == 0, text
    backend = copy / FOLDER / "peeping.py"
    for wrong in ("gpuplan.backends.helm.lower", "gpuplan.sizing.hardware.offers"):
        backend.write_text(f"import {wrong}\n", "utf-8")
        code, text = call(copy, "-c", CONTRACTS)
        assert code == 1, text
        assert f"gpuplan.backends.podman.peeping -> {wrong}" in text
    backend.unlink()


def test_linters_find_nothing_in_the_page(copy: Path) -> None:
    for verb in (("check",), ("format", "--diff")):
        code, text = call(copy, "-m", "ruff", *verb, FOLDER, "gpuplan/targets.py")
        assert code == 0, text


def test_every_path_of_the_page_exists() -> None:
    prose = re.sub(r"^```.*?^```$", "", PAGE.read_text("utf-8"), flags=re.M | re.S)
    quoted = re.findall(r"`([^`]+)`", prose)
    paths = [
        q for q in quoted if re.fullmatch(r"[\w.-]+(/[\w.-]*)+|[\w.-]+\.\w+|\.importlinter", q)
    ]
    named = [p for p in paths if "/" in p or p == ".importlinter"]
    assert len(named) > 12
    assert [p for p in named if not (ROOT / p).exists()] == []
    assert ".importlinter" in named


def test_a_backend_without_sections_leaves_a_readme_that_is_right() -> None:
    emission = Emission(FileTree((File("units/a b.conf", "x"), File("units/z.conf", "y"))))
    (readme,) = (f.text for f in stack(serving_plan(), [emission]) if f.path == "README.md")
    apply = readme.partition("\n## Apply\n")[2].partition("\n## ")[0]
    assert re.findall(r"^- (.+)$", apply, re.M) == ["`units/a b.conf`", "`units/z.conf`"]
    assert "\n\n\n" not in readme


def test_sections_stand_in_the_order_of_a_readme() -> None:
    first = Emission(sections=(Section("Watch", "w"), Section("Before", "a\n")))
    second = Emission(
        sections=(Section("Remove", "r"), Section("Before", "b"), Section("Apply", ""))
    )
    (readme,) = (f.text for f in stack(serving_plan(), [first, second]) if f.path == "README.md")
    assert "## Before\n\na\n\nb\n\n## Apply\n" in readme
    places = [
        readme.find(f"## {h}\n") for h in ("Why", "Before", "Apply", "Remove", "Watch", "Check")
    ]
    assert places == sorted(places)
    assert -1 not in places
