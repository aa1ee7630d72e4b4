"""Which mutants a module has: cosmic-ray's operators, and the texts of formulas.

Rules that leave out what no user could notice, and what any test would:
- an operator becomes its neighbour only (`<` `<=` or `>=`, `+` `-`, `*` `/`, `and` `or`), a number
  one more or one less: far replacements (`+` by `<<`) raise in every test that gets there;
- not: what does not compile, such as `not` before `name := value`;
- not: annotations, `if TYPE_CHECKING`, strings other than formulas (docstrings, prose), the
  arguments of a `raise` (an exception is a bug's prose), the flags of records and `zip(strict=…)`,
  numbers from 10,000 on, of which one more is a byte of a gigabyte, `rows[-1]` for `rows[0]`, which
  are the same where there is one;
- not: how long and how widely the packer's solver searches: all of its `effort.py`, and where
  something of it stands the sign and the number beside it (`len(skipped) < DEAL_LOOKS`); its clocks
  (`state.work`, `tries`, `trials`) and the edges of what is compared with them; the settings of
  HiGHS; what is drawn by chance. One look more or less, another draw or another seed finds another
  packing that is as good. bench/packing/least_cost.py measures what they are worth, and
  tests/fleet/test_packing_effort.py notices where there is much less of them;
- not: `>=` for `>` beside a tolerance (`used > room + 1e-9`): floats are there to be nearly equal,
  and just so much apart they are never.
"""

from __future__ import annotations

import ast
import random
import re
import warnings
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cosmic_ray.ast import ast_nodes, get_ast
from cosmic_ray.mutating import mutate_code
from cosmic_ray.operators.operator import Operator
from cosmic_ray.operators.provider import OperatorProvider

from bench.mutants.texts import FormulaText

_ARITHMETIC = ("Add_Sub", "Sub_Add", "Mul_Div", "Div_Mul", "FloorDiv_Div", "Mod_Mul", "Pow_Mul")
_SETS = ("BitOr_BitAnd", "BitAnd_BitOr")
_COMPARISONS = (
    *("Eq_NotEq", "NotEq_Eq", "Lt_LtE", "Lt_GtE", "LtE_Lt", "LtE_Gt", "Gt_GtE", "Gt_LtE"),
    *("GtE_Gt", "GtE_Lt", "Is_IsNot", "IsNot_Is"),
)
_NAMES = (
    *(f"ReplaceBinaryOperator_{name}" for name in (*_ARITHMETIC, *_SETS)),
    *(f"ReplaceComparisonOperator_{name}" for name in _COMPARISONS),
    *("ReplaceUnaryOperator_USub_UAdd", "ReplaceUnaryOperator_Delete_Not", "AddNot"),
    *("ReplaceTrueWithFalse", "ReplaceFalseWithTrue", "ReplaceAndWithOr", "ReplaceOrWithAnd"),
    *("ReplaceBreakWithContinue", "ReplaceContinueWithBreak", "ZeroIterationForLoop"),
    "NumberReplacer",
)
_FLAGS = ("slots", "frozen", "kw_only", "repr", "compare", "eq", "init", "strict")
_LARGE = 10_000
_SOLVER = "gpuplan/fleet/solver/"
_EFFORT = f"{_SOLVER}effort.py"
_SPENT = re.compile(r"(\w+\.work|tries|trials) [+-]?=|searching\b|(work|(end, )?gained, \w+) =")
_OF_EFFORT = re.compile(r"from gpuplan\.fleet\.solver\.effort import ([^(\n]+|[(][^)]+)")
_EDGES = {f"ReplaceComparisonOperator_{name}" for name in ("Lt_LtE", "LtE_Lt", "Gt_GtE", "GtE_Gt")}
_CLOSE = {*_EDGES, "NumberReplacer"}
_BESIDE = {*_CLOSE, *(f"ReplaceBinaryOperator_{name}" for name in _ARITHMETIC)}
_CLOCK = re.compile(r"\w\.work\b|\b(tries|trials)\b(?![.[])")
_TOLERANCE = re.compile(r"(?<![\w.])(\d\.?\d*e-\d+|WHOLE)(?![\w.])")
_CHANCE = re.compile(r"(self\.)?random\.\w+[(]")
_FORMULAS = re.compile(r"import .*\b(sheet|Formula)\b|sizing\.evidence\.formula")


@dataclass(frozen=True)
class Mutant:
    path: str
    line: int
    column: int
    operator: str
    occurrence: int

    @property
    def text(self) -> bool:
        """Whether it is inside the text of a formula."""
        return self.operator == "FormulaText"


def operators() -> dict[str, Operator]:
    provider = OperatorProvider()
    return {name: provider[name]() for name in _NAMES} | {"FormulaText": FormulaText()}


