"""Python programs as blocks, read with `ast` and never run."""

from __future__ import annotations

import ast
import warnings
from collections import Counter
from functools import cached_property

from gpuplan.policy.api import EXPANDED, KEYS, Block, Entry, Unreadable
from gpuplan.render.tree import File


def program_blocks(file: File) -> tuple[Block, ...] | Unreadable:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(file.text)
        reader = _Reader(file.path, tree)
        reader.visit(tree)
    except SyntaxError as problem:
        return Unreadable(file.path, f"not valid Python: {problem.msg}", problem.lineno)
    except (ValueError, RecursionError, MemoryError) as problem:
        return Unreadable(file.path, f"not valid Python: {problem}")
    return tuple(reader.blocks)


def _name(node: ast.expr) -> str:
    """`k8s.apps.v1.Deployment` → `Deployment`."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def _text(node: ast.expr | None) -> str | None:
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None


_BINDING = (
    ast.arg,
    ast.alias,
    ast.FunctionDef,
    ast.AsyncFunctionDef,
    ast.ClassDef,
    ast.ExceptHandler,
    ast.MatchAs,
    ast.MatchStar,
    ast.MatchMapping,
)


class _Reader(ast.NodeVisitor):
    """Collects calls with keywords, dict displays, assignments to attributes and items, and texts.

    `trail` is the way by names from the program to the node; `resources` the named calls around it.
    """

    def __init__(self, file: str, tree: ast.Module) -> None:
        self.file = file
        self.blocks: list[Block] = []
        self.trail: list[str] = []
        self.resources: list[str] = []
        self.tree = tree

    @cached_property
    def constants(self) -> dict[str, ast.expr]:
        return _constants(self.tree)

    def _block(
        self, kind: str, node: ast.expr | ast.stmt, pairs: list[tuple[str, ast.expr]]
    ) -> None:
        read = KEYS if kind != "text" else {"text"}
        entries = [self._entry(k, v) for k, v in pairs if k in read or k == EXPANDED]
        if not entries:
            return
        resource = self.resources[-1] if self.resources else ""
        self.blocks.append(
            Block(
                file=self.file,
                kind=kind,
                resource=resource,
                path=".".join(self.trail),
                line=node.lineno,
                entries=tuple(entries),
            )
        )

    def _entry(self, key: str, node: ast.expr) -> Entry:
        value = self.constants.get(node.id, node) if isinstance(node, ast.Name) else node
        try:
            literal = ast.literal_eval(value)
        except (ValueError, TypeError, SyntaxError):
            return Entry(key=key, value=ast.unparse(node), known=False, line=node.lineno)
        return Entry(key=key, value=literal, line=node.lineno)

    def _inside(self, part: str, node: ast.AST) -> None:
        self.trail.append(part)
        self.visit(node)
        self.trail.pop()

    def visit_Call(self, node: ast.Call) -> None:
        kind, first = _name(node.func), _text(node.args[0]) if node.args else None
        name = _text(next((k.value for k in node.keywords if k.arg == "name"), None))
        label = first or name
        self.trail.append(f"{kind}[{label}]" if label else kind)
        if first and kind[:1].isupper():
            self.resources.append(f"{kind}[{first}]")
        pairs = [(k.arg or EXPANDED, k.value) for k in node.keywords]
        if kind == "setattr" and len(node.args) == 3:
            pairs.append((_text(node.args[1]) or EXPANDED, node.args[2]))
        self._block(kind, node, pairs)
        self.visit(node.func)
        for argument in node.args:
            self.visit(argument)
        for keyword in node.keywords:
            self._inside(keyword.arg or EXPANDED, keyword.value)
        if first and kind[:1].isupper():
            self.resources.pop()
        self.trail.pop()

    def visit_Dict(self, node: ast.Dict) -> None:
        pairs = [(_text(k) if k else None, v) for k, v in zip(node.keys, node.values, strict=True)]
        self._block("", node, [(k or EXPANDED, v) for k, v in pairs])
        for key, value in pairs:
            self._inside(key or "*", value)

    def visit_Assign(self, node: ast.Assign) -> None:
        for target in node.targets:
            key = None
            if isinstance(target, ast.Attribute):
                key = target.attr
            elif isinstance(target, ast.Subscript):
                key = _text(target.slice)
            if key is not None:
                self._block("", node, [(key, node.value)])
        self.generic_visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        """Most of a program, with nothing in it."""

    def visit_Attribute(self, node: ast.Attribute) -> None:
        self.visit(node.value)

    def visit_Constant(self, node: ast.Constant) -> None:
        if isinstance(node.value, str):
            self._block("text", node, [("text", node)])


def _constants(tree: ast.Module) -> dict[str, ast.expr]:
    """Module-level names that nothing else in the whole program binds."""
    stores = Counter(name for node in ast.walk(tree) for name in _bound(node))
    constants: dict[str, ast.expr] = {}
    for statement in tree.body:
        if isinstance(statement, ast.Assign):
            targets, value = statement.targets, statement.value
        elif isinstance(statement, ast.AnnAssign) and statement.value is not None:
            targets, value = [statement.target], statement.value
        else:
            continue
        constants |= {t.id: value for t in targets if isinstance(t, ast.Name) and stores[t.id] == 1}
    return constants


def _bound(node: ast.AST) -> list[str]:
    """Names that a node binds: by assignment, as parameter, import, definition or pattern."""
    if isinstance(node, ast.Name):
        return [] if isinstance(node.ctx, ast.Load) else [node.id]
    if not isinstance(node, _BINDING):
        return []
    names = (getattr(node, field, None) for field in ("arg", "name", "asname", "rest"))
    return [name for name in names if isinstance(name, str)]
