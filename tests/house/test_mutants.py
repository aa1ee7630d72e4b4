"""The mutants that measure the tests: which mistakes are made, and which would change nothing."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("cosmic_ray")

from cosmic_ray.mutating import mutate_code

from bench.mutants.same import Same, change, judged, ledger
from bench.mutants.sites import Mutant, mutants, mutated, sample
from bench.mutants.texts import FormulaText
from bench.mutants.trial import Known, digest
from bench.mutants.users import Users

ROOT = Path(__file__).parents[2]


def drawn_of(tmp_path: Path, code: str, seed: int = 0) -> list[tuple[int, str]]:
    """Lines and operators of all places of a module."""
    (tmp_path / "module.py").write_text(code, encoding="utf-8")
    return [(m.line, m.operator) for m in sample([tmp_path / "module.py"], tmp_path, None, seed)]


@pytest.mark.parametrize("example", FormulaText.examples())
def test_the_text_of_a_formula_is_mutated(example) -> None:
    changed = mutate_code(example.pre_mutation_code, FormulaText(), example.occurrence)
    assert changed == example.post_mutation_code


@pytest.mark.parametrize(
    "text",
    [
        '"rank x (in + out), beside every layer"',
        '"4 - 8 cores a GPU"',
        '"docs/rules.md"',
        '"a: B = bytes  # 2 * halves"',
        'f"{a}  # {b}; 2 * halves"',
    ],
)
def test_prose_and_sources_stay(text: str) -> None:
    assert mutate_code(text, FormulaText(), 0) is None


def test_every_row_of_a_sheet_and_every_piece_of_it_is_mutated(tmp_path: Path) -> None:
    code = (
        "from gpuplan.sizing.evidence.sheet import sheet\n"
        'SPLIT = " / (ranks * stages)"\n'
        'SHEET = sheet(f"""\n'
        "    tokens: 1 = batch * length  # 1 * 1\n"
        "    bytes: B = ceil(tokens{SPLIT}\n"
        "        / shards)\n"
        '""")\n'
    )
    rows = [2, 2, 4, 5, 6]
    assert drawn_of(tmp_path, code) == [(row, "FormulaText") for row in rows]


def test_mistakes_that_nobody_could_notice_are_not_made(tmp_path: Path) -> None:
    code = (
        '"""Adds 1 + 1."""\n'
        "def f(a: int | None, *, b: int = 3) -> int | None:\n"
        "    c: int | None = zip(a, strict=True)\n"
        "    if TYPE_CHECKING:\n"
        "        from m import n\n"
        "    raise ValueError(1 + 1)\n"
        "    return {**a}\n"
    )
    assert drawn_of(tmp_path, code) == [(2, "NumberReplacer")]


def test_what_the_solver_searches_by_chance_is_not_mutated(tmp_path: Path) -> None:
    code = (
        "def f(self, random):\n"
        "    searching = {'random_seed': 1}\n"
        "    near = self.random.random() < 0.5\n"
        "    state.work += 1\n"
        "    return random.randint(1, 5), Ruin(packer, seed=1), 7\n"
        "def _choose(self):\n"
        "    return near and 4\n"
    )
    folder = tmp_path / "gpuplan/fleet/solver"
    folder.mkdir(parents=True)
    (folder / "module.py").write_text(code, encoding="utf-8")
    (one,) = {(m.line, m.column) for m in sample([folder / "module.py"], tmp_path, None, 0)}
    assert one == (5, code.splitlines()[4].index("7"))


def test_the_clock_ends_a_search_a_look_sooner_or_later_but_ends_it(tmp_path: Path) -> None:
    folder = tmp_path / "gpuplan/fleet/solver"
    folder.mkdir(parents=True)
    (folder / "module.py").write_text("if self.work <= 0:\n    done()\n", encoding="utf-8")
    drawn = [sample([folder / "module.py"], tmp_path, None, seed) for seed in range(20)]
    assert {m.operator for each in drawn for m in each} == {
        "ReplaceComparisonOperator_LtE_Gt",
        "AddNot",
    }


