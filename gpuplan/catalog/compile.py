"""`python -m gpuplan.catalog.compile [--check]`: the YAML files as the files that are loaded.

Each file is checked on its own and against the others; all problems are reported at once. The
output is canonical: the same files give the same bytes. `--check` writes nothing and fails when the
compiled file is stale.
"""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, get_args

from pydantic import ValidationError
from ruamel.yaml import YAML
from ruamel.yaml.error import YAMLError

from gpuplan.catalog.clouds import CLOUDS
from gpuplan.catalog.compiling.consistency import (
    check_commitments,
    check_kernels,
    check_nodes,
    check_pci_ids,
    check_ranges,
    check_stand_ins,
)
from gpuplan.catalog.compiling.entries import entry, template
from gpuplan.catalog.documents.cloud import CloudFile
from gpuplan.catalog.documents.component import ComponentFile
from gpuplan.catalog.documents.cuda import CudaFile
from gpuplan.catalog.documents.engine import BuildFile, EngineFile, ImageFile, Task
from gpuplan.catalog.documents.file import AnyFile, CatalogFile
from gpuplan.catalog.documents.gpu import GpuFile
from gpuplan.catalog.documents.instance import InstanceFile, RateFile
from gpuplan.catalog.documents.kernels import KernelsFile
from gpuplan.catalog.documents.nic import NicFile
from gpuplan.catalog.documents.node import NodeFile
from gpuplan.catalog.documents.price import PriceFile
from gpuplan.catalog.documents.provider import ProviderFile
from gpuplan.catalog.documents.ranges import RangesFile
from gpuplan.catalog.documents.servers import ServersFile
from gpuplan.catalog.documents.storage import StorageFile
from gpuplan.catalog.documents.tariff import (
    CarbonFile,
    ChargesFile,
    CommitmentsFile,
    InterruptionsFile,
)
from gpuplan.catalog.kernels import KERNELS
from gpuplan.catalog.load import COMPILED
from gpuplan.catalog.lookup import HARDWARE, HARDWARE_FOLDERS
from gpuplan.catalog.market import MARKET
from gpuplan.catalog.tariffs import TARIFFS

DATA = Path(__file__).with_name("data")
FOLDERS: dict[str, type[AnyFile]] = {
    "gpus": GpuFile,
    "nodes": NodeFile,
    "prices": PriceFile,
    "components": ComponentFile,
    "engines": EngineFile,
    "cuda": CudaFile,
    "images": ImageFile,
    "builds": BuildFile,
    "nics": NicFile,
    "storage": StorageFile,
    "power": RangesFile,
    "purchase": RangesFile,
    "instances": InstanceFile,
    "rates": RateFile,
    "charges": ChargesFile,
    "commitments": CommitmentsFile,
    "carbon": CarbonFile,
    "interruptions": InterruptionsFile,
    "servers": ServersFile,
    "clouds": CloudFile,
    "providers": ProviderFile,
    "kernels": KernelsFile,
}
# What few plans read is in files of its own, which are read when they are first asked for.
PARTS: dict[str, tuple[str, ...]] = {
    COMPILED.name: ("gpus", "nodes", "prices", "components", "engines", "cuda", "images", "builds"),
    HARDWARE.name: HARDWARE_FOLDERS,
    MARKET.name: ("instances", "rates"),
    TARIFFS.name: ("charges", "commitments", "carbon", "interruptions", "servers"),
    CLOUDS.name: ("clouds", "providers"),
    KERNELS.name: ("kernels",),
}
Documents = dict[str, dict[str, Any]]


class Unsound(Exception):
    """The files cannot be compiled; `problems` has one line each."""

    def __init__(self, problems: Iterable[str]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(self.problems))


def read(data: Path = DATA) -> Documents:
    """Every file under `data`, by folder and identifier. Raises `Unsound`."""
    files: Documents = {folder: {} for folder in FOLDERS}
    problems: list[str] = []
    for path in sorted(data.rglob("*.yaml")):
        name = path.relative_to(data).as_posix()
        try:
            document = _document(path.read_text(encoding="utf-8"))
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


@cache
def _document(text: str) -> AnyFile:
    """Raises `YAMLError` or `ValidationError`."""
    return CatalogFile.model_validate(YAML(typ="safe", pure=True).load(text)).root


def _lines(problem: YAMLError | ValidationError) -> Iterator[str]:
    if isinstance(problem, YAMLError):
        yield " ".join(str(problem).split())
        return
    for item in problem.errors():
        where = ".".join(str(part) for part in item["loc"][1:])
        yield f"{where}: {item['msg']}" if where else item["msg"]


