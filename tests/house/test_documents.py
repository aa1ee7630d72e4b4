"""What the guide and the glossary name exists, and the commands that only read a stack run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.completion import completions
from gpuplan.cli.main import main
from gpuplan.plan.read import read_tree

ROOT = Path(__file__).parents[2]
PAGES = ("developers.md", "glossary.md", "architecture.md")
PATH = re.compile(r"(?:gpuplan|tests|docs|bench|templates|policies|examples|stacks)/[\w./*-]+")
MODULE = re.compile(r"gpuplan(?:\.\w+)+")
COMMAND = re.compile(r"gpuplan [a-z][^`|#\n]*")
LINK = re.compile(r"\]\(([^)#:]+)(?:#([^)]*))?\)")
MADE = {"gpuplan.lock"}  # of a stack, and no module


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text("utf-8")


def code(name: str) -> Iterator[str]:
    """Code spans, and the lines of code blocks."""
    text = page(name)
    for block in re.findall(r"```\w*\n(.*?)```", text, re.DOTALL):
        yield from block.splitlines()
    yield from re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL))


def known_object(name: str) -> bool:
    """Whether `gpuplan.a.b.Name` is a module, or a name in one."""
    parts = name.split(".")
    for end in range(len(parts), 0, -1):
        try:
            found: Any = import_module(".".join(parts[:end]))
        except ModuleNotFoundError:
            continue
        return all((found := named_in(found, part)) is not None for part in parts[end:])
    return False


def named_in(owner: Any, name: str) -> Any:
    """What `owner` calls `name`, a record's field that has no value or a default of `None` too."""
    return getattr(owner, name, None) or getattr(owner, "__annotations__", {}).get(name)


def known_command(text: str) -> bool:
    """Whether there is such a verb, and each of its options."""
    verb, *words = shlex.split(text.removeprefix("gpuplan "))
    table = completions()
    return verb in table and all(w in table[verb] for w in words if w.startswith("--"))


def wrong(texts: Iterator[str]) -> list[str]:
    """Paths, modules, make targets and commands that do not exist."""
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    every = list(texts)
    paths = {m for t in every for m in PATH.findall(t) if not m.startswith("stacks/")}
    modules = {m for t in every for m in MODULE.findall(t)} - MADE
    commands = {m.strip() for t in every for m in COMMAND.findall(t) if not t.startswith("from ")}
    made = {m for t in every for words in re.findall(r"^make ([\w -]+)", t) for m in words.split()}
    return sorted(
        [p for p in paths if not list(ROOT.glob(p.rstrip("/.")))]
        + [m for m in modules if not known_object(m)]
        + [c for c in commands if not known_command(c)]
        + [f"make {m}" for m in made - targets]
    )


@pytest.mark.parametrize("name", PAGES)
def test_what_a_page_names_exists(name: str) -> None:
    assert wrong(code(name)) == []


def test_what_does_not_exist_is_seen() -> None:
    texts = [
        "gpuplan/pipeline.py",
        "gpuplan/pipelines.py",
        "gpuplan.plan.model.Plan",
        "gpuplan.plan.model.Plans",
        "gpuplan.plans",
        "gpuplan explain stacks/chat",
        "gpuplan explain stacks/chat --no-such-option",
        "gpuplan guess",
        "make test",
        "make tests",
    ]
    assert wrong(iter(texts)) == [
        "gpuplan explain stacks/chat --no-such-option",
        "gpuplan guess",
        "gpuplan.plan.model.Plans",
        "gpuplan.plans",
        "gpuplan/pipelines.py",
        "make tests",
    ]


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name: str) -> None:
    for target, anchor in LINK.findall(page(name)):
        file = ROOT / "docs" / target
        assert file.exists(), target
        headings = re.findall(r"^#+ (.*)$", file.read_text("utf-8"), re.M) if anchor else []
        slugs = {re.sub(r"[^\w -]", "", h.lower()).replace(" ", "-") for h in headings}
        assert not anchor or anchor in slugs, f"{target}#{anchor}"


