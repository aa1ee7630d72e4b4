"""Programs for clusters of clouds, looked at as a reviewer, a type checker and Pulumi do."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from tests.support.require import require
from tests.support.toolbox import ruff

SOURCE = "source"  # of a file of names: the models that it is made from


def compiled(folder: Path, text: str) -> Path:
    path = folder / "m.yaml"
    path.write_text(text, encoding="utf-8")
    assert main(["compile", str(path), "-o", str(folder / "out")]) == 0
    (stack,) = (folder / "out").iterdir()
    return stack


def compiled_each(root: Path, manifests: Mapping[str, str]) -> Mapping[str, Path]:
    """Stacks by name, each in `NAME/out` of a folder."""
    for name in manifests:
        (root / name).mkdir()
    return {name: compiled(root / name, text) for name, text in manifests.items()}


_COMPILED: dict[str, Mapping[str, Path]] = {}


def compiled_all(
    folders: pytest.TempPathFactory, cloud: str, manifests: Mapping[str, str]
) -> Mapping[str, Path]:
    """Those of a cloud's manifests, in one folder; compiled once a process."""
    if cloud not in _COMPILED:
        _COMPILED[cloud] = compiled_each(folders.mktemp(cloud), manifests)
    return _COMPILED[cloud]


def refused(folder: Path, text: str, capsys: pytest.CaptureFixture[str]) -> str:
    """What is said of a manifest that does not compile, on one line."""
    path = folder / "m.yaml"
    path.write_text(text, encoding="utf-8")
    assert main(["compile", str(path), "-o", str(folder / "out")]) == 2
    return " ".join(capsys.readouterr().err.split())


def need(mark: str, packages: Sequence[str]) -> None:
    for package in packages:
        try:
            version(package)
        except PackageNotFoundError:
            require(mark, f"{package} is not installed: pip install --group clouds")


def programs(stack: Path) -> list[Path]:
    return sorted((stack / "cloud").glob("*/*.py"))


def settings(stack: Path, name: str) -> list[tuple[str, Any]]:
    """What the programs of a stack's cloud say for the keyword `name`, where it is plain data."""
    trees = (ast.parse(p.read_text(encoding="utf-8")) for p in programs(stack))
    given = (k for t in trees for n in ast.walk(t) if isinstance(n, ast.Call) for k in n.keywords)
    return [
        (ast.unparse(k.value), ast.literal_eval(k.value))
        for k in given
        if k.arg == name
        and isinstance(k.value, ast.Constant | ast.List | ast.Dict)
        and all(
            isinstance(n, ast.Constant | ast.List | ast.Dict | ast.Load) for n in ast.walk(k.value)
        )
    ]


def values(stack: Path, name: str) -> list[Any]:
    return [value for _, value in settings(stack, name)]


def check_layout(stack: Path) -> None:
    """As the formatter writes it, and nothing that the linter finds."""
    for part in ("cluster", "pools"):
        folder = stack / "cloud" / part
        for verb in (("format", "--diff", "."), ("check", "--select", "E,F,I,UP,B", ".")):
            done = ruff(*verb, cwd=folder)
            assert done.returncode == 0, done.stdout


def check_values(stack: Path, names: Mapping[str, Sequence[str] | str], least: int) -> None:
    """Each value that the cloud's own models enumerate is one of theirs: the SDK takes any text."""
    seen = 0
    for keyword, allowed in names.items():
        if keyword != SOURCE:
            for value in values(stack, keyword):
                found = value if isinstance(value, list) else [value]
                assert set(found) <= set(allowed), keyword
                seen += len(found)
    assert seen > least


def registered(stack: Path, part: str, given: Mapping[str, str]) -> Any:
    """What a program registers in the engine of `gpuplan preview`; asked once a process."""
    return _registered(stack, part, tuple(given.items()))


@cache
def _registered(stack: Path, part: str, given: tuple[tuple[str, str], ...]) -> Any:
    from gpuplan.preview.running.run import preview

    return preview(stack / "cloud" / part, config=dict(given), strict=False)


def check_listed(found: Any, folder: Path) -> None:
    """What a program registers is what its list of identities has."""
    lines = (folder / "urns.txt").read_text(encoding="utf-8").splitlines()
    listed = {line.partition("  ")[0] for line in lines if not line.startswith("#")}
    assert {f"{r.type}::{r.name}" for r in found.resources if not r.is_stack} == listed
