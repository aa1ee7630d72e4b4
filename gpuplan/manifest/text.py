"""YAML text → plain data with a span for every key and value.

YAML 1.2 rules through ruamel.yaml's composer. Duplicate keys, recursive or oversized aliases,
unknown tags and non-string keys are diagnostics; data never comes from a tag.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from json import JSONDecodeError

from ruamel.yaml.error import StreamMark, YAMLError
from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode
from ruamel.yaml.reader import ReaderError

from gpuplan.diagnostics import Diagnostic, Related, Severity, error
from gpuplan.render.shallow import reader
from gpuplan.source import Path, Place, SourceDocument, Span

MAXIMUM_NODES = 20_000  # of a document whose aliases multiply them
LETTERS_OF_A_NODE = 4  # a text that writes its nodes out may have as many as it has room for
MOST_VALUES = 60_000  # of a text; an inventory of 1,000 hosts that are all unlike has 50,000
_VALUE = re.compile(r"""[:\-?](?=[\s"'\[{])|[,\[{]|":""")  # each stands before one at most
_LONG = re.compile(r"\d{4301}|\b(?:NaN|-?Infinity)\b")
_TAG = "tag:yaml.org,2002:"
_KNOWN_SCALARS = {"str", "int", "float", "bool", "null", "timestamp"}


def syntax_error(document: str, problem: YAMLError) -> Diagnostic:
    mark = getattr(problem, "problem_mark", None) or getattr(problem, "context_mark", None)
    text = getattr(problem, "problem", None) or str(problem).splitlines()[0]
    place = Place(document, _point(mark)) if mark else None
    return error(
        "GP001", f"not valid YAML: {text}", place, help="check indentation and quotes here"
    )


def forbidden_character(document: str, text: str, problem: ReaderError) -> Diagnostic:
    line = text.count("\n", 0, problem.position) + 1
    column = problem.position - text.rfind("\n", 0, problem.position)
    code = ord(text[problem.position])
    return error(
        "GP001",
        f"not valid YAML: the character U+{code:04X} may not stand in a document",
        Place(document, Span(line, column, line, column + 1)),
        help=f'remove it, or write it as "\\u{code:04x}" in double quotes',
    )


def too_deep(document: str) -> Diagnostic:
    return error(
        "GP001",
        f"{document} is nested too deeply to be read",
        help="no field lies deeper than ten levels: look for brackets that are never closed",
    )


def json_fault(text: str, problem: ValueError) -> str:
    """Why `json` refused a text, with the line; the rest of its words is about its code."""
    line, column = json_place(text, problem)
    place = f"line {line}, column {column}"
    if isinstance(problem, JSONDecodeError):
        return f"{place} is not JSON: {problem.msg.lower()}"
    return f"{place}: {json_words(problem)}"


def json_words(problem: ValueError) -> str:
    """What is wrong, without a place."""
    if isinstance(problem, JSONDecodeError):
        return problem.msg.lower()
    digits = "digits" in str(problem)
    return "a number has more than 4,300 digits" if digits else str(problem)


def json_place(text: str, problem: ValueError) -> tuple[int, int]:
    """Line and column, from 1."""
    if isinstance(problem, JSONDecodeError):
        return problem.lineno, problem.colno
    match = _LONG.search(text)
    start = match.start() if match else 0
    return text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)


def too_many_values(document: str, values: int) -> Diagnostic:
    return error(
        "GP001",
        f"{document} has some {values:,} values, and {MOST_VALUES:,} are read at most",
        help="divide it: a manifest or an inventory for each cluster",
    )


def duplicate_key(document: str, name: str, first: Span, second: Span) -> Diagnostic:
    return Diagnostic(
        rule="GP002",
        severity=Severity.ERROR,
        message=f"duplicate key '{name}'",
        origin=Place(document, second),
        label="the second value would silently win",
        help="remove one of the two",
        related=(Related("first defined here", Place(document, first)),),
    )


def bad_node(document: str, span: Span, message: str, remedy: str) -> Diagnostic:
    return error("GP002", message, Place(document, span), help=remedy)


def _point(mark: StreamMark) -> Span:
    return Span(mark.line + 1, mark.column + 1, mark.line + 1, mark.column + 2)


def _span(node: Node) -> Span:
    start, end = node.start_mark, node.end_mark
    return Span(start.line + 1, start.column + 1, end.line + 1, end.column + 1)


class _Converter:
    """Turns one composed document into data, collecting spans and problems."""

    def __init__(self, document: SourceDocument) -> None:
        self.document = document
        self.problems: list[Diagnostic] = []
        self.count = 0
        self.open: set[int] = set()

    def convert(self, node: Node, path: Path) -> object:
        self.count += 1
        self.document.values[path] = _span(node)
        most = max(MAXIMUM_NODES, len(self.document.text) // LETTERS_OF_A_NODE)
        if self.count > most or id(node) in self.open:
            if self.count <= most or not any("too large" in p.message for p in self.problems):
                fault = (
                    "refers to itself" if id(node) in self.open else "is too large when expanded"
                )
                self._bad(node, f"this alias {fault}", "write the value out instead of the alias")
            return None
        self.open.add(id(node))
        try:
            if isinstance(node, MappingNode):
                return self._mapping(node, path)
            if isinstance(node, SequenceNode):
                return [self.convert(child, (*path, i)) for i, child in enumerate(node.value)]
            assert isinstance(node, ScalarNode)
            return self._scalar(node)
        finally:
            self.open.discard(id(node))

    def _bad(self, node: Node, message: str, remedy: str) -> None:
        self.problems.append(bad_node(self.document.name, _span(node), message, remedy))

    def _mapping(self, node: MappingNode, path: Path) -> dict[str, object]:
        data: dict[str, object] = {}
        for key_node, value_node in node.value:
            if not isinstance(key_node, ScalarNode):
                self._bad(key_node, "a key must be a plain text", "use a string as key")
                continue
            name, span = self._text(key_node), _span(key_node)
            here = (*path, name)
            if name in data:
                first = self.document.keys[here]
                self.problems.append(duplicate_key(self.document.name, name, first, span))
                continue
            self.document.keys[here] = span
            data[name] = self.convert(value_node, here)
            if value_node.start_mark.index == value_node.end_mark.index:  # "name:" and no more
                self.document.values[here] = span
        return data

    def _scalar(self, node: ScalarNode) -> object:
        kind = str(node.tag).removeprefix(_TAG)
        if kind not in _KNOWN_SCALARS:
            self._bad(node, f"the tag '{node.tag}' has no meaning here", "remove the tag")
            return None
        text = self._text(node)
        try:
            return plain_value(kind, text)
        except ValueError:  # more digits than Python reads, 4300
            self._bad(node, "this number has too many digits", "write it as 1e30")
            return None

    def _text(self, node: ScalarNode) -> str:
        """The text of `node`; JSON writes a character as two escapes, which YAML reads as two."""
        try:
            return str(node.value).encode("utf-16", "surrogatepass").decode("utf-16")
        except UnicodeDecodeError:
            self._bad(
                node, "half of a surrogate pair is no character", "write the character itself"
            )
            return ""


def plain_value(kind: str, text: str) -> object:
    """The value of a scalar of a YAML 1.2 core-schema `kind`."""
    if kind == "null":
        return None
    if kind == "bool":
        return text.casefold() == "true"
    digits = text.replace("_", "")
    if kind == "int":
        base = {"0x": 16, "0o": 8, "0b": 2}.get(digits.lstrip("+-")[:2].casefold(), 10)
        return int(digits, base)
    if kind == "float":
        return float(re.sub(r"^([+-]?)\.(inf|nan)$", r"\1\2", digits, flags=re.IGNORECASE))
    return text


def read_yaml(
    name: str, text: str, path: str = ""
) -> Iterator[tuple[SourceDocument, list[Diagnostic]]]:
    """Each document of `text`: `name` for the first, `name#2` … for the following ones."""
    nodes: list[Node | None] = []
    broken: list[Diagnostic] = []
    values = sum(1 for _ in _VALUE.finditer(text))
    if values > MOST_VALUES:
        problem = too_many_values(path or name, values)
        yield SourceDocument(name, text, path or name), [problem]
        return
    try:
        nodes.extend(reader().compose_all(text))
    except ReaderError as problem:
        broken.append(forbidden_character(name, text, problem))
    except YAMLError as problem:
        broken.append(syntax_error(name, problem))
    except RecursionError:
        broken.append(too_deep(path or name))
    if broken:
        yield SourceDocument(name, text, path or name), broken
        return
    for number, node in enumerate((n for n in nodes if n is not None), start=1):
        label = name if number == 1 else f"{name}#{number}"
        document = SourceDocument(label, text, path or name)
        converter = _Converter(document)
        document.data = converter.convert(node, ())
        yield document, converter.problems
