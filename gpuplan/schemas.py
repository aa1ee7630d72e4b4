"""JSON Schemas (draft 2020-12) of the documents, made from the models that read them."""

from __future__ import annotations

import dataclasses
import json
import types
import typing
from decimal import Decimal
from typing import Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from gpuplan.manifest.base import NAMES
from gpuplan.source import Origin

DIALECT = "https://json-schema.org/draft/2020-12/schema"


def schema(document: str, *, names: bool = True) -> dict[str, Any]:
    """The schema of a document by its name (`gpuplan.cli.schema.DOCUMENTS`). Without `names`, which
    are those of this catalogue, it is the form alone."""
    if document == "plan":
        return plan_schema()
    if document == "evidence":
        return evidence_schema()
    tree = _document(document).model_json_schema(by_alias=True)
    if document == "manifest":
        tree = _named(tree, _names() if names else {})
    return {"$schema": DIALECT, "$id": f"https://gpuplan.dev/schemas/{document}.json", **tree}


def _named(tree: dict[str, Any], names: dict[str, Any]) -> dict[str, Any]:
    """`tree` with `names` where a field is one of them."""
    named: dict[str, Any] = json.loads(
        json.dumps(tree), object_hook=lambda part: part | names.get(part.pop(NAMES, ""), {})
    )
    return named


def _names() -> dict[str, Any]:
    """What an editor offers: of GPUs all that there are; of models and engines those beside which
    others may be described."""
    from gpuplan.catalog.load import load_catalog
    from gpuplan.models.load import known_names

    catalog = load_catalog()
    gpus = [g for g in catalog.gpu_ids if (gpu := catalog.gpu(g)) and catalog.plannable(gpu)]
    return {
        "gpu": {"enum": gpus},
        "model": {"examples": list(known_names())},
        "engine": {"examples": list(catalog.ids("engines"))},
    }


def _document(name: str) -> type[BaseModel]:
    if name == "manifest":
        from gpuplan.manifest.v1 import Manifest

        return Manifest
    if name == "inventory":
        from gpuplan.inventory.v1 import Inventory

        return Inventory
    if name == "requests":
        from gpuplan.fleet.requests.v1 import Requests

        return Requests
    if name == "costs":
        from gpuplan.money.document import Costs

        return Costs
    from gpuplan.catalog.documents.file import CatalogFile

    return CatalogFile


def plan_schema() -> dict[str, Any]:
    """The schema of `plan.yaml`, from the records; the evidence has a file of its own."""
    from gpuplan.plan.model import PLAN_VERSION, Plan

    definitions: dict[str, Any] = {}
    root = _type(Plan, definitions)
    tree = definitions.pop("Plan")
    for name in ("Evidence", "Input"):
        del definitions[name]
    del tree["properties"]["evidence"]
    tree["properties"] = {"api_version": {"const": PLAN_VERSION}, **tree["properties"]}
    tree["required"] = ["api_version", *tree["required"]]
    assert root == {"$ref": "#/$defs/Plan"}
    return {
        "$schema": DIALECT,
        "$id": "https://gpuplan.dev/schemas/plan.json",
        **tree,
        "$defs": dict(sorted(definitions.items())),
    }


def evidence_schema() -> dict[str, Any]:
    """The schema of `evidence.yaml`."""
    from gpuplan.plan.records import Evidence
    from gpuplan.plan.tree import EVIDENCE_VERSION

    definitions: dict[str, Any] = {}
    entries = {"type": "array", "items": _type(Evidence, definitions)}
    return {
        "$schema": DIALECT,
        "$id": "https://gpuplan.dev/schemas/evidence.json",
        "type": "object",
        "properties": {"api_version": {"const": EVIDENCE_VERSION}, "evidence": entries},
        "required": ["api_version", "evidence"],
        "additionalProperties": False,
        "$defs": definitions,
    }


_SCALARS: dict[Any, dict[str, Any]] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    Decimal: {"type": "number"},
    Origin: {"type": "string", "description": "DOCUMENT:PATH"},
}


def _type(kind: Any, definitions: dict[str, Any]) -> dict[str, Any]:
    kind = getattr(kind, "__supertype__", kind)
    origin = get_origin(kind)
    if kind in _SCALARS:
        return _SCALARS[kind]
    if origin is Literal:
        return {"enum": list(get_args(kind))}
    if origin is tuple:
        return _tuple(get_args(kind), definitions)
    if origin in (Union, types.UnionType):
        arms = [a for a in get_args(kind) if a is not type(None)]
        options = [_type(a, definitions) for a in arms]
        return options[0] if len(options) == 1 else {"anyOf": options}
    return _record(kind, definitions)


def _tuple(arguments: tuple[Any, ...], definitions: dict[str, Any]) -> dict[str, Any]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return {"type": "array", "items": _type(arguments[0], definitions)}
    items = [_type(a, definitions) for a in arguments]
    return {"type": "array", "prefixItems": items, "minItems": len(items), "items": False}


def _record(kind: type, definitions: dict[str, Any]) -> dict[str, Any]:
    name = kind.__name__
    if name not in definitions:
        definitions[name] = {}
        hints = typing.get_type_hints(kind)
        required = [
            f.name
            for f in dataclasses.fields(kind)
            if get_origin(hints[f.name]) not in (tuple, Union, types.UnionType)
        ]
        definitions[name] = {
            "type": "object",
            **({"description": " ".join(kind.__doc__.split())} if kind.__doc__ else {}),
            "properties": {n: _type(hints[n], definitions) for n in hints},
            "required": required,
            "additionalProperties": False,
        }
    return {"$ref": f"#/$defs/{name}"}