def sample(paths: list[Path], root: Path, count: int | None, seed: int) -> list[Mutant]:
    """`count` places of `paths`, all for None, and one mutant of each; same seed, same mutants."""
    places: dict[tuple[str, int, int], list[Mutant]] = defaultdict(list)
    known = operators()
    for path in sorted(paths):
        for mutant in mutants(path.read_text(encoding="utf-8"), str(path.relative_to(root)), known):
            places[mutant.path, mutant.line, mutant.column].append(mutant)
    source = random.Random(seed)
    order = sorted(places)
    drawn: list[Mutant] = []
    for place in source.sample(order, len(order)):
        if len(drawn) == count:
            break
        here = source.sample(places[place], len(places[place]))
        drawn += [m for m in here if _compiles(root, m)][:1]
    return sorted(drawn, key=lambda m: (m.path, m.line, m.column))


def _compiles(root: Path, mutant: Mutant) -> bool:
    """Not so of `not` before `name := value`, which any test would notice."""
    code = mutated((root / mutant.path).read_text(encoding="utf-8"), mutant)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(code, mutant.path, "exec")
    except SyntaxError:
        return False
    return True


def mutated(code: str, mutant: Mutant) -> str:
    text = mutate_code(code, operators()[mutant.operator], mutant.occurrence)
    assert text is not None
    return str(text)


def mutants(code: str, path: str, known: dict[str, Operator] | None = None) -> Iterator[Mutant]:
    """All of the file's code, but for those that are left out."""
    known = known or operators()
    tree = get_ast(code)
    if path == _EFFORT:
        return
    solver = path.startswith(_SOLVER)
    efforts = _efforts(code)
    names = [name for name in known if name != "FormulaText" or _FORMULAS.search(code)]
    seen = dict.fromkeys(names, 0)
    for node in ast_nodes(tree):
        for name in names:
            for n, ((line, column), _) in enumerate(known[name].mutation_positions(node)):
                left_out = _unnoticeable(node) or (solver and _effort(node))
                left_out = left_out or (name in _EDGES and _tolerated(node))
                left_out = left_out or (solver and name in _CLOSE and _timed(node))
                left_out = left_out or (solver and name in _BESIDE and _beside(node, efforts))
                if not left_out and not (n and _first_element(node)):
                    yield Mutant(path, line, column, name, seen[name])
                seen[name] += 1


def _unnoticeable(node: Any) -> bool:
    if node.type == "operator" and node.parent.type in ("parameters", "dictorsetmaker"):
        return True  # `*` of keyword-only parameters, `**` of a dict's parts
    if node.type == "number" and ast.literal_eval(node.value) >= _LARGE:
        return True
    child = None
    for parent in (node, *_parents(node)):
        if parent.type in ("annassign", "tfpdef", "funcdef") and _annotates(parent, child):
            return True
        if parent.type == "raise_stmt":
            return True
        if parent.type == "argument" and parent.children[0].get_code().strip() in _FLAGS:
            return True
        if parent.type == "if_stmt" and "TYPE_CHECKING" in parent.children[1].get_code():
            return True
        child = parent
    return False


def _effort(node: Any) -> bool:
    """Whether it says how long the solver searches: its clock, a draw by chance, or the choice of
    hosts that rests on such draws."""
    rows = [(p.type, p.get_code(include_prefix=False)) for p in (node, *_parents(node))]
    return any(
        (kind == "expr_stmt" and _SPENT.match(code))
        or (kind in ("atom_expr", "comparison") and _CHANCE.match(code))
        or (kind == "argument" and code.startswith("seed="))
        or (kind == "funcdef" and code.startswith("def _choose(self)"))
        for kind, code in rows
    )


def _efforts(code: str) -> set[str]:
    """What a module has of the solver's `effort.py`."""
    return {name for names in _OF_EFFORT.findall(code) for name in re.findall(r"\w+", names)}


def _beside(node: Any, efforts: set[str]) -> bool:
    """Whether it is the sign, or the number, beside something of `efforts` or a draw by chance."""
    if node.type == "comparison":
        near = node.children
    else:
        sign = node.get_previous_sibling() if node.type == "number" else node
        near = [sign and sign.get_previous_sibling(), sign and sign.get_next_sibling()]
    return any(
        each is not None
        and (each.get_first_leaf().value in efforts or _CHANCE.match(each.get_code().strip()))
        for each in near
    )


def _timed(node: Any) -> bool:
    """Whether it is in a comparison of the clock, one look more or less."""
    return any(
        each.type == "comparison" and _CLOCK.search(each.get_code())
        for each in (node, *_parents(node))
    )


def _tolerated(comparison: Any) -> bool:
    """Whether it has a tolerance on one of its sides."""
    return bool(_TOLERANCE.search(comparison.get_code()))


def _first_element(node: Any) -> bool:
    """Whether it is the 0 of `rows[0]`: the last element is the same where there is one."""
    parent = node.parent
    subscript = node.type == "number" and parent.type == "trailer" and parent.children[0] == "["
    return bool(subscript) and node.value == "0"


def _annotates(parent: Any, child: Any) -> bool:
    """Whether `child` is the annotation of a name, a parameter or a result."""
    before = child and child.get_previous_sibling()
    return (
        before is not None
        and before.type == "operator"
        and (before.value == "->" or (before.value == ":" and parent.type != "funcdef"))
    )


def _parents(node: Any) -> Iterator[Any]:
    while node := node.parent:
        yield node
