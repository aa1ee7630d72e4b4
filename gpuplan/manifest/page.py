"""docs/manifest.md: every field of a manifest, from its schema (`make generate`)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from gpuplan.manifest.base import NAMES, QUANTITY
from gpuplan.manifest.v1 import Manifest
from gpuplan.render import yaml
from gpuplan.render.markdown import code

Schema = Mapping[str, Any]
KINDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "mapping",
}
NAMED = {
    "gpu": "a GPU type: `gpuplan catalog list gpus`",
    "model": "a name: `gpuplan catalog list models`",
    "engine": "a name: `gpuplan catalog list engines`",
}
INTRODUCTION = """\
# The manifest

Every field, made from the program by `make generate`. `gpuplan schema manifest` prints the same for
editors. Quantities are written with their unit. **Bold** fields must be written; every other may be
left out, and `gpuplan explain` names what stands in for it.
"""


def page() -> Iterator[str]:
    """A section for each mapping, in the order in which they are met from the top."""
    root = Manifest.model_json_schema(by_alias=True)
    definitions = root["$defs"]
    yield INTRODUCTION
    sections: dict[str, tuple[str, Schema]] = {"": ("The document", root)}
    waiting = [""]
    while waiting:
        title, schema = sections[name := waiting.pop(0)]
        added: dict[str, tuple[str, Schema]] = {}
        for inner, path in _mappings(schema, "" if not name else f"{title}."):
            if inner not in sections:
                added.setdefault(inner, (path, definitions[inner]))
        sections |= added
        waiting = [*added, *waiting]
        yield from _section(title, schema, {n: path for n, (path, _) in sections.items()})


def _section(title: str, schema: Schema, titles: Mapping[str, str]) -> Iterator[str]:
    heading = title if title == "The document" else f"`{title}`"
    yield f"## {heading}\n\n{schema['description']}\n"
    yield "| field | takes | meaning | for example |\n|---|---|---|---|"
    for field, about in schema["properties"].items():
        name = f"**`{field}`**" if field in schema.get("required", ()) else f"`{field}`"
        takes = "<br>".join(dict.fromkeys(_takes(about, titles)))
        written = "<br>".join(code(f"{field}: {yaml.inline(e)}") for e in about["examples"])
        yield f"| {name} | {takes} | {about['description']} | {written} |"
    yield ""


def _mappings(schema: Schema, above: str) -> Iterator[tuple[str, str]]:
    """The definitions that fields of `schema` refer to, with the paths of these fields."""
    for field, about in schema["properties"].items():
        for part in _parts(about):
            if "$ref" in part:
                yield part["$ref"].rpartition("/")[2], f"{above}{field}"


def _parts(about: Schema) -> Iterator[Schema]:
    """What a field may be: itself, each of several, the entries of a list or of a mapping."""
    kept = {k: v for k, v in about.items() if k not in ("anyOf", "examples")}
    for choice in about.get("anyOf", (kept,)):
        entries = choice.get("items") or choice.get("additionalProperties")
        entries = entries or next(iter(choice.get("patternProperties", {}).values()), None)
        if "anyOf" in choice:
            yield from _parts(choice)
        elif isinstance(entries, dict):
            shape = "list of" if "items" in choice else "mapping of"
            yield from ({**part, "of": shape} for part in _parts(entries))
        else:
            yield choice


def _takes(about: Schema, titles: Mapping[str, str]) -> Iterator[str]:
    """What a field takes, in words."""
    for part in _parts(about):
        if part.get("type") != "null":
            yield f"{part['of']} {_kind(part, titles)}" if "of" in part else _kind(part, titles)


def _kind(part: Schema, titles: Mapping[str, str]) -> str:
    values = part.get("enum") or [c["const"] for c in part.get("oneOf", ())]
    values = values or ([part["const"]] if "const" in part else [])
    if values:
        return ", ".join(f"`{v}`" for v in values)
    if "$ref" in part:
        title = titles[part["$ref"].rpartition("/")[2]]
        return f"[{title}](#{title.replace('.', '').replace('[]', '')})"
    if NAMES in part:
        return NAMED[part[NAMES]]
    if QUANTITY in part:
        return str(part[QUANTITY])
    return f"{KINDS[part['type']]}{_limits(part)}" if "type" in part else "anything"


def _limits(part: Schema) -> str:
    signs = {"exclusiveMinimum": ">", "minimum": "≥", "exclusiveMaximum": "<", "maximum": "≤"}
    said = [f"{sign} {part[k]:g}" for k, sign in signs.items() if part.get(k, 10**9) < 10**9]
    return f" {' and '.join(said)}" if said else ""