def test_what_the_solver_names_as_effort_is_not_mutated_where_it_stands(tmp_path: Path) -> None:
    """The place of a comparison does not decide, nor what else is computed in the same line."""
    code = (
        "from gpuplan.fleet.solver.effort import LOOKS, PARTS\n"
        "a = len(b) < LOOKS\n"
        "c = PARTS + 1\n"
        "d = e * LOOKS + f\n"
        "g = h[:2]\n"
    )
    folder = tmp_path / "gpuplan/fleet/solver"
    folder.mkdir(parents=True)
    drawn = set()
    for name in ("module.py", "effort.py"):
        (folder / name).write_text(code, encoding="utf-8")
        for seed in range(20):
            drawn |= {(m.line, m.operator) for m in sample([folder / name], tmp_path, None, seed)}
        (folder / name).unlink()
    assert drawn == {
        (2, "ReplaceComparisonOperator_Lt_GtE"),
        (4, "ReplaceBinaryOperator_Add_Sub"),
        (5, "NumberReplacer"),
    }


def test_the_edge_of_a_tolerance_stays_and_its_side_does_not(tmp_path: Path) -> None:
    code = "a = b > c + 1e-9\nd = b > c + 1 and e < 1e-9\n"
    near, whole = (
        {
            op
            for line, op in (m for seed in range(60) for m in drawn_of(tmp_path, code, seed))
            if line == n
        }
        for n in (1, 2)
    )
    assert "ReplaceComparisonOperator_Gt_LtE" in near & whole
    assert "ReplaceComparisonOperator_Gt_GtE" in whole - near


