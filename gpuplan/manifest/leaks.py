"""Secrets in a document: said at their place, and taken out of what is read and shown."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuplan.credentials import form, likeness
from gpuplan.diagnostics import Diagnostic, error
from gpuplan.source import Origin, Path, SourceDocument, Span

CONCEALED = "concealed"  # stands for a secret in the data, so that the rest is checked


def secret_value(name: str, reason: str, at: Origin, *, known_form: bool) -> Diagnostic:
    """`reason` is why it seems one; the value itself is never said."""
    remedy = (
        f"take it out, revoke it if the file was shared, and refer to it: `secrets: {{{name}:"
        " {config: NAME}}`, after `pulumi config set --secret NAME`"
    )
    public = "" if known_form else f"; if it is none, list {name} in 'public_variables'"
    return error("GP019", f"{name} holds a secret: {reason}", at, help=remedy + public)


def conceal(document: SourceDocument) -> list[Diagnostic]:
    """An error for each secret in the document, which then holds none of them."""
    problems = []
    for path, name, reason, known_form in [*_secrets(document.data, ())]:
        _set(document, path)
        if span := document.values.get(path):
            document.text = _masked(document.text, span)
        at = Origin(document.name, path)
        problems.append(secret_value(name, reason, at, known_form=known_form))
    return problems


Leak = tuple[Path, str, str, bool]  # where, what is called so, why, whether by its form


def _secrets(data: object, path: Path) -> Iterator[Leak]:
    if isinstance(data, Mapping):
        public = data.get("public_variables")
        for key, value in data.items():
            at = (*path, key)
            if key == "environment" and isinstance(value, Mapping):
                yield from _variables(value, at, public if isinstance(public, list) else [])
            elif key == "command" and isinstance(value, list):
                yield from _words(value, at)
            else:
                yield from _secrets(value, at)
    elif isinstance(data, list):
        for number, item in enumerate(data):
            yield from _secrets(item, (*path, number))
    elif isinstance(data, str):
        yield from _text(data, path)


def _text(text: str, path: Path) -> Iterator[Leak]:
    reference = path[-3:-2] == ("secrets",)
    name = str(path[-2 if reference else -1]) if path else "the document"
    if kind := form(text):
        yield path, name, f"it has the form of {kind}", True
    elif reference and (reason := likeness("", text)):
        yield path, name, f"a name belongs here, and {reason}", True


def _variables(values: Mapping[Any, Any], path: Path, public: list[object]) -> Iterator[Leak]:
    for name, value in values.items():
        if not isinstance(value, str) or not (reason := likeness(str(name), value)):
            continue
        if form(value) or name not in public:
            yield (*path, name), str(name), reason, bool(form(value))


def _words(words: list[Any], path: Path) -> Iterator[Leak]:
    """`--api-key VALUE` and `--api-key=VALUE`."""
    option = ""
    for number, word in enumerate(words):
        if not isinstance(word, str):
            continue
        name, equals, value = word.partition("=") if word.startswith("-") else (option, "=", word)
        variable = name.lstrip("-").replace("-", "_").upper() or "COMMAND"
        known = form(word)
        reason = f"it has the form of {known}" if known else likeness(variable, value)
        if equals and value and reason:
            yield (*path, number), variable, reason, True
        option = word if word.startswith("-") and not equals else ""


def _set(document: SourceDocument, path: Path) -> None:
    if not path:
        document.data = CONCEALED
        return
    data: Any = document.data
    for part in path[:-1]:
        data = data[part]
    data[path[-1]] = CONCEALED


def _masked(text: str, span: Span) -> str:
    rows = text.split("\n")
    for number in range(span.line - 1, min(span.end_line, len(rows))):
        row = rows[number]
        first = span.column - 1 if number == span.line - 1 else 0
        last = span.end_column - 1 if number == span.end_line - 1 else len(row)
        hidden = "".join(c if c.isspace() else "*" for c in row[first:last])
        rows[number] = row[:first] + hidden + row[last:]
    return "\n".join(rows)
