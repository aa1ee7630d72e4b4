"""YAML as the tree that `jsonread` makes of JSON, composed by ruamel.yaml."""

from __future__ import annotations

from gpuplan.inventory.readers.jsonread import DEEPEST, Json, Parsed
from gpuplan.inventory.readers.words import Word
from gpuplan.source import Place, SourceDocument, Span


def parse_yaml(document: SourceDocument) -> tuple[Parsed, ...]:
    """All documents of a text; a fault ends them."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError

    parsed: list[Parsed] = []
    try:
        nodes = YAML(typ="safe", pure=True).compose_all(document.text)
        parsed.extend(Parsed(_converted(document.name, n, frozenset())) for n in nodes if n)
    except RecursionError:
        parsed.append(Parsed(None, _fault(document.name, 0, 0)))
    except YAMLError as problem:
        mark = problem.problem_mark if isinstance(problem, MarkedYAMLError) else None
        line, column = (mark.line, mark.column) if mark else (0, 0)
        parsed.append(Parsed(None, _fault(document.name, line, column)))
    return tuple(parsed)


def _fault(document: str, line: int, column: int) -> Word:
    place = Place(document, Span(line + 1, column + 1, line + 1, column + 2))
    return Word(text="", place=place)


def _converted(document: str, node: object, above: frozenset[int]) -> Json:
    from ruamel.yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

    assert isinstance(node, Node)
    start, end = node.start_mark, node.end_mark
    span = Span(start.line + 1, start.column + 1, end.line + 1, end.column + 1)
    word = Word(text="", place=Place(document, span))
    inner = above | {id(node)}
    if id(node) in above or len(inner) > DEEPEST:
        return Json(word)  # an alias of what holds it
    if isinstance(node, MappingNode):
        made = Json(word, kind="object")
        for key, value in node.value:
            if isinstance(key, ScalarNode):
                made.members.setdefault(str(key.value), _converted(document, value, inner))
        return made
    if isinstance(node, SequenceNode):
        items = [_converted(document, child, inner) for child in node.value]
        return Json(word, kind="array", items=items)
    null = str(node.tag).endswith(":null")
    return Json(word, None if null else str(node.value))
