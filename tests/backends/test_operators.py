"""The cluster's operators in a Pulumi stack of their own: what is in which program, and
what says so when they move."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

import pytest

from gpuplan.cli.main import main
from gpuplan.preview.running.run import preview
from tests.preview.programs import need_sdk

ROOT = Path(__file__).parents[2]
FIELD = "  operators: "


def compiled(folder: Path, operators: str, example: str = "lab", *more: str) -> Path:
    """The example with its operators somewhere, below `folder`."""
    source = (ROOT / "examples" / f"{example}.yaml").read_text("utf-8")
    source = source.replace("inventories/", f"{ROOT}/examples/inventories/")
    kept = [line for line in source.splitlines(keepends=True) if not line.startswith(FIELD)]
    at = next(i for i, line in enumerate(kept) if line.startswith("platform:")) + 1
    written = [f"{FIELD}{operators}\n"] if operators else []
    manifest = folder / f"{example}.yaml"
    manifest.write_text("".join([*kept[:at], *written, *kept[at:]]), encoding="utf-8")
    assert main(["compile", str(manifest), "-o", str(folder / "stacks"), *more]) == 0
    return folder / "stacks" / example


def registered(stack: Path) -> dict[str, Any]:
    """Type and name → what is registered, but for the program's own."""
    own = ("pulumi:pulumi:Stack", "pulumi:providers:kubernetes", "pulumi:pulumi:StackReference")
    found = (r for r in preview(stack).resources if r.type not in own)
    return {f"{r.type}::{r.name}": dict(r.inputs) for r in found}


def test_two_programs_register_what_one_did(tmp_path: Path) -> None:
    need_sdk()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    whole = registered(compiled(tmp_path / "one", ""))
    stack = compiled(tmp_path / "two", "separate")
    workloads, operators = registered(stack), registered(stack / "operators")
    assert not workloads.keys() & operators.keys()
    assert workloads.keys() | operators.keys() == whole.keys()
    assert sorted(operators) == sorted(k for k in whole if "::addon-" in k)
    release = "kubernetes:helm.sh/v3:Release::addon-gpu-operator"
    (values,) = operators[release]["valueYamlFiles"]
    assert (stack / "operators" / values.path).resolve().is_file()
    both = workloads | operators
    assert all(both[k] == whole[k] for k in whole if k != release)


def test_a_stack_whose_operators_are_elsewhere_has_no_chart(tmp_path: Path) -> None:
    need_sdk()
    stack = compiled(tmp_path, "elsewhere")
    assert not (stack / "operators").exists()
    assert not [k for k in registered(stack) if "::addon-" in k]
    readme = (stack / "README.md").read_text("utf-8")
    assert "pulumi config set operatorsStack ORGANIZATION/PROJECT/STACK" in readme
    assert "installGpuOperator" not in readme


def test_a_cloud_has_them_apart_too(tmp_path: Path) -> None:
    need_sdk()
    stack = compiled(tmp_path, "separate", "eks")
    apart = [k for k in registered(stack / "operators") if "Release" in k]
    assert len(apart) == 2
    assert not [k for k in registered(stack) if "Release" in k]


def test_operators_of_another_cluster_are_refused(tmp_path: Path) -> None:
    """The program's own words, on outputs that a Pulumi stack would have."""
    stack = compiled(tmp_path, "separate")
    tree = ast.parse((stack / "cluster.py").read_text("utf-8"))
    wanted = ("served", "NEEDED")
    names = [getattr(n, "name", None) or getattr(n, "targets", [n])[0] for n in tree.body]
    kept = [
        node
        for node, name in zip(tree.body, names, strict=True)
        if getattr(name, "id", name) in wanted
    ]
    assert len(kept) == len(wanted)

    class Pulumi:
        RunError = RuntimeError

    space: dict[str, Any] = {"pulumi": Pulumi, "cluster_uid": "a", "Any": Any}
    exec(compile(ast.Module(kept, []), "cluster.py", "exec"), space)
    assert space["served"](["rack", "a", {"gpu-operator": "v1"}]) == "rack"
    with pytest.raises(RuntimeError, match="is of cluster b, not a"):
        space["served"](["rack", "b", {"gpu-operator": "v1"}])
    with pytest.raises(RuntimeError, match="does not install gpu-operator"):
        space["served"](["rack", "a", {}])


UNINSTALLS = "uninstalls it, and takes GPUs from all pods"
REFUSED = "is refused, since it is installed"
LEFT = "no program of lab-operators is written any more"


@pytest.mark.parametrize(
    ("change", "stacks", "follows"),
    [
        (("", "separate"), ("lab", "lab-operators"), UNINSTALLS),
        (("here", "elsewhere"), ("lab", "PROJECT"), UNINSTALLS),
        (("separate", "here"), ("lab-operators", "lab"), REFUSED),
        (("separate", "elsewhere"), ("lab-operators", "PROJECT"), LEFT),
        (("elsewhere", "here"), ("PROJECT", "lab"), REFUSED),
        (("elsewhere", "separate"), ("PROJECT", "lab-operators"), REFUSED),
    ],
)
def test_each_move_says_what_follows_and_how_to_go(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    change: tuple[str, str],
    stacks: tuple[str, str],
    follows: str,
) -> None:
    need_sdk()
    before, after = change
    (tmp_path / "old").mkdir()
    former = compiled(tmp_path / "old", before)
    compiled(tmp_path, before)
    capsys.readouterr()
    stack = compiled(tmp_path, after)
    shown = " ".join(capsys.readouterr().err.split())
    assert shown.count("warning[GP025]: gpu-operator moves from") == 1
    assert follows in shown
    origin, target = (f"ORGANIZATION/{name}/dev" for name in stacks)
    assert f"pulumi state move --source {origin} --dest {target} $(pulumi stack" in shown
    assert f"--show-urns --stack {origin} |" in shown
    # A folder without a program of its own is the workloads' project to Pulumi, which looks above.
    program = stack / "operators" / "Pulumi.yaml"
    assert ("-C operators" in shown) == program.exists() == (after == "separate")
    # The workloads' program finds them where they went; one that has them itself asks nobody.
    asks = "operatorsStack" in (stack / "Pulumi.yaml").read_text("utf-8")
    assert asks == (f"pulumi config set operatorsStack {target}" in shown)
    assert (f"state delete --stack {origin}" in shown) == (after == "elsewhere")
    main(["preview", str(stack), "--against", str(former)])
    assert "warning[GP025]" in capsys.readouterr().err
    main(["diff", str(former), str(stack)])
    assert "operators: " in capsys.readouterr().out


@pytest.mark.parametrize(
    "change", [("", "here"), ("separate", "separate"), ("elsewhere", "elsewhere")]
)
def test_what_stays_with_its_stack_is_no_move(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], change: tuple[str, str]
) -> None:
    for operators in change:
        compiled(tmp_path, operators)
    assert "GP025" not in capsys.readouterr().err


def test_a_target_without_operators_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    compiled(tmp_path, "separate", "box")
    assert "platform.operators" in capsys.readouterr().err
