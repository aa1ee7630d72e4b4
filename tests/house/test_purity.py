"""The core computes: it reads no file, clock, environment or random number.

Modules at the edge are listed one by one with what they may use. An entry that is no longer used
fails, so that the list stays short.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parents[2] / "gpuplan"
CORE = (
    "plan",
    "sizing",
    "sharing",
    "replay",
    "placement",
    "policy",
    "backends",
    "kubernetes",
    "engines",
    "stack",
    "report",
    "render",
)
MODULES = """
getpass glob http locale os platform random secrets shutil socket subprocess sys tempfile threading
time urllib
"""
CALLS = """
open input now today utcnow uuid1 uuid4 cwd home stat exists is_file is_dir iterdir rglob
mkdir touch unlink read_text read_bytes write_text write_bytes
"""
ALLOWED: dict[str, set[str]] = {
    "backends/pulumi/clouds/aws/generate_names.py": {"iterdir", "read_bytes", "write_text"},
    "backends/pulumi/clouds/google/generate_names.py": {"read_bytes", "write_text"},
    "backends/pulumi/generate_types.py": {"write_text"},
    "backends/pulumi/typed.py": {"read_text"},
    "plan/read.py": {"is_dir", "is_file", "read_text"},
    "render/environments.py": {"home", "mkdir", "os", "read_bytes", "stat", "sys", "tempfile"},
    "sizing/calibration/anchors.py": {"read_text"},
    "sizing/hardware/efficiency.py": {"read_text"},
    "report/paint.py": {"os"},
    "policy/reading.py": {"os", "is_dir", "is_file", "iterdir", "read_bytes", "read_text"},
    "policy/manifests.py": {"is_dir", "is_file", "iterdir", "read_text"},
    "policy/document.py": {"sys", "read_text"},
}


def uses(source: str) -> set[str]:
    """Names of impure modules and calls in `source`."""
    modules, calls, found = set(MODULES.split()), set(CALLS.split()), set[str]()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            found |= {a.name.partition(".")[0] for a in node.names} & modules
        elif isinstance(node, ast.ImportFrom):
            found |= {(node.module or "").partition(".")[0]} & modules
        elif isinstance(node, ast.Call):
            name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func
            found |= {name.id if isinstance(name, ast.Name) else str(name)} & calls
    return found


def core_modules() -> list[str]:
    files = (f for p in CORE for f in sorted((PACKAGE / p).rglob("*.py")))
    return [f.relative_to(PACKAGE).as_posix() for f in files]


@pytest.mark.parametrize("module", core_modules())
def test_the_core_is_pure(module: str) -> None:
    assert uses((PACKAGE / module).read_text(encoding="utf-8")) == ALLOWED.get(module, set())


def test_allowed_modules_exist() -> None:
    assert set(ALLOWED) <= set(core_modules())


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ("import os.path", {"os"}),
        ("from random import choice", {"random"}),
        ("def f():\n    return open('x').read()", {"open"}),
        ("stamp = datetime.now()", {"now"}),
        ("text = path.read_text()", {"read_text"}),
        ("import json\nopened = json.loads('1')", set()),
    ],
)
def test_impurity_is_found(source: str, found: set[str]) -> None:
    assert uses(source) == found
