"""`python -m gpuplan.catalog.compile [--check]`: the YAML files as the one file that is loaded.

Each file is checked on its own and against the others; all problems are reported at once. The
output is canonical: the same files give the same bytes. `--check` writes nothing and fails when the
compiled file is stale.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from decimal import Decimal
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from gpuplan.catalog.documents import (
    AnyFile,
    CatalogFile,
    ComponentFile,
    EngineFile,
    Fact,
    GpuFile,
    NodeFile,
    PriceFile,
    SourceDocument,
    Task,
)
from gpuplan.catalog.load import COMPILED, FACTS

DATA = Path(__file__).with_name("data")
FOLDERS: dict[str, type[AnyFile]] = {
    "gpus": GpuFile,
    "nodes": NodeFile,
    "prices": PriceFile,
    "components": ComponentFile,
    "engines": EngineFile,
}
Files = dict[str, dict[str, Any]]


class Unsound(Exception):
    """The files cannot be compiled; `problems` has one line each."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def read(data: Path = DATA) -> Files:
    """Every file under `data`, by folder and identifier. Raises `Unsound`."""
    files: Files = {folder: {} for folder in FOLDERS}
    problems: list[str] = []
    for path in sorted(data.rglob("*.yaml")):
        name = path.relative_to(data).as_posix()
        try:
            tree = YAML(typ="safe", pure=True).load(path.read_text(encoding="utf-8"))
            document = CatalogFile.model_validate(tree).root
        except (YAMLError, ValidationError) as problem:
            problems.extend(f"{name}: {line}" for line in _lines(problem))
            continue
        if FOLDERS.get(path.parent.name) is not type(document) or document.id != path.stem:
            problems.append(f"{name}: this is {document.kind} '{document.id}'")
        else:
            files[path.parent.name][document.id] = document
    if problems := [*problems, *_cross_check(files)]:
        raise Unsound(problems)
    return files


def _lines(problem: YAMLError | ValidationError) -> Iterator[str]:
    if isinstance(problem, YAMLError):
        yield " ".join(str(problem).split())
        return
    for item in problem.errors():
        where = ".".join(str(part) for part in item["loc"][1:])
        yield f"{where}: {item['msg']}" if where else item["msg"]


def _cross_check(files: Files) -> Iterator[str]:
    for name, node in files["nodes"].items():
        if node.gpu not in files["gpus"]:
            yield f"nodes/{name}.yaml: no such GPU '{node.gpu}'"
    twice = Counter(node.gpu for node in files["nodes"].values())
    yield from (f"nodes: two templates for '{g}'" for g, count in twice.items() if count > 1)
    for name, prices in files["prices"].items():
        for gpu in sorted({x.gpu for x in prices.listings} - set(files["gpus"])):
            yield f"prices/{name}.yaml: no such GPU '{gpu}'"
    defaults = Counter(t for engine in files["engines"].values() for t in engine.default_for)
    for task in get_args(Task):
        if defaults[task] != 1:
            yield f"engines: {defaults[task]} defaults for task '{task}' instead of one"


def compile_files(files: Files) -> str:
    """The text of `compiled.json`: one record a line, sorted."""
    tree = {
        folder: {name: _entry(document) for name, document in sorted(documents.items())}
        for folder, documents in files.items()
    }
    digest = hashlib.sha256(_json(tree).encode()).hexdigest()
    folders = ",\n".join(
        f'"{folder}": {{\n'
        + ",\n".join(f"{_json(name)}: {_json(entry)}" for name, entry in entries.items())
        + "\n}"
        for folder, entries in tree.items()
    )
    return f'{{\n"sha256": "{digest}",\n{folders}\n}}\n'


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def _number(value: Any) -> Any:
    """Decimals as text, whole floats as integers: no digit is lost or added."""
    if isinstance(value, Decimal):
        return str(value)
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _source(source: SourceDocument) -> list[object]:
    where = source.url or f"{source.repository}@{source.commit}:{source.path}"
    return [source.title, where, source.date or source.read, int(source.date is not None)]


def _entry(document: AnyFile) -> dict[str, Any]:
    common = {
        "sources": {key: _source(value) for key, value in sorted(document.sources.items())},
        "notes": document.notes,
    }
    if isinstance(document, GpuFile):
        return _gpu(document) | common
    if isinstance(document, PriceFile):
        return {"listings": _listings(document)} | common
    fields = {name: _number(value) for name, value in document if name not in _UNUSED}
    if isinstance(document, NodeFile):
        fields["memory_bytes"] = fields.pop("memory")
    return fields | common


_UNUSED = ("id", "kind", "sources", "notes")


def _gpu(gpu: GpuFile) -> dict[str, Any]:
    facts = {name: getattr(gpu, name) for name, _ in FACTS.values()}
    return {
        "plain": {
            "identifier": gpu.id,
            "name": gpu.name,
            "vendor": gpu.vendor,
            "architecture": gpu.architecture,
            "compute_capability": gpu.compute_capability,
            "form_factor": gpu.form_factor,
            "product": gpu.product.value if gpu.product else None,
            "sm_count": gpu.sm_count.value if gpu.sm_count else None,
            "mig_slices": gpu.mig.memory_slices if gpu.mig else 0,
        },
        "facts": {
            name: [_number(fact.value), fact.source]
            for name, fact in facts.items()
            if isinstance(fact, Fact)
        },
        "mig": _mig(gpu),
        "vgpu": _vgpu(gpu),
    }


def _mig(gpu: GpuFile) -> list[list[object]]:
    if not gpu.mig:
        return []
    return [
        [
            p.name,
            p.compute_slices,
            p.memory_slices,
            p.memory,
            p.maximum,
            p.starts,
            p.source or gpu.mig.source,
        ]
        for p in gpu.mig.profiles
    ]


def _vgpu(gpu: GpuFile) -> list[list[object]]:
    """A vGPU has at most the memory of its MIG instance, and its share of what the GPU reports."""
    if not gpu.vgpu:
        return []
    instances = {p.name: p.memory for p in gpu.mig.profiles} if gpu.mig else {}
    rows: list[list[object]] = []
    for t in gpu.vgpu.types:
        bound = instances[t.mig_profile] if t.mig_profile else gpu.memory.value // t.maximum
        source = t.source or gpu.vgpu.source
        rows.append([t.name, min(t.memory, bound), t.maximum, t.mig_profile, source])
    return rows


def _listings(prices: PriceFile) -> list[dict[str, object]]:
    return [
        {
            "provider": x.provider or prices.provider,
            "instance": x.instance,
            "gpu": x.gpu,
            "gpus": x.gpus,
            "usd_per_hour": _usd(x.price / x.gpus),
            "region": x.region,
            "vcpus": x.vcpus,
            "memory_bytes": x.memory,
            "source": x.source,
        }
        for x in prices.listings
    ]


def _usd(value: Decimal) -> str:
    """Exact to a micro-dollar, without trailing zeros."""
    return f"{value.quantize(Decimal('0.000001')).normalize():f}"


def main(arguments: Sequence[str]) -> int:
    check = list(arguments) == ["--check"]
    if arguments and not check:
        print("usage: python -m gpuplan.catalog.compile [--check]", file=sys.stderr)
        return 2
    try:
        text = compile_files(read())
    except Unsound as problem:
        print(problem, file=sys.stderr)
        return 1
    if not check:
        COMPILED.write_text(text, encoding="utf-8")
    elif not COMPILED.exists() or COMPILED.read_text(encoding="utf-8") != text:
        print("compiled.json is stale: run python -m gpuplan.catalog.compile", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