def test_the_guide_explains_numbers_that_there_are(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(ROOT)
    commands = re.findall(r"^\$ gpuplan (explain .*)$", page("developers.md"), re.M)
    assert len(commands) > 2
    for command in commands:
        assert main(shlex.split(command)) == 0, command
    assert "kv_cache_bytes" in capsys.readouterr().out


def test_the_guide_knows_the_kinds_of_sources() -> None:
    """Those that it tells apart stand in plans, and it tells all apart that do."""
    table = page("developers.md").partition("| the source reads |")[2].partition("\n\n")[0]
    cells = (row.split(" | ")[0] for row in table.splitlines())
    named = {kind for cell in cells for kind in re.findall(r"`(\w+): ", cell)} - {"formula"}
    plans = [read_tree(path.parent) for path in sorted((ROOT / "stacks").glob("*/plan.yaml"))]
    every = [entry for plan in plans for entry in plan["evidence"]]
    sources = [i["source"] for entry in every for i in entry.get("inputs", ())]
    sources += [entry["source"] for entry in every if not entry["formula"]]
    assert named == {source.partition(":")[0] for source in sources} - {"quantity"}


def test_the_guides_python_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)
    (program,) = re.findall(r"```python\n(.*?)```", page("developers.md"), re.DOTALL)
    exec(compile(program, "developers.md", "exec"), {})


def test_the_guides_formula_stands_once_in_the_sizing() -> None:
    (text,) = re.findall(r"git grep -F '([^']+)' gpuplan/sizing", page("developers.md"))
    files = (ROOT / "gpuplan/sizing").rglob("*.py")
    assert sum(f.read_text("utf-8").count(text) for f in files) == 1


def test_modules_that_any_page_names_exist() -> None:
    """Also by a part of their path; Megatron-Bridge has a script of its own."""
    listing = [f for folder in ("gpuplan", "bench", "tests", "stacks") for f in all_of(folder)]
    pages = [f.relative_to(ROOT / "docs").as_posix() for f in (ROOT / "docs").rglob("*.md")]
    pages.remove("tour.md")  # its programs are those of a stack that it writes
    named = {(p, m) for p in pages for t in code(p) for m in re.findall(r"[\w/-]+\.py\b", t)}
    gone = {(p, m) for p, m in named if not any(f.endswith(f"/{m.lstrip('/')}") for f in listing)}
    assert gone == {("large-runs.md", "scripts/training/run_recipe.py")}


def all_of(folder: str) -> list[str]:
    return [f"/{f.relative_to(ROOT).as_posix()}" for f in (ROOT / folder).rglob("*.py")]


def test_the_order_of_the_rooms_is_the_contracts() -> None:
    text = (ROOT / ".importlinter").read_text("utf-8")
    layers = text.partition("layers =\n")[2].partition("\n\n")[0]
    shown = page("architecture.md").partition("checks it:\n`")[2].partition("`")[0]
    order = [room for line in shown.split("→") for room in [set(re.findall(r"\w+", line))]]
    assert order == [set(re.findall(r"\w+", line)) for line in layers.splitlines()[1:]]


def test_a_word_of_the_glossary_has_one_meaning() -> None:
    terms = re.findall(r"^\| ([^|]+) \|", page("glossary.md"), re.M)
    words = [w for t in terms if t != "term" for w in re.sub(r"(\w), (?=\w)", r"\1|", t).split("|")]
    assert {w for w in words if words.count(w) > 1} == set()


def test_every_folder_of_the_package_is_in_the_architecture() -> None:
    listed = page("architecture.md").partition("## Where things are")[2].partition("\n## ")[0]
    folders = {p.parent.name for p in (ROOT / "gpuplan").glob("*/*.py")}
    modules = {p.name for p in (ROOT / "gpuplan").glob("*.py") if not p.name.startswith("__")}
    named = set(re.findall(r"^  (\w+)/ ", listed, re.M))
    assert named == folders
    assert modules == set(re.findall(r"\b(\w+\.py)\b", listed))