def _cross_check(files: Documents) -> Iterator[str]:
    yield from check_stand_ins(files["gpus"])
    yield from check_nodes(files)
    yield from check_pci_ids(files)
    yield from check_ranges(files)
    yield from check_commitments(files)
    yield from check_kernels(files)
    sold = (("prices", n, f.listings) for n, f in files["prices"].items())
    rented = (("servers", n, f.servers) for n, f in files["servers"].items())
    for folder, name, rows in (*sold, *rented):
        for gpu in sorted({x.gpu for x in rows} - set(files["gpus"])):
            yield f"{folder}/{name}.yaml: no such GPU '{gpu}'"
    yield from _check_market(files)
    for name, engine in files["engines"].items():
        if engine.cuda and engine.cuda.version not in files["cuda"]:
            yield f"engines/{name}.yaml: no such CUDA release '{engine.cuda.version}'"
    yield from _check_builds(files)
    defaults = Counter(t for engine in files["engines"].values() for t in engine.default_for)
    for task in get_args(Task):
        if defaults[task] != 1:
            yield f"engines: {defaults[task]} defaults for task '{task}' instead of one"


def _check_builds(files: Documents) -> Iterator[str]:
    """Builds are of an engine's own version, for its tasks, and one for each kind of GPU."""
    seen: set[tuple[str, str]] = set()
    for name, build in files["builds"].items():
        engine = files["engines"].get(build.engine)
        if engine is None:
            yield f"builds/{name}.yaml: no such engine '{build.engine}'"
            continue
        if build.version != engine.version:
            yield f"builds/{name}.yaml: {build.version}, and engine '{engine.id}' {engine.version}"
        for task in sorted(set(build.tasks) - set(engine.tasks)):
            yield f"builds/{name}.yaml: engine '{engine.id}' does no {task}"
        for architecture in build.architectures:
            if (engine.id, architecture) in seen:
                yield f"builds/{name}.yaml: another build of '{engine.id}' is for {architecture}"
            seen.add((engine.id, architecture))


def _check_market(files: Documents) -> Iterator[str]:
    machines: dict[str, set[str]] = {}
    for name, file in files["instances"].items():
        machines.setdefault(file.provider, set()).update(x.name for x in file.instances)
        for gpu in sorted({x.gpu for x in file.instances} - set(files["gpus"])):
            yield f"instances/{name}.yaml: no such GPU '{gpu}'"
    for folder in ("rates", "clouds"):
        for name, file in files[folder].items():
            for instance in sorted({*_instances(file)} - machines.get(file.provider, set())):
                yield f"{folder}/{name}.yaml: no such instance '{instance}'"


def _instances(file: RateFile | CloudFile) -> Iterator[str]:
    """The machines that a file says something of."""
    if isinstance(file, RateFile):
        return (rate.instance for rate in file.rates)
    return (row.instance for rows in (file.interfaces, file.numa) for row in rows)


def compile_files(files: Documents, part: str = COMPILED.name) -> str:
    """The text of one part, one record a line, sorted. Plans read nodes that stand for a GPU."""
    tree = {
        folder: _entries(files[folder], planned=part == COMPILED.name) for folder in PARTS[part]
    }
    folders = ",\n".join(
        f'"{folder}": {{\n'
        + ",\n".join(f"{_json(name)}: {_json(record)}" for name, record in entries.items())
        + "\n}"
        for folder, entries in tree.items()
    )
    return f"{{\n{folders}\n}}\n"


def _entries(documents: dict[str, Any], *, planned: bool) -> dict[str, Any]:
    named = sorted(documents.items())
    if planned and isinstance(next(iter(documents.values()), None), NodeFile):
        return {name: template(node) for name, node in named if node.reference}
    return {name: entry(document) for name, document in named}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def main(arguments: Sequence[str]) -> int:
    check = list(arguments) == ["--check"]
    if arguments and not check:
        print("usage: python -m gpuplan.catalog.compile [--check]", file=sys.stderr)
        return 2
    try:
        files = read()
    except Unsound as problem:
        print(problem, file=sys.stderr)
        return 1
    stale = []
    for part in PARTS:
        path, text = COMPILED.with_name(part), compile_files(files, part)
        if not check:
            path.write_text(text, encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != text:
            stale.append(path.name)
    for name in stale:
        print(f"{name} is stale: run python -m gpuplan.catalog.compile", file=sys.stderr)
    return int(bool(stale))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
