"""Rules of the repository that no linter knows."""

from __future__ import annotations

import ast
import subprocess
import tempfile
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

from tests.support.require import require

ROOT = Path(__file__).parents[2]
PYTHON_FOLDERS = ("gpuplan", "tests", "bench")
MAX_LINES = 400
MAX_MODULES = 20


def modules() -> list[Path]:
    return [f for folder in PYTHON_FOLDERS for f in sorted((ROOT / folder).rglob("*.py"))]


def repository_files() -> list[Path]:
    """Files under version control, or about to be."""
    listing = ("git", "ls-files", "--cached", "--others", "--exclude-standard", "-z")
    done = subprocess.run(listing, cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        require("git", "not a git checkout")
    files = (ROOT / name for name in sorted(filter(None, done.stdout.split("\0"))))
    return [f for f in files if f.is_file()]


def test_modules_are_small() -> None:
    product = [m for m in modules() if not m.is_relative_to(ROOT / "tests")]
    lengths = {m: len(m.read_text(encoding="utf-8").splitlines()) for m in product}
    assert {m.relative_to(ROOT).as_posix(): n for m, n in lengths.items() if n > MAX_LINES} == {}


def test_folders_are_small() -> None:
    folders = {m.parent for m in modules() if not m.is_relative_to(ROOT / "tests")}
    counts = {f.relative_to(ROOT).as_posix(): len([*f.glob("*.py")]) for f in folders}
    assert {f: n for f, n in counts.items() if n > MAX_MODULES} == {}


def test_no_modules_import_each_other_in_a_circle() -> None:
    """Imports inside functions and for type checking count."""
    grimp = pytest.importorskip("grimp", reason="import-linter's graph is not installed")
    graph = grimp.build_graph("gpuplan", cache_dir=None)
    above = {m: graph.find_modules_directly_imported_by(m) for m in graph.modules}
    assert len(above) > 900
    TopologicalSorter(above).prepare()  # raises CycleError with the circle


def swallowed(source: str) -> list[int]:
    """Lines of exception handlers that do nothing."""
    handlers = (n for n in ast.walk(ast.parse(source)) if isinstance(n, ast.ExceptHandler))
    return [h.lineno for h in handlers if len(h.body) == 1 and isinstance(h.body[0], ast.Pass)]


def test_no_exception_is_swallowed() -> None:
    texts = {m: m.read_text(encoding="utf-8") for m in modules()}
    found = {m: swallowed(text) for m, text in texts.items() if "except" in text}
    assert {m.relative_to(ROOT).as_posix(): lines for m, lines in found.items() if lines} == {}
    assert swallowed("try:\n    f()\nexcept OSError:\n    pass\n") == [3]


def test_names_say_what_they_hold() -> None:
    """Not that somebody found it: `candidates`, `match`, `by_gpu`."""
    product = [m for m in modules() if not m.is_relative_to(ROOT / "tests")]
    texts = {m: m.read_text(encoding="utf-8") for m in product}
    nodes = ((m, n) for m, t in texts.items() if "found" in t for n in ast.walk(ast.parse(t)))
    named = {m.relative_to(ROOT).as_posix(): n.lineno for m, n in nodes if name(n) == "found"}
    assert named == {}


def test_a_type_of_a_room_has_one_meaning() -> None:
    """Records, words and aliases stand once in a room; a document of the catalogue and its record
    are two, and how ranks are divided is one thing of services and of runs."""
    places: dict[tuple[str, str], list[str]] = {}
    for path in (ROOT / "gpuplan").rglob("*.py"):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if (named := type_of(node)) and not named.startswith("_"):
                place = path.relative_to(ROOT / "gpuplan").as_posix()
                room = place.split("/")[: 1 + place.startswith(("backends/", "catalog/documents/"))]
                places.setdefault(("/".join(room), named), []).append(place)
    twice = {key: where for key, where in places.items() if len(where) > 1}
    assert twice.keys() == {("sizing", "Division")}, twice


def type_of(node: ast.stmt) -> str | None:
    """A class's name, or that of an alias."""
    target = node.targets[0] if isinstance(node, ast.Assign) else None
    name = node.name if isinstance(node, ast.ClassDef) else getattr(target, "id", "")
    return name if name[:1].isupper() and not name.isupper() else None


def name(node: ast.AST) -> str | None:
    """What an argument, an attribute or a variable that is set is called."""
    if isinstance(node, ast.Name | ast.Attribute) and not isinstance(node.ctx, ast.Store):
        return None
    return next((getattr(node, key) for key in ("id", "attr", "arg") if hasattr(node, key)), None)


def test_no_path_of_this_machine() -> None:
    own = Path(tempfile.gettempdir())  # every machine has it, and documents may name it
    places = [p for p in (ROOT, ROOT.parent) if len(p.parts) > 1 and p != own]
    wanted = [f"{place}/".encode() for place in places]
    found = [f for f in repository_files() if any(w in f.read_bytes() for w in wanted)]
    assert [f.relative_to(ROOT).as_posix() for f in found] == []


@pytest.mark.parametrize("name", ["LICENSE", "NOTICE", "README.md"])
def test_the_usual_files_exist(name: str) -> None:
    assert (ROOT / name).read_text(encoding="utf-8").strip()
