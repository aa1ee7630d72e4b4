"""Stacks that somebody damaged, cut or made: each verb says what is wrong, and where."""

from __future__ import annotations

import copy
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.errors import Rejected
from gpuplan.plan import serialize
from gpuplan.plan.model import Plan
from gpuplan.render import yaml

ROOT = Path(__file__).parents[2]
CHAT = ROOT / "stacks" / "chat"
TREE: dict[str, Any] = yaml.loads((CHAT / "plan.yaml").read_text(encoding="utf-8"))
STRANGE = (None, True, -1, "x", "", [], {}, [None], {"a": 1}, 1e300, 10**400)


def paths(tree: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)):
        yield (*path, key)
        if isinstance(tree[key], dict | list):
            yield from paths(tree[key], (*path, key))


def changed(path: tuple[str | int, ...], *value: object) -> dict[str, Any]:
    """The tree with another value at `path`, or with none."""
    tree = copy.deepcopy(TREE)
    parent: Any = tree
    for part in path[:-1]:
        parent = parent[part]
    if value:
        parent[path[-1]] = value[0]
    else:
        del parent[path[-1]]
    return tree


# Fields that name another record, or whose list holds the record that another names.
REFERENCES = {"name", "node_pool", "workload", "pool", "node_pools", "workloads"}


def held_refusal(rejected: Rejected, path: tuple[str | int, ...]) -> None:
    assert all(len(problem.message) < 600 for problem in rejected.diagnostics)
    if {problem.rule for problem in rejected.diagnostics} == {"GP952"}:
        assert path[-1] in REFERENCES, path
        return
    (problem,) = rejected.diagnostics
    assert problem.rule == "GP008"
    assert str(path[0]) in problem.message, path


@pytest.mark.parametrize("value", STRANGE, ids=lambda value: repr(value)[:12])
def test_whatever_stands_in_a_field_it_is_a_plan_or_refused_by_its_path(value: object) -> None:
    for path in paths(TREE):
        try:
            plan = serialize.load(yaml.dumps(changed(path, value)))
        except Rejected as rejected:
            held_refusal(rejected, path)
        else:
            assert isinstance(plan, Plan)


def test_a_field_that_is_missing_is_named_with_its_record() -> None:
    with pytest.raises(Rejected) as caught:
        serialize.load(yaml.dumps(changed(("workloads", 0, "gpu"))))
    assert caught.value.diagnostics[0].message.endswith("workloads[0] has no field 'gpu'")
    with pytest.raises(Rejected) as caught:
        serialize.load(yaml.dumps(changed(("workloads", 0, "replicas"), "two")))
    wanted = "workloads[0].replicas is 'two', and a whole number is wanted"
    assert caught.value.diagnostics[0].message.endswith(wanted)


TEXTS: dict[str, bytes] = {
    "nothing": b"",
    "a text": b"plan\n",
    "a list": b"- 1\n",
    "brackets": b"a: " + b"[" * 5_000,
    "a long number": b"a: " + b"9" * 5_000,
    "an alias of itself": b"a: &a [*a]\n",
    "no end": b"api_version: [gpuplan.dev/plan/v1",
    "no value": b"api_version: gpuplan.dev/plan/v1\nname: \n- a\n",
    "a foreign version": b"api_version: {a: 1}\nname: x\n",
    "no UTF-8": b"\xff\xfe\x00a",
    "a tag": b"!!python/object:os.system {}\n",
    "no workloads": b"api_version: gpuplan.dev/plan/v1\nname: x\n",
    "workloads of one number": b"api_version: gpuplan.dev/plan/v1\nworkloads: 7\n",
}
VERBS = (
    ("explain", "STACK"),
    ("explain", "STACK", "gpu_count"),
    ("check", "STACK"),
    ("diff", str(CHAT), "STACK"),
    ("diff", "STACK", str(CHAT)),
    ("replay", "STACK"),
)


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
@pytest.mark.parametrize("file", ["plan.yaml", "evidence.yaml"])
def test_a_file_that_is_no_plan_is_refused(
    verb: tuple[str, ...], file: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = tmp_path / "chat"
    shutil.copytree(CHAT, stack)
    whole = (stack / file).read_bytes()
    cut = [whole[: len(whole) * part // 7] for part in range(1, 7)]
    for text in (*TEXTS.values(), *cut):
        (stack / file).write_bytes(text)
        code = main([str(stack) if word == "STACK" else word for word in verb])
        said = capsys.readouterr().err
        assert code == 2 or file == "evidence.yaml" or text in cut, text[:60]
        assert code != 2 or "error[" in said


def test_an_answer_about_a_damaged_plan_names_the_field(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "plan.yaml"
    tree = changed(("workloads", 0, "gpu_count"))
    path.write_text(yaml.dumps(tree), encoding="utf-8")
    assert main(["explain", str(path)]) == 2
    assert "workloads[0] has no field 'gpu_count'" in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(
    "formula",
    [
        "1\nimport os\nos.abort()",
        "().__class__.__base__.__subclasses__()",
        "9**9**9**9",
        "(9**64)**64",
        "1 +",
        "(" * 5_000,
        "x",
        "1 / 0",
        "lambda: 1",
    ],
)
def test_a_strangers_formula_is_arithmetic_or_nothing(
    formula: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    stack = tmp_path / "chat"
    shutil.copytree(CHAT, stack)
    path = stack / "evidence.yaml"
    tree: dict[str, Any] = yaml.loads(path.read_text(encoding="utf-8"))
    for entry in tree["evidence"]:
        if entry["quantity"].endswith("first_token_seconds"):
            entry["formula"] = formula
    path.write_text(yaml.dumps(tree), encoding="utf-8")
    assert main(["replay", str(stack)]) == 2
    assert "cannot be replayed" in capsys.readouterr().err
    assert main(["explain", str(stack)]) == 0


@pytest.mark.parametrize("name", ["x = 1\nimport os\ny", "os.abort()", "1"])
def test_a_strangers_names_are_names(name: str, tmp_path: Path) -> None:
    stack = tmp_path / "chat"
    shutil.copytree(CHAT, stack)
    path = stack / "evidence.yaml"
    tree: dict[str, Any] = yaml.loads(path.read_text(encoding="utf-8"))
    workload = TREE["workloads"][0]["name"]
    quantity = f"{workload}.prefill.{name}"
    entry = {"quantity": quantity, "value": 1, "unit": "s", "formula": "1", "source": "x"}
    tree["evidence"].insert(0, entry)
    path.write_text(yaml.dumps(tree), encoding="utf-8")
    assert main(["replay", str(stack)]) == 2
