"""Mutations inside the texts of formulas, which Python's operators see as strings.

An operator of cosmic-ray. A row of a string is taken as arithmetic where, without its
`name: unit =` and without its `# source`, it holds names, numbers and operators alone; the grammar
has no comparison and no `not` (gpuplan/sizing/evidence/formula.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from cosmic_ray.operators.operator import Example, Operator

_HEAD = re.compile(r"\s*\w*: \S+ = ")
_ARITHMETIC = re.compile(r"[\w\s.()+\-*/,]*")
_PROSE = re.compile(r"[\w.]\s+[\w.]")
_TOKEN = re.compile(
    r" (?P<operator>//|\*\*|[*/+-]) |\b(?P<function>ceil|floor|min|max|sqrt)\("
    r"|(?<![\w.])(?P<number>\d+(?:\.\d+)?)(?![\w.])"
)
_OPERATORS = {"+": "-", "-": "+", "*": "/", "/": "*", "//": "/", "**": "*"}
_FUNCTIONS = {"ceil": "floor", "floor": "ceil", "min": "max", "max": "min", "sqrt": ""}
_SWAPPED = _OPERATORS | _FUNCTIONS
Edit = tuple[int, int, str]  # from, to, what replaces it


class FormulaText(Operator):
    """Replaces an operator, a rounding, a bound or a number of a formula."""

    def mutation_positions(self, node: Any) -> Iterator[tuple[tuple[int, int], tuple[int, int]]]:
        for start, end, _ in edits(node):
            yield _position(node, start), _position(node, end)

    def mutate(self, node: Any, index: int) -> Any:
        start, end, text = edits(node)[index]
        node.value = node.value[:start] + text + node.value[end:]
        return node

    @classmethod
    def examples(cls) -> tuple[Example, ...]:
        text = "sheet('a: B = ceil(2 * b)  # 2 * more')"
        return (
            Example(text, text.replace("ceil", "floor")),
            Example(text, text.replace("(2", "(3"), occurrence=1),
            Example(text, text.replace("(2", "(1"), occurrence=2),
            Example(text, text.replace("* b", "/ b"), occurrence=3),
            Example("f'{a}: 1 = {b} - 1  # {c}; 1 - 2'", "f'{a}: 1 = {b} + 1  # {c}; 1 - 2'"),
        )


def edits(node: Any) -> list[Edit]:
    """What may replace which characters of a string, or of a part of an f-string."""
    if node.type == "string":
        quoted = re.fullmatch(r"""(\w*(?:'''|\"""|'|"))(.*?)['"]+""", node.value, re.DOTALL)
        assert quoted
        return list(_text_edits(quoted[2], quoted.start(2), comment=False))
    if node.type != "fstring_string":
        return []
    children = node.parent.children
    before = "".join(child.get_code() for child in children[: children.index(node)])
    return list(_text_edits(node.value, 0, comment="#" in before.rpartition("\n")[2]))


def _text_edits(text: str, offset: int, *, comment: bool) -> Iterator[Edit]:
    for row in text.splitlines(keepends=True):
        code = "" if comment else row.partition("#")[0]
        comment = False
        head = _HEAD.match(code)
        begin = head.end() if head else 0
        expression = code[begin:]
        if _ARITHMETIC.fullmatch(expression) and not _PROSE.search(expression):
            yield from _row_edits(f"{expression} ", offset + begin)
        offset += len(row)


def _row_edits(expression: str, offset: int) -> Iterator[Edit]:
    tokens = [*_TOKEN.finditer(expression)]
    if not any(token["operator"] or token["function"] for token in tokens):
        return
    for token in tokens:
        kind = str(token.lastgroup)
        start, end = (offset + edge for edge in token.span(kind))
        if kind == "number":
            value = float(token[kind]) if "." in token[kind] else int(token[kind])
            yield start, end, str(value + 1)
            yield start, end, str(value - 1)
        else:
            yield start, end, _SWAPPED[token[kind]]


def _position(node: Any, offset: int) -> tuple[int, int]:
    before = node.value[:offset]
    line, column = node.start_pos
    rows = before.count("\n")
    return line + rows, len(before) - before.rfind("\n") - 1 if rows else column + offset