def test_the_first_element_becomes_the_second_and_not_the_last(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("first = rows[0]\n", encoding="utf-8")
    drawn = [sample([tmp_path / "module.py"], tmp_path, None, seed) for seed in range(9)]
    assert {mutated("first = rows[0]\n", mutant) for (mutant,) in drawn} == {"first = rows[ 1]\n"}


def test_a_mutant_that_does_not_compile_is_not_drawn(tmp_path: Path) -> None:
    (tmp_path / "module.py").write_text("if found := look():\n    pass\n", encoding="utf-8")
    assert [sample([tmp_path / "module.py"], tmp_path, None, seed) for seed in range(9)] == [[]] * 9


def test_a_sample_is_that_of_its_seed() -> None:
    files = sorted((ROOT / "gpuplan/policy").rglob("*.py"))
    first, again, other = (sample(files, ROOT, 30, seed) for seed in (1, 1, 2))
    assert first == again != other
    assert len({(m.path, m.line, m.column) for m in first}) == 30
    for mutant in first:
        before = (ROOT / mutant.path).read_text(encoding="utf-8")
        compile(mutated(before, mutant), mutant.path, "exec")


def test_a_mutant_is_the_code_with_one_change() -> None:
    mutant = Mutant("module.py", 1, 9, "ReplaceComparisonOperator_Lt_LtE", 1)
    assert mutated("a < b and c < d\n", mutant) == "a < b and c <= d\n"


def test_a_constant_meets_the_tests_of_what_is_made_of_it() -> None:
    files = {
        "a.py": "FACTOR = 2\nTWICE = FACTOR * 2\nOTHER = 3\ndef f(n=OTHER):\n    return n\n",
        "b.py": "from a import TWICE as DOUBLE\ndef g():\n    return DOUBLE\n",
        "d.py": "ALONE = 1\n",
        "c.py": "class Row:\n    size = 1\n    def wide(self):\n        return 2\n",
    }
    executed = {"a.py": {5: [0]}, "b.py": {3: [1]}, "c.py": {4: [2]}}
    names = ("t.py::one", "t.py::two", "t.py::three", "u.py::four")
    tests = {"t.py": "", "u.py": "from a import FACTOR\n"}
    digests = {path: digest(code) for path, code in files.items()}
    known = Known(dict.fromkeys(names, 1.0), executed=executed, digests=digests)
    users = Users(files, tests, known)
    one, two, three, four = names
    assert users.tests("a.py", 1) == {two, four}  # over TWICE, by another name; and read as it is
    assert users.tests("a.py", 3) == {one}  # a default
    assert users.tests("c.py", 2) == {three}
    assert users.tests("b.py", 3) == {two}
    assert users.tests("d.py", 1) == {*names}  # nothing is known of it


def test_what_is_remembered_meets_the_tests_of_all_that_ask_for_it() -> None:
    code = "@cache\ndef sheet():\n    return 2\n@cache\ndef more():\n    return sheet()\n"
    code += "def f():\n    return more()\ndef g():\n    return 3\n"
    executed = {"a.py": {3: [0], 6: [0], 8: [0, 1], 10: [2]}}
    known = Known({"one": 1.0, "two": 1.0, "three": 1.0}, executed=executed)
    known.digests["a.py"] = digest(code)
    users = Users({"a.py": code}, {}, known)
    assert users.tests("a.py", 3) == {"one", "two"}
    assert users.tests("a.py", 10) == {"three"}
    assert users.tests("a.py", 9) == {"three"}
    changed = Users({"a.py": f"{code}\n"}, {}, known)
    assert changed.tests("a.py", 10) == {"one", "two", "three"}


def test_what_a_remembered_function_calls_meets_them_too() -> None:
    code = "def part():\n    return 2\ndef own():\n    return 3\n"
    code += "@cache\ndef sheet():\n    return part()\ndef f():\n    return sheet(), own()\n"
    executed = {"a.py": {2: [0], 4: [0], 7: [0], 9: [0, 1]}}
    known = Known({"one": 1.0, "two": 1.0}, executed=executed)
    known.digests["a.py"] = digest(code)
    users = Users({"a.py": code}, {}, known)
    assert users.tests("a.py", 2) == {"one", "two"}
    assert users.tests("a.py", 4) == {"one"}  # it is called each time


def test_what_is_called_at_import_alone_meets_the_tests_of_what_it_makes() -> None:
    code = "def half(x):\n    return x / 2\nPART = half(3)\ndef f():\n    return PART\n"
    known = Known({"one": 1.0, "two": 1.0}, executed={"a.py": {5: [0]}})
    known.digests["a.py"] = digest(code)
    users = Users({"a.py": code}, {}, known)
    assert users.tests("a.py", 2) == set()
    assert users.tests("a.py", 2, at_import=True) == {"one"}


@pytest.mark.parametrize("entry", ledger(), ids=lambda entry: f"{entry.path}: {entry.after}")
def test_what_is_judged_the_same_program_still_stands(entry: Same) -> None:
    """Else remove the entry, or read the new line and judge it."""
    assert entry.fault((ROOT / entry.path).read_text("utf-8")) == ""
    assert len(entry.why.split()) > 5


def test_an_entry_judges_one_change_of_one_line() -> None:
    code = "def f(a):\n    return a > 1\ndef g(a):\n    return a > 1\n"
    entry = Same("m.py", "return a > 1", "return a >= 1", "why", inside="g")
    judged_of = {change(code, m) for m in mutants(code, "m.py") if judged(m, code, (entry,))}
    assert judged_of == {(4, "return a > 1", "return a >= 1")}
    assert entry.fault(code) == ""


@pytest.mark.parametrize(
    ("code", "fault"),
    [
        ("a = b > 2\n", "stands 0 times in m.py: a = b > 1"),
        ("a = b > 1\nif c:\n    a = b > 1\n", "stands 2 times in m.py: a = b > 1"),
        ("a = b > 1\n", ""),
    ],
)
def test_an_entry_whose_line_is_gone_or_not_the_only_one_is_told(code: str, fault: str) -> None:
    assert Same("m.py", "a = b > 1", "a = b >= 1", "why").fault(code) == fault


def test_an_entry_that_no_mutant_makes_is_told() -> None:
    entry = Same("m.py", "a = b > 1", "a = b < 1", "why")
    assert entry.fault("a = b > 1\n") == "no mutant of m.py makes it: a = b < 1"


def test_a_change_over_several_lines_is_told_whole() -> None:
    code = "for a in (\n    1,\n    b,\n):\n    c = a\n"
    texts = {change(code, m) for m in mutants(code, "m.py") if m.operator.startswith("Zero")}
    assert texts == {(1, "for a in (\n1,\nb,\n):", "for a in []:")}


def test_a_bound_of_seconds_leaves_out_the_slow_tests_but_for_the_telling_ones() -> None:
    seconds = {"a.py::slow": 9.0, "b.py::telling": 5.0, "a.py::quick": 1.0, "a.py::next": 2.0}
    items: list[Any] = [SimpleNamespace(nodeid=name) for name in (*seconds, "a.py::new")]
    known = Known(seconds=seconds, most_seconds=4.0, telling=("b.py",))
    chosen = known.chosen(items, set(seconds))
    assert [i.nodeid for i in chosen] == ["a.py::new", "a.py::quick", "a.py::next", "b.py::telling"]
    known.most_seconds = 12.0
    assert [i.nodeid for i in known.chosen(items, set(seconds))][-1] == "a.py::slow"
