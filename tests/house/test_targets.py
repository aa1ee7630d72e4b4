"""The table of targets: its records hold together, and no other code knows a target by name."""

from __future__ import annotations

import ast
import inspect
from dataclasses import replace
from importlib import import_module
from pathlib import Path

import pytest

from gpuplan.fleet.sized import Holding, Sizer
from gpuplan.placement.place import place
from gpuplan.plan import window
from gpuplan.registry import backends
from gpuplan.targets import OTHER_NAMES, TARGETS, Target, implemented
from tests.support.samples import serving_plan
from tests.support.sizing_cases import CHAT_8B, site, wanted

PACKAGE = Path(__file__).parents[2] / "gpuplan"
BACKENDS = PACKAGE / "backends"


def test_every_backend_that_a_record_names_is_there() -> None:
    for name in implemented():
        assert len([*backends(name)]) == len(TARGETS[name].backends)


def test_every_backend_is_named_by_a_record() -> None:
    named = {name for target in TARGETS.values() for name in target.backends}
    modules = {p.parent.relative_to(BACKENDS).as_posix() for p in BACKENDS.rglob("__init__.py")}
    paths = (m.replace("/", ".") for m in sorted(modules - {"."}))
    emitting = {p for p in paths if hasattr(import_module(f"gpuplan.backends.{p}"), "emit")}
    assert emitting == named
    folders = {m.partition("/")[0] for m in modules - {"."}}
    assert folders == {name.partition(".")[0] for name in named}


def test_a_backend_is_a_function_of_the_plan_alone() -> None:
    for name in implemented():
        for backend in backends(name):
            assert list(inspect.signature(backend).parameters) == ["plan"]


def test_names_are_of_one_target_each() -> None:
    others = [other for target in TARGETS.values() for other in target.other_names]
    assert len(OTHER_NAMES) == len(others)
    assert not OTHER_NAMES.keys() & TARGETS.keys()


def test_guests_without_an_inventory_are_refused() -> None:
    with pytest.raises(ValueError, match="need the inventory of their hosts"):
        Target(name="bare", gpu_sharing=None, guests_on_hosts=True)


def comparisons(source: str) -> set[str]:
    """Names of targets that something in `source` is held against, when that is called `target`."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Compare):
            sides = (node.left, *node.comparators)
            if any("target" in ast.unparse(s).rpartition(".")[2].lower() for s in sides):
                constants = (c for s in sides for c in ast.walk(s) if isinstance(c, ast.Constant))
                names |= {str(c.value) for c in constants} & TARGETS.keys()
    return names


def test_no_code_holds_a_target_against_a_name() -> None:
    modules = sorted(PACKAGE.rglob("*.py"))
    names = {m: comparisons(m.read_text(encoding="utf-8")) for m in modules}
    assert {m.relative_to(PACKAGE).as_posix(): n for m, n in names.items() if n} == {}


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("plan.target == 'libvirt'", {"libvirt"}),
        ("x if platform.target not in ('eks', 'gke') else y", {"eks", "gke"}),
        ("given['target'] == 'docker'", {"docker"}),
        ("package != 'kubernetes'", set()),
        ("plan.target == other.target", set()),
    ],
)
def test_comparisons_are_seen(source: str, expected: set[str]) -> None:
    assert comparisons(source) == expected


def memory_of_items(target: str) -> set[int]:
    """What an item of a plain service asks of a host in the packer, on any whole GPU."""
    layout = Sizer(site("l40s", target=target))(wanted(CHAT_8B))
    assert isinstance(layout, Holding)
    return {o.memory_bytes for way in layout.ways for o in way.options if o.part is None}


def test_a_machine_needs_memory_beside_its_guest() -> None:
    (pod,), (guest,) = memory_of_items("kubernetes"), memory_of_items("libvirt")
    assert guest == pod + window.GUEST_OVERHEAD_BYTES


def test_a_virtual_machine_is_looked_for_where_there_are_some() -> None:
    (work,) = serving_plan().workloads
    alone = replace(work, isolation="vm")
    (problem,) = (
        d for d in place("chat", "kubernetes", [alone], []).diagnostics if d.rule == "GP043"
    )
    assert problem.help.startswith("use a target with virtual machines: libvirt;")
    assert "GP043" not in {d.rule for d in place("chat", "kubevirt", [alone], []).diagnostics}
