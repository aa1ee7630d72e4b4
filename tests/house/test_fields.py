"""Fields of a manifest that messages, rules and documents name: each of them exists."""

from __future__ import annotations

import ast
import re
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Union, get_args, get_origin

from pydantic import BaseModel

from gpuplan.manifest.v1 import Manifest, Workload

ROOT = Path(__file__).parents[2]
DOCUMENTS = ("docs/**/*.md", "README.md", "policies/*.yaml", "examples/*.yaml", "templates/**/*.j2")
OTHERS = {"gpuplan/engines/megatron.py"}  # whose texts name another program's fields
FOREIGN = {"platform.module_id"}  # of `nvidia-smi --query-gpu`


def kinds(annotation: Any) -> Iterator[Any]:
    """What a field may hold, without Annotated, Optional and unions."""
    if get_origin(annotation) is Annotated:
        yield from kinds(get_args(annotation)[0])
    elif get_origin(annotation) in (Union, types.UnionType):
        for arm in get_args(annotation):
            yield from kinds(arm)
    elif annotation is not type(None):
        yield annotation


def fields(kind: Any) -> dict[str, Any]:
    """The fields of a mapping and what each holds; none of anything else."""
    if not (isinstance(kind, type) and issubclass(kind, BaseModel)):
        return {}
    named = ((info.alias or name, info.annotation) for name, info in kind.model_fields.items())
    return {name: next(kinds(annotation)) for name, annotation in named}


ROOTS = {name: kind for name, kind in (fields(Manifest) | fields(Workload)).items() if fields(kind)}
NAMED = re.compile(rf"(?<![\w/-])(?<!\w\.)({'|'.join(ROOTS)})((?:\.[a-z][a-z0-9_]*)+)")


def exists(root: str, rest: list[str]) -> bool:
    kind = ROOTS[root]
    for name in rest:
        if get_origin(kind) is dict:  # keys are the writer's own
            return True
        if get_origin(kind) is list:
            kind = next(kinds(get_args(kind)[0]))
        if name not in fields(kind):
            return False
        kind = fields(kind)[name]
    return True


def named(text: str) -> Iterator[tuple[str, bool]]:
    """Every field that a text names, and whether it exists."""
    for match in NAMED.finditer(text):
        yield match[0], match[0] in FOREIGN or exists(match[1], match[2].split(".")[1:])


def texts() -> Iterator[tuple[Path, str]]:
    for path in sorted((ROOT / "gpuplan").rglob("*.py")):
        if path.relative_to(ROOT).as_posix() in OTHERS:
            continue
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield path, node.value
    for pattern in DOCUMENTS:
        for path in sorted(ROOT.glob(pattern)):
            yield path, path.read_text("utf-8")


def test_every_field_that_is_named_exists() -> None:
    every = [
        (path.relative_to(ROOT).as_posix(), *field) for path, t in texts() for field in named(t)
    ]
    assert len(every) > 100
    assert [(path, field) for path, field, known in every if not known] == []


def test_a_field_that_does_not_exist_is_seen() -> None:
    text = "ask for less (overrides.host_memory_per_gpu, overrides.memory_per_gpu)"
    assert list(named(text)) == [
        ("overrides.host_memory_per_gpu", True),
        ("overrides.memory_per_gpu", False),
    ]
    assert dict(named("load.requests_per_second.peak, slo.time")) == {
        "load.requests_per_second.peak": True,
        "slo.time": False,
    }
    assert list(named("platform.prices.h100-sxm-80gb, gpuplan.models.load.bundled")) == [
        ("platform.prices.h100", True)
    ]
